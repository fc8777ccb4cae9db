//! Requests from outside while something happens.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use testbed::load::Failed;
use testbed::{Client, Load};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::stream::{Protocol, Stream};

/// Requests per second of each protocol.
const RATE: u32 = 50;
/// How many failures of each protocol are described.
const DESCRIBED: usize = 20;
/// How often a stream is used.
const PULSE: Duration = Duration::from_millis(200);

/// Streams of each protocol: more than one, so that they are not all on one Envoy.
const STREAMS: usize = 2;

/// Requests that go on until they are stopped.
pub struct Traffic {
    at: SocketAddr,
    loads: [(&'static str, Load); 2],
    streams: Vec<JoinHandle<Result<u64>>>,
    stop: watch::Sender<bool>,
}

/// What became of them.
#[derive(Clone, Debug, Default)]
pub struct TrafficReport {
    /// How many there were: requests, and messages on streams.
    pub requests: u64,
    /// How many failed.
    pub failed: u64,
    /// The longest time without an answer.
    pub gap: Duration,
    /// What went wrong, in words.
    pub failures: Vec<String>,
}

impl TrafficReport {
    /// Adds another.
    pub fn add(&mut self, other: TrafficReport) {
        self.requests += other.requests;
        self.failed += other.failed;
        self.gap = self.gap.max(other.gap);
        self.failures.extend(other.failures);
    }
}

impl Traffic {
    /// Starts requests by HTTP/1.1 and HTTP/2 for a host.
    pub fn start(at: SocketAddr, host: &str) -> Traffic {
        let client = || Client::new(at).host(host).timeout(Duration::from_secs(10));
        let load = |client: Client| Load::of(client.get("/")).per_second(RATE).start();
        let loads = [("HTTP/1.1", load(client())), ("HTTP/2", load(client().http2()))];
        Traffic { at, loads, streams: Vec::new(), stop: watch::Sender::new(false) }
    }

    /// Opens streams of every protocol; they stay open until they are closed here.
    pub async fn open_streams(&mut self) -> Result<()> {
        self.stop.send_replace(false);
        for protocol in Protocol::ALL.into_iter().flat_map(|protocol| [protocol; STREAMS]) {
            let stream = protocol.open(self.at).await?;
            self.streams.push(tokio::spawn(used(protocol, stream, self.stop.subscribe())));
        }
        Ok(())
    }

    /// Waits until each protocol has had this many more answers.
    pub async fn answered(&self, more: u64) {
        for (_, load) in &self.loads {
            load.answered(more).await;
        }
    }

    /// Closes the streams as a client would; requests go on.
    pub async fn close_streams(&mut self) -> TrafficReport {
        self.stop.send_replace(true);
        let mut report = TrafficReport::default();
        for stream in self.streams.drain(..) {
            report.requests += 1;
            match stream.await {
                Ok(Ok(messages)) => report.requests += messages,
                Ok(Err(error)) => {
                    report.failed += 1;
                    report.failures.push(format!("{error:#}"));
                }
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            }
        }
        report
    }

    /// Ends all of it.
    pub async fn stop(mut self) -> TrafficReport {
        let mut report = self.close_streams().await;
        for (protocol, load) in self.loads {
            let ended = load.stop().await;
            report.add(TrafficReport {
                requests: ended.sent,
                failed: ended.failed.len() as u64,
                gap: ended.gap,
                failures: described(protocol, &ended.failed),
            });
        }
        report
    }
}

/// The first of the requests that failed, in words: when each was due, counted from the first request, how long it took, and its answer.
fn described(protocol: &str, failed: &[Failed]) -> Vec<String> {
    let describe = |it: &Failed| format!("{protocol}: at {:.1?}, after {:.1?}: {}", it.at, it.took, it.what);
    let mut texts: Vec<String> = failed.iter().take(DESCRIBED).map(describe).collect();
    if failed.len() > DESCRIBED {
        texts.push(format!("{protocol}: and {} more", failed.len() - DESCRIBED));
    }
    texts
}

/// Uses a stream until it is to be closed; gives the number of messages.
async fn used(protocol: Protocol, mut stream: Stream, mut stop: watch::Receiver<bool>) -> Result<u64> {
    let (begun, mut messages) = (Instant::now(), 0_u64);
    while tokio::time::timeout(PULSE, stop.wait_for(|stop| *stop)).await.is_err() {
        let answered = stream.ask(&messages.to_string()).await;
        answered.with_context(|| format!("a {} ended after {:.1?}", protocol.name(), begun.elapsed()))?;
        messages += 1;
    }
    stream.close().await?;
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_when_it_was_how_long_it_took_and_what_was_answered() {
        let failed = |second: u64| Failed {
            at: Duration::from_secs(second),
            took: Duration::from_millis(250),
            status: None,
            what: "status 503 Service Unavailable: upstream connect error".to_owned(),
        };
        let texts = described("HTTP/2", &(0..25).map(failed).collect::<Vec<_>>());
        let expected = "HTTP/2: at 3.0s, after 250.0ms: status 503 Service Unavailable: upstream connect error";
        assert_eq!((texts.len(), &*texts[3], &*texts[20]), (21, expected, "HTTP/2: and 5 more"));
        assert!(described("HTTP/2", &[]).is_empty());
    }
}
