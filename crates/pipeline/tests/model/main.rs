//! Whatever the model can hold, Envoy takes: no constructor makes of it what a real one refuses.
//!
//! Arbitrary values of every type of the model go through every constructor of `envoy`, in both packings, and whole worlds
//! of them are loaded into a real Envoy, one after the other. What the types cannot hold is not made: text goes through the
//! same parsers as what people write, and what a field's documentation rules out is ruled out here. So a refusal means that
//! a type, or the dialect that fills it, lets something through.
//!
//! The values are the same in every run unless `POISON_SEED` says otherwise; `PROPTEST_CASES` says how many worlds.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod clusters;
mod dice;
mod listeners;
mod routes;
mod world;

use dice::Dice;
use envoy::packing::Packing;
use testbed::cases::Proxy;
use world::World;

/// How many worlds are loaded one after the other, where nothing is said.
const WORLDS: u64 = 4;
/// Each world's listeners have ports of their own, half of them for each packing: those of the world before may still be
/// closing.
const PORTS: u64 = 20;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

async fn load(packing: Packing) {
    let mut proxy = Proxy::start("model").await.unwrap();
    let seed = number("POISON_SEED", 0);
    for world in 0..number("PROPTEST_CASES", WORLDS) {
        let port = 10_000 + world * PORTS % 50_000 + if packing == Packing::Plain { 0 } else { PORTS / 2 };
        let made = World::arbitrary(&mut Dice::new(seed, world), packing, u16::try_from(port).unwrap());
        if let Err(error) = proxy.replace(made.resources.clone()).await {
            let text = error.to_string();
            let shown: String = text.chars().take(20_000).collect();
            let warming = proxy.envoy().admin().get("/config_dump?resource=dynamic_warming_clusters").await;
            let blamed = made.blamed(&text);
            panic!("world {world} of POISON_SEED={seed}: {shown}\nmade from: {blamed:#?}\nwhat warms: {warming:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn envoy_takes_whatever_the_model_holds_in_tables() {
    load(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn envoy_takes_whatever_the_model_holds_in_scopes() {
    load(Packing::Scoped).await;
}
