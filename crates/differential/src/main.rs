//! `make differential`: sets of objects compiled by Emissary's own compiler into one Envoy, and by Sesame into another; the same
//! requests to both.
//!
//! In: a seed, and how many sets. Out: every different answer that no rule of [`known`] explains, a table of those that are
//! explained, and one line of figures. It runs in `tools/sandbox`.
//!
//! With `--time` it only says how long Emissary's compiler takes for one set of a size, and how much memory.

mod answer;
mod backends;
mod emissary;
mod known;
mod random;
mod sesame;
mod set;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;
use pipeline::settings::Packing;
use testbed::certs::Ca;
use testbed::{Net, StateDir};

use backends::Backends;
use known::Difference;
use sesame::Sesame;
use set::Set;

/// Compare the answers of Emissary and of Sesame to the same requests, with the same objects
#[derive(Debug, Parser)]
struct Args {
    /// What the sets follow from
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    seed: u64,
    /// How many sets
    #[arg(long, value_name = "NUMBER", default_value = "300")]
    sets: usize,
    /// Only the set of this number, with its objects, and all answers
    #[arg(long, value_name = "NUMBER")]
    only: Option<usize>,
    /// With routes packed for Envoy in one table, not by host
    #[arg(long)]
    plain: bool,
    /// Only how long Emissary's compiler takes for so many Mappings, and how much memory
    #[arg(long, value_name = "MAPPINGS")]
    time: Option<usize>,
    /// Over how many Hosts they are spread, each with TLS; by default each has its own
    #[arg(long, value_name = "NUMBER", requires = "time")]
    hosts: Option<usize>,
}

/// What was seen.
#[derive(Default)]
struct Figures {
    sets: usize,
    requests: usize,
    equal: usize,
    /// By the row that explains it.
    explained: BTreeMap<&'static str, usize>,
    unexplained: usize,
    /// Sets that Emissary or its Envoy did not take.
    refused: usize,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if let Some(mappings) = args.time {
        return time(mappings, args.hosts.unwrap_or(mappings)).await;
    }
    let begun = Instant::now();
    let (ca, backends) = (Ca::new("differential"), Backends::start().await?);
    let numbers = args.only.map_or(0..args.sets, |only| only..only + 1);
    let sets: Vec<Set> = numbers.map(|number| Set::new(args.seed, number, &ca, &backends)).collect();
    let folder = StateDir::new("compiler")?;
    let compiled = emissary::compile(&sets, &folder).await?;
    eprintln!("differential: {} sets compiled after {:.1} s", sets.len(), begun.elapsed().as_secs_f64());
    let mut sesame = Sesame::start(if args.plain { Packing::Plain } else { Packing::Scoped }).await?;
    let mut figures = Figures::default();
    for set in &sets {
        let verdicts = sesame.serve(set).await?;
        let Some(compiled) = compiled.get(&set.number) else { continue };
        if args.only.is_some() {
            for object in set.objects.iter().filter(|object| object["kind"] != "EndpointSlice") {
                println!("{object}");
            }
            verdicts.iter().for_each(|verdict| println!("Sesame reports {verdict}"));
            compiled.errors.iter().for_each(|error| println!("Emissary reports {error}"));
        }
        figures.sets += 1;
        let address = Net::here()?.address();
        let envoy = match emissary::serve(compiled, address, &backends).await {
            Ok(envoy) => envoy,
            Err(why) => {
                println!("set {}: Emissary serves nothing: {why:#}", set.number);
                figures.refused += 1;
                continue;
            }
        };
        compare(set, address, &sesame, args.only.is_some(), &mut figures).await;
        envoy.kill().await?;
    }
    Ok(report(&figures, begun))
}

/// Compiles one set of a size with Emissary's compiler, and prints the figures. No Envoy gets it.
async fn time(mappings: usize, hosts: usize) -> Result<ExitCode> {
    let set = Set::sized(mappings, hosts, &Ca::new("differential"));
    let folder = StateDir::new("compiler")?;
    let compiled = emissary::compile(&[set], &folder).await?;
    let compiled = compiled.into_values().next().context("the compiler made nothing")?;
    if let Some(why) = &compiled.failed {
        bail!("the compiler failed: {why}");
    }
    if let Some(error) = compiled.errors.first() {
        println!("Emissary reports {} errors, the first: {error}", compiled.errors.len());
    }
    let megabytes = |bytes: f64| bytes / 1e6;
    println!(
        "{mappings} Mappings, {hosts} Hosts: {:.1} s, {:.0} MB of memory at most, {:.1} MB of configuration",
        compiled.seconds,
        megabytes(compiled.memory as f64),
        megabytes(compiled.resources.to_string().len() as f64)
    );
    Ok(ExitCode::SUCCESS)
}

/// Asks both sides for all requests of a set.
async fn compare(set: &Set, emissary: std::net::Ipv4Addr, sesame: &Sesame, is_shown: bool, figures: &mut Figures) {
    for request in &set.requests {
        let (emissary, sesame) = tokio::join!(
            answer::ask(emissary, request, set.repeats),
            answer::ask(sesame.address, request, set.repeats)
        );
        figures.requests += 1;
        let difference = Difference { set, request, emissary: &emissary, sesame: &sesame };
        let explanation = (emissary != sesame).then(|| known::explanation(&difference));
        match explanation {
            None => figures.equal += 1,
            Some(Some(known)) => *figures.explained.entry(known.row).or_default() += 1,
            Some(None) => figures.unexplained += 1,
        }
        if is_shown || matches!(explanation, Some(None)) {
            let shown = |answers: &std::collections::BTreeSet<answer::Answer>| {
                answers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")
            };
            println!("set {}: {request}", set.number);
            println!("  Emissary: {}\n  Sesame:   {}", shown(&emissary), shown(&sesame));
        }
    }
}

/// Prints the table and the figures.
fn report(figures: &Figures, begun: Instant) -> ExitCode {
    for (row, count) in &figures.explained {
        println!("{count:6} {row}");
    }
    let explained: usize = figures.explained.values().sum();
    println!(
        "{} sets ({} not served by Emissary), {} requests: {} equal, {explained} explained, {} unexplained; {:.0} s",
        figures.sets,
        figures.refused,
        figures.requests,
        figures.equal,
        figures.unexplained,
        begun.elapsed().as_secs_f64()
    );
    if figures.unexplained == 0 && figures.sets > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
