//! A steady stream of requests, and an account of every one that went wrong: for tests that a change loses nothing.
//!
//! In: a request, a rate, and what a good answer is. Out: a [`Report`]. The loop is open: a request is due by the clock,
//! whether or not earlier ones were answered, and its latency counts from when it was due; so a stall shows as what it
//! would be to users. Connections are kept alive, as users' are. Like any careful client it sends a request again only
//! when the first try provably did nothing, and says how often.
//!
//! ```no_run
//! # async fn example(client: testbed::Client) {
//! use testbed::Load;
//! let load = Load::of(client.get("/")).per_second(200).start();
//! load.answered(100).await;
//! // … the change under test …
//! load.stop().await.assert_nothing_lost();
//! # }
//! ```

mod pool;
mod report;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::client::{Answer, Request};

pub use report::{Failed, Report};

use pool::Pool;
use report::RequestCounts;

/// Whether an answer is good, and why not.
type Expect = dyn Fn(&Answer) -> Result<(), String> + Send + Sync;
/// What the n-th request is.
type Make = dyn Fn(u64, Request) -> Request + Send + Sync;

/// A load to be started.
#[must_use = "a load goes on from `start`"]
pub struct Plan {
    request: Request,
    make: Box<Make>,
    expect: Box<Expect>,
    rate: f64,
    in_flight: usize,
    connections: usize,
}

impl Plan {
    /// Requests per second; 100 unless told otherwise.
    pub fn per_second(mut self, rate: impl Into<f64>) -> Plan {
        self.rate = rate.into().max(0.001);
        self
    }

    /// How many may be under way at once, 512 unless told otherwise; one that is due then waits, and the wait counts: a
    /// machine that is too slow for the rate is no request lost.
    pub fn in_flight(mut self, most: usize) -> Plan {
        self.in_flight = most.max(1);
        self
    }

    /// Over how many connections HTTP/2 is spread, 4 unless told otherwise; HTTP/1.1 opens what it needs.
    pub fn connections(mut self, count: usize) -> Plan {
        self.connections = count.max(1);
        self
    }

    /// Changes the n-th request, counted from 0: another path, host or header.
    pub fn vary(mut self, make: impl Fn(u64, Request) -> Request + Send + Sync + 'static) -> Plan {
        self.make = Box::new(make);
        self
    }

    /// What a good answer is; status 200 unless told otherwise. The error says what is wrong with it.
    pub fn expect(mut self, expect: impl Fn(&Answer) -> Result<(), String> + Send + Sync + 'static) -> Plan {
        self.expect = Box::new(expect);
        self
    }

    /// Starts; the first request is due at once.
    pub fn start(self) -> Load {
        let (answered, watch) = watch::channel(0);
        let pool = Pool::new(self.request.client().clone(), self.connections);
        let shared = Arc::new(Shared {
            counts: Mutex::new(RequestCounts::default()),
            start: Instant::now(),
            pool,
            answered,
            expect: self.expect,
        });
        let stop = CancellationToken::new();
        let interval = Duration::from_secs_f64(1.0 / self.rate);
        let run = run(shared.clone(), self.request, self.make, interval, self.in_flight, stop.clone());
        Load { shared, answered: watch, stop, task: tokio::spawn(run) }
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan").field("request", &self.request).field("rate", &self.rate).finish_non_exhaustive()
    }
}

/// A load that goes on until it is stopped or dropped.
pub struct Load {
    shared: Arc<Shared>,
    answered: watch::Receiver<u64>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

struct Shared {
    counts: Mutex<RequestCounts>,
    start: Instant,
    pool: Pool,
    /// How many requests have ended, well or not.
    answered: watch::Sender<u64>,
    expect: Box<Expect>,
}

impl Load {
    /// A load of this request again and again.
    pub fn of(request: Request) -> Plan {
        Plan {
            request,
            make: Box::new(|_, request| request),
            expect: Box::new(|answer| match answer.status.as_u16() {
                200 => Ok(()),
                // An answer of Envoy's own has the reason in its body.
                _ => Err(format!("status {}: {:.120}", answer.status, String::from_utf8_lossy(&answer.body))),
            }),
            rate: 100.0,
            in_flight: 512,
            connections: 4,
        }
    }

    /// Waits until this many more requests have ended, well or not.
    pub async fn answered(&self, more: u64) {
        let mut answered = self.answered.clone();
        let goal = *answered.borrow() + more;
        // The sender lives in `self`, so this ends only by reaching the goal.
        let _ = answered.wait_for(|count| *count >= goal).await;
    }

    /// How many requests have failed so far.
    pub fn failed(&self) -> usize {
        self.shared.counts.lock().failed.len()
    }

    /// Sends no more, waits for what is under way, and reports.
    pub async fn stop(mut self) -> Report {
        self.stop.cancel();
        if let Err(e) = (&mut self.task).await {
            std::panic::resume_unwind(e.into_panic());
        }
        let elapsed = self.shared.start.elapsed();
        let counts = std::mem::take(&mut *self.shared.counts.lock());
        counts.report(elapsed, self.shared.pool.opened())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // With the task go the requests that it holds.
        self.task.abort();
    }
}

impl std::fmt::Debug for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Load").field("answered", &*self.answered.borrow()).finish_non_exhaustive()
    }
}

async fn run(
    shared: Arc<Shared>,
    request: Request,
    make: Box<Make>,
    interval: Duration,
    in_flight: usize,
    stop: CancellationToken,
) {
    let permits = Arc::new(Semaphore::new(in_flight));
    let mut requests = JoinSet::new();
    for number in 0u64.. {
        let due = shared.start + interval.mul_f64(number as f64);
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = tokio::time::sleep_until(due) => {}
        }
        while let Some(ended) = requests.try_join_next() {
            pass_on_panic(ended);
        }
        let permit = permits.clone().acquire_owned().await;
        let (shared, request) = (shared.clone(), make(number, request.clone()));
        requests.spawn(async move {
            one(&shared, number, due, request).await;
            drop(permit);
        });
    }
    while let Some(ended) = requests.join_next().await {
        pass_on_panic(ended);
    }
}

/// A test's expectation may panic; that must not pass for success.
fn pass_on_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(e) = ended
        && e.is_panic()
    {
        std::panic::resume_unwind(e.into_panic());
    }
}

/// Sends one request, again when a try was not processed, and books how it ended.
async fn one(shared: &Shared, number: u64, due: Instant, request: Request) {
    let mut tries = 0;
    let ended = loop {
        let (connection, slot) = match shared.pool.take(number).await {
            Ok(taken) => taken,
            Err(failure) => break Err(failure),
        };
        let answer = request.clone().on(connection.clone()).await;
        match answer {
            Err(failure) if failure.is_unprocessed() && tries < 2 => {
                tries += 1;
                shared.pool.discard(slot, &connection).await;
                shared.counts.lock().retried += 1;
            }
            Ok(answer) => {
                shared.pool.give_back(connection, &answer);
                break Ok(answer);
            }
            Err(failure) => {
                shared.pool.discard(slot, &connection).await;
                break Err(failure);
            }
        }
    };
    match ended {
        Err(failure) => {
            let status = failure.partial().map(|answer| answer.status);
            shared.failed(due, status, format!("{failure:?}"));
        }
        Ok(answer) => match (shared.expect)(&answer) {
            Ok(()) => shared.done(|counts| counts.good(due)),
            Err(what) => shared.failed(due, Some(answer.status), what),
        },
    }
}

impl Shared {
    fn failed(&self, due: Instant, status: Option<http::StatusCode>, what: String) {
        let failed = Failed { at: due.duration_since(self.start), took: due.elapsed(), status, what };
        self.done(|counts| counts.failed.push(failed));
    }

    fn done(&self, acks: impl FnOnce(&mut RequestCounts)) {
        let mut counts = self.counts.lock();
        counts.sent += 1;
        acks(&mut counts);
        drop(counts);
        self.answered.send_modify(|count| *count += 1);
    }
}
