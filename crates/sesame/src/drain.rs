//! Draining one Envoy: it turns unready, goes on serving, and is waited for until its clients are gone.
//!
//! In: the Unix socket of its admin interface. Out: the word that it may be ended. An Envoy that fails its health check answers
//! `/ready` with 503, so that nobody sends it new clients, and asks those that it has to go: `connection: close` in HTTP/1
//! answers, GOAWAY in HTTP/2. It takes new connections all the while, because load balancers are slow to learn of it. Nothing of
//! this lasts: an Envoy that is to stay after all is [undrained](undrain).

mod hooks;

pub use hooks::Hooks;

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::{Method, Request};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

/// How long the admin interface may take for an answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How often an Envoy that cannot be reached is asked to fail its health check, and the pause after the first attempt.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(200);
/// How often progress is logged while nothing changes.
const PROGRESS: Duration = Duration::from_secs(10);
/// Listeners whose connections are not clients': probes and scrapers stay to the end.
const OURS: [&str; 5] = [
    "http.stats-health.downstream_cx_active",
    "http.stats.downstream_cx_active",
    "http.health.downstream_cx_active",
    "http.health-om-enforced.downstream_cx_active",
    "http.envoy-admin.downstream_cx_active",
];

/// How an Envoy is drained.
#[derive(Clone, Debug)]
pub struct Drain {
    /// The Unix socket of its admin interface.
    pub admin: PathBuf,
    /// How long to wait before it turns unready: clients may still be sent here.
    pub drain_delay: Duration,
    /// How long to wait then before connections are counted for the first time.
    pub check_delay: Duration,
    /// How often they are counted.
    pub interval: Duration,
    /// How many may be left.
    pub open: u64,
    /// How long to wait in all.
    pub timeout: Duration,
}

impl Drain {
    /// Drains it. An error means that it could not be asked to; whoever waits can only go on.
    pub async fn run(&self) -> Result<()> {
        let begun = Instant::now();
        let deadline = begun + self.timeout;
        sleep(self.drain_delay.min(self.timeout)).await;
        fail(&self.admin).await.context("failed to make Envoy unready")?;
        info!(timeout = ?self.timeout, "Envoy is no longer ready and is draining; waiting for clients to disconnect");
        sleep(self.check_delay.min(deadline.saturating_duration_since(Instant::now()))).await;
        let mut progress = Progress::default();
        loop {
            let open = count_open(&self.admin).await;
            match &open {
                Ok(open) if open.total() <= self.open => {
                    info!(%open, took = ?begun.elapsed(), "Envoy is drained");
                    return Ok(());
                }
                Ok(open) => progress.log(*open, Some(deadline)),
                Err(error) => warn!("cannot count the connections of Envoy: {error:#}"),
            }
            if Instant::now() + self.interval >= deadline {
                let open = open.map_or_else(|_| "an unknown number of connections".to_owned(), |open| open.to_string());
                warn!("{open} did not close within {:?}; Envoy exits anyway", self.timeout);
                return Ok(());
            }
            sleep(self.interval).await;
            // An Envoy that was restarted in between is ready again.
            if let Err(error) = ask(&self.admin, Method::POST, "/healthcheck/fail").await {
                warn!("failed to make Envoy unready: {error:#}");
            }
        }
    }
}

/// Makes an Envoy unready, and its connections drain.
async fn fail(admin: &Path) -> Result<()> {
    let mut pause = PAUSE;
    for _ in 1..ATTEMPTS {
        match ask(admin, Method::POST, "/healthcheck/fail").await {
            Ok(_) => return Ok(()),
            Err(error) => warn!("failed to make Envoy unready, retrying: {error:#}"),
        }
        sleep(pause).await;
        pause *= 5;
    }
    ask(admin, Method::POST, "/healthcheck/fail").await.map(drop)
}

/// Ends the drain of an Envoy that is to stay; says whether it was draining. There is nothing to do where no Envoy listens: one that
/// starts is not draining.
pub async fn undrain(admin: &Path) -> Result<bool> {
    match UnixStream::connect(admin).await {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let info: Value = serde_json::from_str(&ask(admin, Method::GET, "/server_info").await?)?;
    if info["state"] == "LIVE" {
        return Ok(false);
    }
    // One that initializes does not say whether it drains.
    ask(admin, Method::POST, "/healthcheck/ok").await?;
    Ok(info["state"] == "DRAINING")
}

/// What clients have open at an Envoy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// HTTP, TLS and TCP connections.
    connections: u64,
    /// UDP sessions.
    sessions: u64,
}

impl Open {
    fn total(self) -> u64 {
        self.connections.saturating_add(self.sessions)
    }
}

impl fmt::Display for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} connections", self.connections)?;
        if self.sessions > 0 {
            write!(f, " and {} UDP sessions", self.sessions)?;
        }
        Ok(())
    }
}

/// When progress was last logged, and what it was.
#[derive(Default)]
struct Progress(Option<(Open, Instant)>);

impl Progress {
    fn log(&mut self, open: Open, deadline: Option<Instant>) {
        if self.0.is_some_and(|(last, at)| last == open && at.elapsed() < PROGRESS) {
            return;
        }
        self.0 = Some((open, Instant::now()));
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()).as_secs());
        info!(seconds_left = left, "{open} still open");
    }
}

/// Asks an Envoy what clients have open.
pub async fn count_open(admin: &Path) -> Result<Open> {
    let stats = ask(admin, Method::GET, "/stats?filter=downstream_(cx%7Csess)_active%24").await?;
    Ok(count(&stats))
}

/// Of each listener there is a count, and one for each worker; the admin interface counts the question itself. Sessions of UDP have
/// counts of their own.
fn count(stats: &str) -> Open {
    let (mut clients, mut ours, mut sessions) = (0u64, 0u64, 0u64);
    for (name, value) in stats.lines().filter_map(|line| line.split_once(": ")) {
        let Ok(value) = value.trim().parse::<u64>() else { continue };
        let is_listener = name.starts_with("listener.") && !name.contains(".worker_");
        if OURS.contains(&name) {
            ours += value;
        } else if name.starts_with("udp.") {
            sessions += value;
        } else if is_listener && !name.starts_with("listener.admin.") {
            clients += value;
        }
    }
    Open { connections: clients.saturating_sub(ours), sessions }
}

async fn ask(admin: &Path, method: Method, path: &str) -> Result<String> {
    let asking = async {
        let stream =
            UnixStream::connect(admin).await.with_context(|| format!("cannot connect to {}", admin.display()))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let request = Request::builder().method(method).uri(path).header(http::header::HOST, "envoy");
        let response = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        let text = String::from_utf8_lossy(&body).into_owned();
        ensure!(status.is_success(), "{path} answers {status}: {}", text.trim());
        Ok(text)
    };
    timeout(ANSWER, asking).await.with_context(|| format!("no answer from {} in {ANSWER:?}", admin.display()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_connections_of_clients_count() {
        let stats = "http.admin.downstream_cx_active: 1\n\
                     http.ingress_http.downstream_cx_active: 2\n\
                     http.stats-health.downstream_cx_active: 3\n\
                     listener.0.0.0.0_8002.downstream_cx_active: 3\n\
                     listener.0.0.0.0_8080.downstream_cx_active: 2\n\
                     listener.0.0.0.0_8080.worker_0.downstream_cx_active: 2\n\
                     listener.0.0.0.0_8443.downstream_cx_active: 4\n\
                     listener.admin.downstream_cx_active: 1\n\
                     udp.ingress_udp.downstream_sess_active: 7\n";
        let open = count(stats);
        assert_eq!((open.connections, open.sessions, open.total()), (6, 7, 13));
        assert_eq!(open.to_string(), "6 connections and 7 UDP sessions");
        assert_eq!(count(""), Open::default());
    }
}
