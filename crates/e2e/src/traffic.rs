//! Requests from outside while something happens.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use testbed::{Client, Load};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Requests per second of each protocol.
const RATE: u32 = 50;
/// How often a stream is used.
const PULSE: Duration = Duration::from_millis(200);

/// Requests that go on until they are stopped.
pub struct Traffic {
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
        Traffic { loads, streams: Vec::new(), stop: watch::Sender::new(false) }
    }

    /// The same with a WebSocket that stays open until it is stopped.
    pub async fn with_streams(at: SocketAddr, host: &str) -> Result<Traffic> {
        let mut traffic = Self::start(at, host);
        let mut socket = Client::new(at).host(host).websocket("/").await.context("opening a WebSocket")?;
        let mut stop = traffic.stop.subscribe();
        traffic.streams.push(tokio::spawn(async move {
            let mut messages = 0;
            let begun = Instant::now();
            while tokio::time::timeout(PULSE, stop.wait_for(|stop| *stop)).await.is_err() {
                let text = messages.to_string();
                let answer = socket.ask(&text).await;
                let answer = answer.with_context(|| format!("the WebSocket ended after {:.1?}", begun.elapsed()))?;
                anyhow::ensure!(answer == text, "the WebSocket answered {answer}");
                messages += 1;
            }
            socket.close().await.context("closing the WebSocket")?;
            Ok(messages)
        }));
        Ok(traffic)
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
            let failures = ended.failed.iter().take(3).map(|failed| format!("{protocol}: {}", failed.what)).collect();
            report.add(TrafficReport {
                requests: ended.sent,
                failed: ended.failed.len() as u64,
                gap: ended.gap,
                failures,
            });
        }
        report
    }
}
