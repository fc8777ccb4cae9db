//! Attacks by connections: xDS clients that are silent, that nobody knows, and server names that nobody has.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;
use serde_json::json;
use testbed::xds_client::{Kind, Reply};
use testbed::{Client, XdsClient};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::attacker::{Attacker, host, proxy, route};

/// How often a handshake is begun in one turn, and how long a turn is: 1,000 a second.
const IN_TURN: usize = 10;
const TURN: Duration = Duration::from_millis(10);
/// How many handshakes may be under way.
const HANDSHAKES: usize = 512;
/// How long a handshake that gets no answer is held.
const HELD: Duration = Duration::from_secs(2);

/// 50 clients that take everything and acknowledge nothing, and then 10,000 HTTPProxies that they should acknowledge.
pub async fn silent(attacker: &Attacker) -> Result<Vec<XdsClient>> {
    let connect = |number: usize| {
        let client = XdsClient::to(attacker.xds.clone()).id(format!("silent-{number}")).count_only();
        let client = client.ask_all(Kind::Cluster).ask_all(Kind::Listener).ask_all(Kind::ScopedRoute);
        client.replies(|_| Reply::Hold).connect()
    };
    let clients = try_join_all((0..attacker.count(50)).map(connect)).await?;
    let spec = |n: usize| json!({ "virtualhost": { "fqdn": host(n) }, "routes": [route("/")] });
    attacker.create_all((0..attacker.count(10_000)).map(|n| proxy(&format!("awaited-{n}"), spec(n)))).await?;
    Ok(clients)
}

/// Nothing more: they are silent.
pub async fn wait(attacker: &Attacker) -> Result<()> {
    attacker.in_place();
    std::future::pending().await
}

/// 10,000 connections that never say who they are; those that are closed are made again.
pub async fn unauthenticated(attacker: &Attacker) -> Result<()> {
    let (count, address) = (attacker.count(10_000), attacker.xds.addr());
    let mut open: Vec<TcpStream> = Vec::with_capacity(count);
    let mut most = 0;
    loop {
        open.retain(|stream| !is_closed(stream));
        while open.len() < count {
            match tokio::time::timeout(HELD, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => open.push(stream),
                // Refused, or nobody takes it in: then that is as many as there can be.
                Ok(Err(_)) | Err(_) => break,
            }
        }
        most = most.max(open.len());
        attacker.note("open", format!("at most {most} connections were open"));
        attacker.in_place();
        sleep(TURN).await;
    }
}

/// Whether the server has closed it.
fn is_closed(stream: &TcpStream) -> bool {
    match stream.try_read(&mut [0; 1]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

/// 1,000 handshakes a second, each for another name.
pub async fn unknown_names(attacker: &Attacker) -> Result<()> {
    let mut turns = interval(TURN);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut handshakes = JoinSet::new();
    let (start, mut begun) = (Instant::now(), 0_usize);
    attacker.in_place();
    for turn in 1_usize.. {
        turns.tick().await;
        while handshakes.try_join_next().is_some() {}
        for _ in 0..attacker.count(IN_TURN).min(HANDSHAKES.saturating_sub(handshakes.len())) {
            begun += 1;
            let client =
                Client::new(attacker.https).host(format!("stranger-{begun}.example.org")).https().timeout(HELD);
            // Whatever comes of it.
            handshakes.spawn(async move { drop(client.open().await) });
        }
        if turn.is_multiple_of(100) {
            let rate = begun as f64 / start.elapsed().as_secs_f64();
            attacker.note("rate", format!("{rate:.0} server names a second"));
        }
    }
    Ok(())
}
