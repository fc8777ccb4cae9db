//! The task that writes: takes reports, asks for permits, and keeps a few requests in flight.
//!
//! In: reports, and whether this replica is the leader. Out: requests to the API server, with rate limits of their own. A
//! follower keeps the same state and writes nothing, so a new leader begins at once, and only with what differs.

use crate::{
    Settings,
    event::{self, EventOutcome, PendingEvent},
    event_queue::EventQueue,
    failure_log::{FailureLog, Operation},
    lease::{Leadership, Permit},
    patch,
    rate_limiter::RateLimiter,
    report::{Reporter, Waiting},
    request_error::RequestError,
    statuses::{Outcome, Statuses, Write},
};
use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use model::Code;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use std::{pin::pin, time::Instant};
use tokio::time::{sleep_until, timeout_at};
use tracing::warn;

/// How many requests of each sort are in flight at once.
const WRITES: usize = 8;
const EVENTS: usize = 2;

/// Writes status and events while this replica is the leader.
pub struct Writer {
    client: kube::Client,
    settings: Settings,
    leadership: Leadership,
    reporter: Reporter,
    metrics: Metrics,
}

enum Done {
    Write(Write, Result<Outcome, RequestError>),
    Event(PendingEvent, Result<(EventOutcome, &'static str), RequestError>),
}

struct Work {
    statuses: Statuses,
    event_queue: EventQueue,
    synced: bool,
    /// Whether it was told that somebody else writes, too: once is enough, for it is the same for every object.
    told_contested: bool,
    failure_log: FailureLog,
    write_pace: RateLimiter,
    event_pace: RateLimiter,
    writes: usize,
    events: usize,
    requests: FuturesUnordered<BoxFuture<'static, Done>>,
}

impl Writer {
    pub(crate) fn new(client: kube::Client, settings: Settings, leadership: Leadership, reporter: Reporter) -> Self {
        Self { client, settings, leadership, reporter, metrics: Metrics::default() }
    }

    /// Adds what is counted to a registry.
    pub fn register(&self, registry: &mut Registry) {
        self.metrics.register(registry);
    }

    /// Works until `shutdown`; waits for requests in flight.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = pin!(shutdown);
        let mut leader = self.leadership.watch();
        let now = Instant::now();
        let mut work = Work {
            statuses: Statuses::new(&self.settings),
            event_queue: EventQueue::default(),
            synced: false,
            told_contested: false,
            failure_log: FailureLog::default(),
            write_pace: RateLimiter::new(self.settings.writes, now),
            event_pace: RateLimiter::new(self.settings.events, now),
            writes: 0,
            events: 0,
            requests: FuturesUnordered::new(),
        };
        loop {
            let wake = self.begin(&mut work);
            let rest = async {
                match wake {
                    Some(wake) => sleep_until(wake.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = &mut shutdown => break,
                waiting = self.reporter.next() => self.take(&mut work, waiting),
                Some(done) = work.requests.next() => self.done(&mut work, done),
                // The sender lives as long as our leadership does.
                _ = leader.changed() => {}
                () = rest => {}
            }
            self.metrics.behind.set(i64::try_from(work.statuses.behind() + work.writes).unwrap_or(i64::MAX));
        }
        while let Some(done) = work.requests.next().await {
            self.done(&mut work, done);
        }
    }

    fn take(&self, work: &mut Work, waiting: Waiting) {
        let now = Instant::now();
        let is_new = work.synced && self.leadership.is_leader();
        if let Some(identity) = waiting.identity {
            work.statuses.set_identity(identity, now);
        }
        for (key, object) in waiting.objects {
            work.event_queue.observe(&key, object.as_ref().map(|object| object.meta().uid.to_string()), now);
            work.statuses.observe(&key, object, now);
        }
        for (key, verdicts) in waiting.verdicts {
            work.statuses.claim(&key, verdicts.clone(), now);
            work.event_queue.translated(&key, verdicts, is_new, now);
        }
        for (key, facts) in waiting.facts {
            work.statuses.translate(&key, facts, now);
        }
        for (key, programmed) in waiting.programmed {
            work.statuses.program(&key, programmed, now);
        }
        for (key, verdicts) in waiting.problems {
            work.event_queue.read(&key, verdicts, is_new, now);
        }
        if waiting.synced {
            work.synced = true;
            work.statuses.synced(now);
        }
    }

    /// Starts the requests that are due; returns when the next may be.
    fn begin(&self, work: &mut Work) -> Option<Instant> {
        if !work.synced || !self.leadership.is_leader() {
            return None;
        }
        let now = Instant::now();
        let mut wake: Option<Instant> = None;
        let mut at = |moment: Instant| wake = Some(wake.map_or(moment, |wake| wake.min(moment)));
        while work.writes < WRITES
            && let Some(next) = work.statuses.next_at()
        {
            let ready = next.max(work.write_pace.ready_at(now));
            if ready > now {
                at(ready);
                break;
            }
            let Some(write) = work.statuses.next(now) else { continue };
            let Some(permit) = self.leadership.permit() else {
                work.statuses.done(write, Outcome::Failed, now);
                break;
            };
            work.write_pace.spend();
            work.writes += 1;
            let version = self.settings.versions.of(write.key.kind);
            let manager = self.settings.manager.clone();
            work.requests.push(Box::pin(send_write(self.client.clone(), manager, version, write, permit)));
        }
        while work.events < EVENTS
            && let Some(next) = work.event_queue.next_at()
        {
            let ready = next.max(work.event_pace.ready_at(now));
            if ready > now {
                at(ready);
                break;
            }
            let statuses = &work.statuses;
            let Some(it) = work.event_queue.next(now, |key| statuses.uid(key)) else { continue };
            let Some(permit) = self.leadership.permit() else {
                work.event_queue.done(&it, EventOutcome::Failed, now);
                break;
            };
            work.event_pace.spend();
            work.events += 1;
            let version = self.settings.versions.of(it.key.kind);
            let instance = self.settings.instance.clone();
            work.requests.push(Box::pin(send_event(self.client.clone(), instance, version, it, permit)));
        }
        wake
    }

    fn done(&self, work: &mut Work, done: Done) {
        let now = Instant::now();
        match done {
            Done::Write(write, sent) => {
                work.writes -= 1;
                let kind = write.key.kind.name();
                let (outcome, result) = match sent {
                    Ok(outcome) => {
                        if matches!(outcome, Outcome::Written(_)) {
                            work.failure_log.written(Operation::Status, &write.key, now);
                        }
                        let result = outcome.word();
                        (outcome, result)
                    }
                    Err(error) => {
                        work.failure_log.failed(Operation::Status, &write.key, &error, now);
                        (Outcome::Failed, error.word())
                    }
                };
                self.metrics.writes.get_or_create(&Request { kind, result }).inc();
                if let Some(lag) = work.statuses.done(write, outcome, now) {
                    self.metrics.lag.observe(lag.as_secs_f64());
                }
                if let Some(object) = work.statuses.take_contested()
                    && !std::mem::replace(&mut work.told_contested, true)
                {
                    let code = Code::StatusContested;
                    warn!(%code, "{code}: {}: {object} ({})", code.title(), code.help());
                }
            }
            Done::Event(it, sent) => {
                work.events -= 1;
                let kind = it.key.kind.name();
                let (outcome, result) = match sent {
                    Ok((outcome, result)) => {
                        if matches!(outcome, EventOutcome::Written(_)) {
                            work.failure_log.written(Operation::Event, &it.key, now);
                        }
                        (outcome, result)
                    }
                    Err(error) => {
                        work.failure_log.failed(Operation::Event, &it.key, &error, now);
                        match error.is_refusal() {
                            true => (EventOutcome::Denied, "refused"),
                            false => (EventOutcome::Failed, error.word()),
                        }
                    }
                };
                self.metrics.events.get_or_create(&Request { kind, result }).inc();
                work.event_queue.done(&it, outcome, now);
            }
        }
    }
}

async fn send_write(
    client: kube::Client,
    manager: String,
    version: &'static str,
    write: Write,
    permit: Permit,
) -> Done {
    let sent = timeout_at(permit.until().into(), patch::send(&client, &manager, version, &write)).await;
    Done::Write(write, sent.unwrap_or(Err(RequestError::Late)))
}

async fn send_event(
    client: kube::Client,
    instance: String,
    version: &'static str,
    it: PendingEvent,
    permit: Permit,
) -> Done {
    let sent = timeout_at(permit.until().into(), event::send(&client, &instance, version, &it)).await;
    Done::Event(it, sent.unwrap_or(Err(RequestError::Late)))
}

/// A request and its result.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    kind: &'static str,
    /// One word.
    result: &'static str,
}

/// What the writer counts, under `sesame_status_` and `sesame_events_`.
#[derive(Clone, Debug)]
struct Metrics {
    writes: Family<Request, Counter>,
    lag: Histogram,
    behind: Gauge,
    events: Family<Request, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0];
        Self {
            writes: Family::default(),
            lag: Histogram::new(seconds),
            behind: Gauge::default(),
            events: Family::default(),
        }
    }
}

impl Metrics {
    fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("sesame");
        registry.register("status_writes", "Status updates, by result", self.writes.clone());
        registry.register(
            "status_lag_seconds",
            "Seconds from a status change to its update on the API server",
            self.lag.clone(),
        );
        registry.register("status_behind", "Objects whose status update is outstanding", self.behind.clone());
        registry.register("events", "Kubernetes Events, by result", self.events.clone());
    }
}
