//! Traces of batches, sent to a collector by OTLP where that is asked for (`--otlp-traces`).
//!
//! In: the control loop marks when it takes a batch, computes and publishes. Out: one trace for each batch that changed something,
//! with the spans `decode`, `compute`, `publish` and `acknowledge`. Without the flag there is no [`Tracer`], and each mark is a test
//! of an `Option`. The loop never waits for the collector: what does not fit into the queue is dropped and counted in the log.

mod acknowledge;
mod export;
mod otlp;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc;
use xds::{Fleet, Server};

pub use export::{Endpoint, Exporter};

/// How many finished batches may wait for the collector.
const QUEUE: usize = 1024;

/// What the loop does with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Sources read objects.
    Decode,
    /// Rows are computed.
    Compute,
    /// Resources are given to the xDS server.
    Publish,
    /// Proxies acknowledge them.
    Acknowledge,
}

impl Stage {
    const ALL: [Stage; 4] = [Stage::Decode, Stage::Compute, Stage::Publish, Stage::Acknowledge];

    fn name(self) -> &'static str {
        match self {
            Stage::Decode => "decode",
            Stage::Compute => "compute",
            Stage::Publish => "publish",
            Stage::Acknowledge => "acknowledge",
        }
    }
}

/// From the first to the last moment that something was done, and how long in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    begun: Instant,
    ended: Instant,
    busy: Duration,
}

/// One batch.
#[derive(Clone, Debug)]
pub struct BatchTrace {
    /// What the clock says at `begun`.
    clock: SystemTime,
    begun: Instant,
    ended: Instant,
    stages: [Option<Interval>; 4],
    fleets: Vec<Fleet>,
    changes: usize,
    published: bool,
    /// Whether not all proxies had acknowledged it when nobody waited any more.
    unacknowledged: bool,
}

impl BatchTrace {
    fn new() -> Self {
        let begun = Instant::now();
        Self {
            clock: SystemTime::now(),
            begun,
            ended: begun,
            stages: [None; 4],
            fleets: Vec::new(),
            changes: 0,
            published: false,
            unacknowledged: false,
        }
    }

    /// Notes that something was done until now.
    fn mark(&mut self, stage: Stage, begun: Instant, ended: Instant) {
        let busy = ended.saturating_duration_since(begun);
        let known = &mut self.stages[stage as usize];
        *known = Some(match *known {
            Some(known) => Interval { begun: known.begun.min(begun), ended, busy: known.busy + busy },
            None => Interval { begun, ended, busy },
        });
    }

    /// The first moment: what was decoded was so before the batch was taken.
    fn first(&self) -> Instant {
        self.stages.iter().flatten().map(|stage| stage.begun).fold(self.begun, Instant::min)
    }

    /// The last moment: proxies acknowledge after it.
    fn last(&self) -> Instant {
        self.stages.iter().flatten().map(|stage| stage.ended).fold(self.ended, Instant::max)
    }

    /// A moment in nanoseconds since 1970.
    fn nanoseconds(&self, at: Instant) -> u64 {
        let clock = match at.checked_duration_since(self.begun) {
            Some(after) => self.clock + after,
            None => self.clock - self.begun.saturating_duration_since(at),
        };
        let since = clock.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Traces batches, or does nothing.
pub struct Tracer(Option<Tracing>);

struct Tracing {
    current: BatchTrace,
    server: Server,
    finished: mpsc::Sender<BatchTrace>,
    dropped: u64,
}

impl Tracer {
    /// One that does nothing.
    pub fn off() -> Self {
        Self(None)
    }

    /// One that gives batches to an exporter.
    pub fn on(server: Server) -> (Self, mpsc::Receiver<BatchTrace>) {
        let (finished, batches) = mpsc::channel(QUEUE);
        (Self(Some(Tracing { current: BatchTrace::new(), server, finished, dropped: 0 })), batches)
    }

    /// Whether there is anybody to trace for.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// A batch begins.
    pub fn begin(&mut self) {
        if let Some(tracing) = &mut self.0 {
            tracing.current = BatchTrace::new();
        }
    }

    /// Now, if anybody wants to know.
    pub fn now(&self) -> Option<Instant> {
        self.0.as_ref().map(|_| Instant::now())
    }

    /// Something was done since then.
    pub fn done(&mut self, stage: Stage, begun: Option<Instant>) {
        if let (Some(tracing), Some(begun)) = (&mut self.0, begun) {
            tracing.current.mark(stage, begun, Instant::now());
        }
    }

    /// Sources brought changes, which they decoded at that time.
    pub fn took(&mut self, changes: usize, decoded: Option<(Instant, Instant)>) {
        let Some(tracing) = &mut self.0 else { return };
        tracing.current.changes += changes;
        if let Some((begun, ended)) = decoded {
            tracing.current.mark(Stage::Decode, begun, ended);
        }
    }

    /// A fleet was given something.
    pub fn published(&mut self, fleet: &Fleet) {
        let Some(tracing) = &mut self.0 else { return };
        tracing.current.published = true;
        if !tracing.current.fleets.contains(fleet) {
            tracing.current.fleets.push(fleet.clone());
        }
    }

    /// The batch is over. One that brought and published nothing is not worth a trace.
    pub fn end(&mut self) {
        let Some(tracing) = &mut self.0 else { return };
        tracing.current.ended = Instant::now();
        if tracing.current.changes == 0 && !tracing.current.published {
            return;
        }
        let batch = tracing.current.clone();
        match tracing.finished.clone().try_reserve_owned() {
            Ok(place) if batch.published => acknowledge::wait(tracing.server.clone(), batch, place),
            Ok(place) => _ = place.send(batch),
            Err(_) => {
                tracing.dropped += 1;
                if tracing.dropped.is_power_of_two() {
                    tracing::warn!(
                        dropped = tracing.dropped,
                        "traces of batches are dropped: the collector does not keep up"
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_has_no_clock_and_what_is_on_keeps_intervals() {
        let mut off = Tracer::off();
        off.begin();
        assert_eq!(off.now(), None);
        off.done(Stage::Compute, Some(Instant::now()));
        off.end();
        assert!(!off.is_on());

        let mut batch = BatchTrace::new();
        let at = |millis: u64| batch.begun + Duration::from_millis(millis);
        let moments = [at(0), at(2), at(5), at(6)];
        batch.mark(Stage::Compute, moments[0], moments[1]);
        batch.mark(Stage::Compute, moments[2], moments[3]);
        let compute = batch.stages[Stage::Compute as usize].expect("it was marked");
        assert_eq!((compute.begun, compute.ended, compute.busy), (moments[0], moments[3], Duration::from_millis(3)));
        let earlier = batch.begun - Duration::from_millis(1);
        batch.mark(Stage::Decode, earlier, batch.begun);
        assert_eq!((batch.first(), batch.last()), (earlier, moments[3]));
        assert_eq!(batch.nanoseconds(moments[3]) - batch.nanoseconds(earlier), 7_000_000);
    }
}
