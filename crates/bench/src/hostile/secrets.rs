//! Attacks by Secrets: names that cannot be fetched, GETs that hang, contents that change all the time.

use std::time::Duration;

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Method;
use serde_json::{Value, json};
use testbed::apiserver::Fate;
use testbed::certs::{Ca, Leaf};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::attack::Rule;
use super::attacker::{Attacker, NAMESPACE, SERVICE, api_path, host, object, proxy, proxy_edit, route};

/// Names in one HTTPProxy: so many fit.
const IN_ONE: usize = 1000;
/// Between two edits.
const REST: Duration = Duration::from_millis(200);
/// How many Secrets there are that cannot be had.
const UNANSWERED: usize = 200;

/// Services that name CA Secrets: half of the names are none, half are nobody's. They become others, again and again.
pub async fn unfetchable(attacker: &Attacker) -> Result<()> {
    let names = attacker.count(10_000);
    let objects = names.div_ceil(IN_ONE);
    let spec = |number: usize, round: usize| {
        let from = number * IN_ONE;
        let route = |n: usize| {
            let secret = if n.is_multiple_of(2) { format!("x%{n}-{round}") } else { format!("missing-{n}-{round}") };
            let mut route = route(&format!("/{n}"));
            route["services"] = json!([{ "name": SERVICE, "port": 80, "protocol": "tls",
                "validation": { "caSecret": secret, "subjectName": "backend" } }]);
            route
        };
        let routes: Vec<Value> = (from..(from + IN_ONE).min(names)).map(route).collect();
        json!({ "virtualhost": { "fqdn": host(number) }, "routes": routes })
    };
    for number in 0..objects {
        attacker.writer.create(&proxy(&format!("names-{number}"), spec(number, 0))).await?;
    }
    attacker.in_place();
    for round in 1.. {
        let number = round % objects;
        sleep(REST).await;
        attacker.writer.edit(&proxy_edit(&format!("names-{number}"), spec(number, round))).await?;
    }
    Ok(())
}

/// Secrets of the attacker's whose GET hangs, and others that are answered 429.
pub fn faults() -> Rule {
    let secrets = format!("/api/v1/namespaces/{NAMESPACE}/secrets/");
    Box::new(move |method, path| match path.strip_prefix(&secrets) {
        Some(name) if method == Method::GET && name.starts_with("hung-") => Fate::Hang,
        Some(name) if method == Method::GET && name.starts_with("busy-") => Fate::Refuse(429),
        _ => Fate::Pass,
    })
}

fn unanswered(n: usize) -> String {
    let sort = if n.is_multiple_of(2) { "hung" } else { "busy" };
    format!("{sort}-{n}")
}

/// Makes those Secrets.
pub async fn prepare(attacker: &Attacker) -> Result<()> {
    let leaf = Ca::new("hostile").leaf(&host(0)).make();
    let secrets = (0..attacker.count(UNANSWERED)).map(|n| secret(&unanswered(n), &leaf));
    attacker.create_all(secrets).await
}

/// Hosts whose certificates are those Secrets; they change to others of them, again and again.
pub async fn hung(attacker: &Attacker) -> Result<()> {
    let count = attacker.count(UNANSWERED);
    let spec = |n: usize, round: usize| {
        let secret = unanswered((n + round) % count);
        json!({ "virtualhost": { "fqdn": host(n), "tls": { "secretName": secret } }, "routes": [route("/")] })
    };
    attacker.create_all((0..count).map(|n| proxy(&format!("hung-{n}"), spec(n, 0)))).await?;
    attacker.in_place();
    for round in 1.. {
        sleep(REST).await;
        let n = round % count;
        attacker.writer.edit(&proxy_edit(&format!("hung-{n}"), spec(n, round))).await?;
    }
    Ok(())
}

/// A certificate that is renewed 100 times a second.
pub async fn rewritten(attacker: &Attacker) -> Result<()> {
    let ca = Ca::new("hostile");
    let leaves = [ca.leaf(&host(0)).make(), ca.leaf(&host(0)).make()];
    attacker.writer.create(&secret("rewritten", &leaves[0])).await?;
    let tls = json!({ "fqdn": host(0), "tls": { "secretName": "rewritten" } });
    attacker.writer.create(&proxy("rewritten", json!({ "virtualhost": tls, "routes": [route("/")] }))).await?;
    attacker.in_place();
    let mut turns = interval(Duration::from_millis(10));
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for round in 1.. {
        turns.tick().await;
        let edit = json!({ "data": data(&leaves[round % 2]) });
        attacker.writer.edit(&(api_path("/api/v1", "secrets", "rewritten"), edit)).await?;
    }
    Ok(())
}

fn data(leaf: &Leaf) -> Value {
    json!({ "tls.crt": BASE64.encode(leaf.chain_pem()), "tls.key": BASE64.encode(leaf.key_pem()) })
}

fn secret(name: &str, leaf: &Leaf) -> crate::world::Object {
    object("/api/v1", "secrets", json!({ "type": "kubernetes.io/tls", "data": data(leaf) }), name)
}
