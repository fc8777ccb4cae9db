//! Many clients at once: how long until all of them have everything, until one change has reached the last, and until more of
//! them are back after a restart.
//!
//! They ask for what an Envoy has come to ask for, by the same names, but decode nothing, and what they send is encoded once, before
//! the time is taken: the machine's cores are to show the server's work, not theirs.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::{join_all, try_join_all};
use testbed::xds_client::{Builder, FirstRequests, Kind, State};
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
    let builders = builders(fixture, fixture.options.clients, &asking(fixture, &asks).prepare());
    let pid = fixture.controller.pid();
    let before = Usage::of(pid)?;
    let start = Instant::now();
    let connect = async {
        let clients = try_join_all(builders.into_iter().map(Builder::connect)).await?;
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
    let first = asking(fixture, &asks).known(known).prepare();
    back(fixture, &first, run).await
}

/// Restarts the controller under clients that have everything: they come back at once, and tell what they have.
async fn back(fixture: &mut Fixture<'_>, first: &FirstRequests, run: &mut Run) -> Result<()> {
    let builders = builders(fixture, fixture.options.returning, first);
    let before = all_in_step(fixture, &builders).await?;
    let start = Instant::now();
    fixture.controller.end().await?;
    drop(before);
    fixture.controller.start_again().await?;
    let after = all_in_step(fixture, &builders).await?;
    run.put("clients.back", milliseconds(start, Instant::now()));
    drop(after);
    Ok(())
}

/// Connects clients that have everything, and waits until the controller counts all of them as proxies in step.
///
/// Each of them tells all that it has in its first request, and they share the cores, so some may fail to connect, or be sent away:
/// like Envoy, they connect again.
async fn all_in_step(fixture: &Fixture<'_>, builders: &[Builder]) -> Result<Vec<Option<XdsClient>>> {
    let end_of = |client: &XdsClient| client.look(|state| state.end.clone());
    let is_connected = |client: &Option<XdsClient>| client.as_ref().is_some_and(|client| end_of(client).is_none());
    let mut clients: Vec<Option<XdsClient>> = builders.iter().map(|_| None).collect();
    // Why clients had to connect again, and how often.
    let mut reasons = BTreeMap::<String, usize>::new();
    let deadline = Instant::now() + RETURN;
    loop {
        let missing: Vec<usize> = (0..clients.len()).filter(|&number| !is_connected(&clients[number])).collect();
        let connected = join_all(missing.iter().map(|&number| builders[number].clone().connect())).await;
        for (number, connected) in missing.into_iter().zip(connected) {
            if let Some(end) = clients[number].as_ref().and_then(end_of) {
                *reasons.entry(format!("{end:?}")).or_default() += 1;
            }
            match connected {
                Ok(client) => clients[number] = Some(client),
                Err(failure) => {
                    clients[number] = None;
                    *reasons.entry(failure.to_string()).or_default() += 1;
                }
            }
        }
        let counted = counted(fixture).await;
        if counted.as_ref().is_ok_and(|counted| *counted >= builders.len() as f64) {
            return Ok(clients);
        }
        ensure!(
            Instant::now() < deadline,
            "{counted:?} of {} clients are in step after {RETURN:?}; connected again because of: {reasons:#?}",
            builders.len()
        );
        sleep(POLL).await;
    }
}

/// How many proxies are in step beside the Envoy of the fixture and, until the controller is restarted, the client that counts.
async fn counted(fixture: &Fixture<'_>) -> Result<f64> {
    let in_step = scrape::in_step(fixture).await?;
    // Afterwards: an Envoy that comes back in between makes this count too low, and the next one is right.
    let envoy = fixture.proxy.envoy.admin().stat("control_plane.connected_state").await?.unwrap_or_default();
    let follower = fixture.follower.as_ref().is_some_and(Follower::is_connected);
    Ok(in_step - envoy as f64 - f64::from(u8::from(follower)))
}

/// Clients that send these first requests, to be connected.
fn builders(fixture: &Fixture<'_>, count: usize, first: &FirstRequests) -> Vec<Builder> {
    let server = Client::new(fixture.instance.xds);
    let builder = |number| XdsClient::to(server.clone()).id(format!("client-{number}")).first_requests(first.clone());
    (0..count).map(builder).collect()
}

/// A client that asks for all of that.
fn asking(fixture: &Fixture<'_>, asks: &[(Kind, Vec<String>, u64)]) -> Builder {
    let client = XdsClient::to(Client::new(fixture.instance.xds));
    asks.iter().fold(client, |client, (kind, names, held)| match names.is_empty() {
        // What is held without being asked for by name is asked for as a whole.
        true if *held > 0 => client.ask_all(*kind),
        true => client,
        false => client.ask(*kind, names),
    })
}
