//! Many clients at once: how long until all of them have everything, and until one change has reached the last.
//!
//! They ask for what an Envoy has come to ask for, by the same names, but decode nothing: the machine's cores are to show
//! the server's work, not theirs.

use std::time::Instant;

use anyhow::{Context, Result};
use futures::future::try_join_all;
use testbed::xds_client::{Kind, State};
use testbed::{Client, XdsClient};

use super::{Fixture, LIMIT, milliseconds};
use crate::follower::{ROUTES, last, responses, until};
use crate::report::Run;
use crate::usage::{Usage, cpu};

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
    Ok(())
}

async fn connect(fixture: &Fixture<'_>, number: usize, asks: &[(Kind, Vec<String>, u64)]) -> Result<XdsClient> {
    let client = XdsClient::to(Client::new(fixture.instance.xds)).id(format!("client-{number}")).count_only();
    let client = asks.iter().fold(client, |client, (kind, names, held)| match names.is_empty() {
        // What is held without being asked for by name is asked for as a whole.
        true if *held > 0 => client.ask_all(*kind),
        true => client,
        false => client.ask(*kind, names),
    });
    Ok(client.connect().await?)
}
