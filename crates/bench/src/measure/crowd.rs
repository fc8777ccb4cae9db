//! Many clients at once: how long until all of them have everything, until one change has reached the last, and until more of
//! them are back after a restart.
//!
//! They ask for what an Envoy has come to ask for, by the same names, but decode nothing: the machine's cores are to show
//! the server's work, not theirs.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use testbed::xds_client::{Builder, Kind, Known, State};
use testbed::{Client, XdsClient};
use tokio::time::sleep;

use super::{Fixture, LIMIT, milliseconds, scrape};
use crate::follower::{Follower, ROUTES, last, responses, until};
use crate::report::Run;
use crate::usage::{Usage, cpu};

/// How long clients may take to be back.
const RETURN: Duration = Duration::from_secs(300);
/// How often the controller is asked for its count meanwhile.
const POLL: Duration = Duration::from_millis(20);

/// Connects them, then edits one route.
pub async fn measure(fixture: &mut Fixture<'_>, run: &mut Run) -> Result<()> {
    let follower = fixture.follower.as_ref().context("only an implementation that can be followed has this step")?;
    let asks = follower.asks();
    let pid = fixture.controller.pid();
    let before = Usage::of(pid)?;
    let start = Instant::now();
    let connect = async {
        let clients = (0..fixture.options.clients).map(|number| connect(fixture, number, &asks));
        let clients = try_join_all(clients).await?;
        let has_all = |state: &State| asks.iter().all(|(kind, _, held)| state.counts(*kind).resources >= *held);
        try_join_all(clients.iter().map(|client| until(client, "everything", has_all))).await?;
        Ok(clients)
    };
    let clients = fixture.controller.brings("all clients to have everything", LIMIT, connect).await?;
    let end = clients.iter().filter_map(|client| client.look(|state| last(state, &Kind::ALL))).max();
    run.put("clients.connect", milliseconds(start, end.unwrap_or(start)));
    fixture.at_rest().await?;
    let after = Usage::of(pid)?;
    run.put("clients.connect-cpu", (after.cpu - before.cpu) * 1000.0);
    run.put("clients.memory", (after.rss - before.rss).max(0.0) * 1024.0 / fixture.options.clients as f64);

    let before: Vec<u64> = clients.iter().map(|client| client.look(|state| responses(state, &ROUTES))).collect();
    let cpu_before = cpu(pid)?;
    let edit = fixture.world.path_edit(0, "/crowd");
    let start = Instant::now();
    fixture.writer.edit(&edit).await?;
    let reached = clients
        .iter()
        .zip(&before)
        .map(|(client, before)| until(client, "the change", |state| responses(state, &ROUTES) > *before));
    fixture.controller.brings("the change to reach all clients", LIMIT, try_join_all(reached)).await?;
    let end = clients.iter().filter_map(|client| client.look(|state| last(state, &ROUTES))).max();
    run.put("clients.change", milliseconds(start, end.unwrap_or(start)));
    fixture.at_rest().await?;
    run.put("clients.change-cpu", (cpu(pid)? - cpu_before).as_secs_f64() * 1000.0);
    drop(clients);
    let known = fixture.follower.as_ref().map(Follower::known).unwrap_or_default();
    back(fixture, &asks, &known, run).await
}

/// Restarts the controller under clients that have everything: they come back at once, and tell what they have.
async fn back(
    fixture: &mut Fixture<'_>,
    asks: &[(Kind, Vec<String>, u64)],
    known: &Known,
    run: &mut Run,
) -> Result<()> {
    let before = all_in_step(fixture, asks, known).await?;
    let start = Instant::now();
    fixture.controller.restart().await?;
    let after = all_in_step(fixture, asks, known).await?;
    run.put("clients.back", milliseconds(start, Instant::now()));
    drop((before, after));
    Ok(())
}

/// Connects clients that have everything, and waits until the controller counts all of them as proxies in step.
///
/// Each of them tells all that it has in its first request, and they share the cores: a stream whose first request takes longer than
/// the server waits for it is ended. Like Envoy, such a client connects again.
async fn all_in_step(
    fixture: &Fixture<'_>,
    asks: &[(Kind, Vec<String>, u64)],
    known: &Known,
) -> Result<Vec<XdsClient>> {
    let connect = |number: usize| client(fixture, number, asks).known(known.clone()).connect();
    let mut clients = try_join_all((0..fixture.options.returning).map(connect)).await?;
    let deadline = Instant::now() + RETURN;
    loop {
        let counted = scrape::in_step(fixture).await?;
        if counted >= clients.len() as f64 {
            return Ok(clients);
        }
        let end_of = |client: &XdsClient| client.look(|state| state.end.clone());
        let ended: Vec<usize> = (0..clients.len()).filter(|&number| end_of(&clients[number]).is_some()).collect();
        ensure!(
            Instant::now() < deadline,
            "{counted} of {} clients are in step after {RETURN:?}; {} streams have ended, the last with {:?}",
            clients.len(),
            ended.len(),
            ended.last().and_then(|&number| end_of(&clients[number])),
        );
        let again = try_join_all(ended.iter().map(|&number| connect(number))).await?;
        for (number, client) in ended.into_iter().zip(again) {
            clients[number] = client;
        }
        sleep(POLL).await;
    }
}

async fn connect(fixture: &Fixture<'_>, number: usize, asks: &[(Kind, Vec<String>, u64)]) -> Result<XdsClient> {
    Ok(client(fixture, number, asks).connect().await?)
}

fn client(fixture: &Fixture<'_>, number: usize, asks: &[(Kind, Vec<String>, u64)]) -> Builder {
    let client = XdsClient::to(Client::new(fixture.instance.xds)).id(format!("client-{number}")).count_only();
    asks.iter().fold(client, |client, (kind, names, held)| match names.is_empty() {
        // What is held without being asked for by name is asked for as a whole.
        true if *held > 0 => client.ask_all(*kind),
        true => client,
        false => client.ask(*kind, names),
    })
}
