//! Draining one Envoy: it turns unready, goes on serving, and is waited for until its clients are gone.
//!
//! In: the Unix socket of its admin interface. Out: the word that it may be ended. An Envoy that fails its health check answers
//! `/ready` with 503, so that nobody sends it new clients, and asks those that it has to go: `connection: close` in HTTP/1
//! answers, GOAWAY in HTTP/2. It takes new connections all the while, because load balancers are slow to learn of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::{Method, Request};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

/// How long the admin interface may take for an answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How often the file is looked for. A hook of another container writes it: there is nothing else to wait for.
const LOOK: Duration = Duration::from_millis(200);
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
    /// How long to wait before connections are counted for the first time: clients may still be sent here.
    pub delay: Duration,
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
        let deadline = Instant::now() + self.timeout;
        ask(&self.admin, Method::POST, "/healthcheck/fail").await.context("cannot make Envoy unready")?;
        info!(timeout = ?self.timeout, "Envoy is unready; waiting for its clients to go");
        sleep(self.delay.min(self.timeout)).await;
        loop {
            let open = connections(&self.admin).await;
            match &open {
                Ok(open) if *open <= self.open => {
                    info!(connections = open, "Envoy is drained");
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) => warn!("cannot count the connections of Envoy: {error:#}"),
            }
            if Instant::now() + self.interval >= deadline {
                warn!(connections = open.ok(), "some clients did not go in {:?}", self.timeout);
                return Ok(());
            }
            sleep(self.interval).await;
        }
    }
}

/// Waits until the file is there that says that Envoy may end.
pub async fn written(file: PathBuf) {
    while !file.exists() {
        sleep(LOOK).await;
    }
}

/// How many connections clients have open.
async fn connections(admin: &Path) -> Result<u64> {
    let stats = ask(admin, Method::GET, "/stats?filter=downstream_cx_active%24").await?;
    Ok(count(&stats))
}

/// Of each listener there is a count, and one for each worker; the admin interface counts the question itself.
fn count(stats: &str) -> u64 {
    let (mut clients, mut ours) = (0u64, 0u64);
    for (name, value) in stats.lines().filter_map(|line| line.split_once(": ")) {
        let Ok(value) = value.trim().parse::<u64>() else { continue };
        let is_listener = name.starts_with("listener.") && !name.contains(".worker_");
        if OURS.contains(&name) {
            ours += value;
        } else if is_listener && !name.starts_with("listener.admin.") {
            clients += value;
        }
    }
    clients.saturating_sub(ours)
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
                     listener.admin.downstream_cx_active: 1\n";
        assert_eq!(count(stats), 6);
        assert_eq!(count(""), 0);
    }
}
