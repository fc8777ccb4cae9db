//! Whether the API server can be reached: in the log and as metrics.
//!
//! In: the results of requests, from every caller. Out: one log line when an outage begins, one a minute, one when it ends, each
//! with the address; `sesame_apiserver_connected`, and for each kind the time of the last event.

use crate::{
    Subject,
    outage::{Outage, OutageEvent},
};
use kinds::Kind;
use parking_lot::Mutex;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};
use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, atomic::AtomicU64},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tracing::{info, warn};

/// The connection to one API server. Clones are handles of the same one.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
    caller: &'static str,
}

struct Shared {
    address: Box<str>,
    failing: Mutex<Failing>,
    connected: Gauge,
    last_event: Family<OfKind, Gauge<f64, AtomicU64>>,
    /// What is watched, and no change of it arrives.
    stalled: Mutex<BTreeSet<String>>,
    /// What is to be watched, and has not been listed yet.
    unlisted: Mutex<BTreeSet<String>>,
    slowness: Mutex<Slowness>,
}

/// Who gets no answers, and the outage that this makes.
///
/// A watch may deliver events while a write hangs. So an outage ends when everybody who failed is answered again, not when
/// anybody is: else each success of one caller and each failure of another would be a line in the log.
#[derive(Default)]
struct Failing {
    callers: BTreeSet<&'static str>,
    outage: Outage,
    /// When a request last failed.
    last: Option<Instant>,
}

impl Failing {
    fn failed(&mut self, caller: &'static str, now: Instant) -> Option<OutageEvent> {
        self.callers.insert(caller);
        self.last = Some(now);
        self.outage.failed(now)
    }

    fn answered(&mut self, caller: &'static str, now: Instant) -> Option<OutageEvent> {
        self.callers.remove(caller);
        if self.callers.is_empty() { self.outage.worked(now) } else { None }
    }

    /// Whether no request has failed for a while.
    fn is_failure_free(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.saturating_duration_since(last) >= FAILURE_FREE)
    }
}

fn joined(names: &BTreeSet<String>) -> Option<String> {
    (!names.is_empty()).then(|| names.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
}

/// For how long no request may have failed before an event of a watch ends an outage.
const FAILURE_FREE: Duration = Duration::from_secs(30);
/// How long a request may take before it is logged as slow: the API server answers, and everything is late.
const SLOW: Duration = Duration::from_secs(5);
/// For how long no request may have been slow before it is over.
const SLOW_FREE: Duration = Duration::from_secs(60);

/// Whether requests take long. What is read comes late then, and nothing else does: whoever is not told looks for the fault in Sesame.
#[derive(Default)]
struct Slowness {
    outage: Outage,
    /// When a request was last slow. Others may be fast meanwhile, which proves nothing.
    last: Option<Instant>,
}

impl Slowness {
    fn took(&mut self, time: Duration, now: Instant) -> Option<OutageEvent> {
        if time > SLOW {
            self.last = Some(now);
            return self.outage.failed(now);
        }
        let is_over = self.last.is_none_or(|last| now.saturating_duration_since(last) >= SLOW_FREE);
        if is_over { self.outage.worked(now) } else { None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    kind: &'static str,
}

impl Connection {
    /// To the API server at an address. It is not known whether it answers.
    pub fn new(address: impl Into<Box<str>>) -> Self {
        let (failing, connected, last_event, stalled, unlisted, slowness) = Default::default();
        let shared = Shared { address: address.into(), failing, connected, last_event, stalled, unlisted, slowness };
        Self { shared: Arc::new(shared), caller: "watches" }
    }

    /// The same connection for another caller: a failure that it reports ends with a success that it reports.
    #[must_use]
    pub fn for_caller(&self, caller: &'static str) -> Self {
        Self { shared: self.shared.clone(), caller }
    }

    /// The subject of problems of the connection. The connection itself writes them to the log.
    pub fn subject() -> Subject {
        Subject::Source("the API server".into())
    }

    /// The address of the API server.
    pub fn address(&self) -> &str {
        &self.shared.address
    }

    /// A request got no answer.
    pub fn failed(&self, why: &str) {
        // rustls ends some of its messages with the address of a page about itself.
        let why = why.split(": https://docs.rs/").next().unwrap_or(why);
        self.shared.connected.set(0);
        let address = self.address();
        match self.shared.failing.lock().failed(self.caller, Instant::now()) {
            Some(OutageEvent::Started) => {
                warn!(address, why, "API server unreachable; the last known configuration stays in effect");
            }
            Some(OutageEvent::Ongoing(duration)) => {
                warn!(
                    address,
                    why,
                    ?duration,
                    "API server still unreachable; the last known configuration stays in effect"
                );
            }
            Some(OutageEvent::Ended(_)) | None => {}
        }
    }

    /// A request got an answer, whatever it was.
    pub fn answered(&self) {
        let mut failing = self.shared.failing.lock();
        let event = failing.answered(self.caller, Instant::now());
        self.shared.connected.set(i64::from(failing.callers.is_empty()));
        if let Some(OutageEvent::Ended(duration)) = event {
            info!(address = self.address(), ?duration, "API server reachable again");
        }
    }

    /// A request was answered after so long.
    pub(super) fn took(&self, url: &str, time: Duration) {
        let (address, path) = (self.address(), url.split('?').next().unwrap_or(url));
        match self.shared.slowness.lock().took(time, Instant::now()) {
            Some(OutageEvent::Started | OutageEvent::Ongoing(_)) => {
                warn!(address, path, took = ?time, "API server slow; changes of objects take effect late");
            }
            Some(OutageEvent::Ended(duration)) => info!(address, ?duration, "API server no longer slow"),
            None => {}
        }
    }

    /// Takes the result of a request; says whether there was an answer.
    pub fn note<T>(&self, answer: &kube::Result<T>) -> bool {
        match answer {
            Ok(_) | Err(kube::Error::Api(_)) => {
                self.answered();
                true
            }
            Err(error) => {
                self.failed(&super::api::with_causes(error));
                false
            }
        }
    }

    /// A list, an event or a bookmark of a kind has arrived. While requests fail, that ends no outage: events arrive over connections that are
    /// open, and requests may need new ones.
    pub(super) fn saw_event(&self, kind: Kind) {
        if self.shared.failing.lock().is_failure_free(Instant::now()) {
            self.answered();
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.shared.last_event.get_or_create(&OfKind { kind: kind.name() }).set(now.as_secs_f64());
    }

    /// A watch misses changes, or does so no longer.
    pub(super) fn stalled(&self, target: &str, is_stalled: bool) {
        let mut stalled = self.shared.stalled.lock();
        if is_stalled {
            stalled.insert(target.to_owned());
        } else {
            stalled.remove(target);
        }
    }

    /// The watches that miss changes, as text; none if all is well.
    pub fn stalled_watches(&self) -> Option<String> {
        joined(&self.shared.stalled.lock())
    }

    /// A target is to be listed.
    pub(super) fn lists(&self, target: &str) {
        self.shared.unlisted.lock().insert(target.to_owned());
    }

    /// A target was listed, or is not there.
    pub(super) fn listed(&self, target: &str) {
        self.shared.unlisted.lock().remove(target);
    }

    /// What has not been listed yet, as text; none if everything is known.
    pub fn pending_lists(&self) -> Option<String> {
        joined(&self.shared.unlisted.lock())
    }

    /// Adds `sesame_apiserver_connected` and `sesame_source_last_event_timestamp_seconds` to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let connected = self.shared.connected.clone();
        registry.register("sesame_apiserver_connected", "1 if the API server answers, else 0", connected);
        registry.register(
            "sesame_source_last_event_timestamp_seconds",
            "Time of the last watch event for each kind, in seconds since the epoch; bookmarks arrive about once a minute",
            self.shared.last_event.clone(),
        );
    }
}

impl Default for Connection {
    fn default() -> Self {
        Self::new("unknown")
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connection").field(&self.shared.address).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_api_server_is_told_when_it_begins_once_a_minute_and_when_it_ends() {
        let (mut slowness, begin) = (Slowness::default(), Instant::now());
        let (slow, fast) = (Duration::from_secs(10), Duration::from_millis(10));
        assert_eq!(slowness.took(fast, begin), None);
        let told: Vec<_> =
            (0..10).filter_map(|call| slowness.took(slow, begin + slow * call).map(|it| (call, it))).collect();
        assert_eq!(told, [(0, OutageEvent::Started), (6, OutageEvent::Ongoing(slow * 6))]);
        assert_eq!(slowness.took(fast, begin + slow * 10), None, "others are slow");
        assert_eq!(slowness.took(fast, begin + slow * 20), Some(OutageEvent::Ended(slow * 20)));
    }

    #[test]
    fn an_event_over_an_open_connection_ends_no_outage_while_requests_fail() {
        let connection = Connection::new("https://192.0.2.1:6443");
        connection.failed("no connection");
        connection.saw_event(kinds::kind::SERVICE);
        assert_eq!(connection.shared.connected.get(), 0);
        connection.shared.failing.lock().last = Instant::now().checked_sub(FAILURE_FREE);
        connection.saw_event(kinds::kind::SERVICE);
        assert_eq!(connection.shared.connected.get(), 1);
    }

    #[test]
    fn an_outage_of_one_caller_is_one_outage_although_others_are_answered() {
        let (mut failing, begin) = (Failing::default(), Instant::now());
        let after = |seconds| begin + Duration::from_secs(seconds);
        let mut told = Vec::new();
        for second in 0..100 {
            told.extend(failing.failed("leader lease", after(second)));
            told.extend(failing.answered("watches", after(second)));
        }
        assert_eq!(told, [OutageEvent::Started, OutageEvent::Ongoing(Duration::from_secs(60))]);
        assert_eq!(failing.answered("leader lease", after(100)), Some(OutageEvent::Ended(Duration::from_secs(100))));
        assert_eq!(failing.failed("watches", after(101)), Some(OutageEvent::Started));
        assert_eq!(failing.answered("leader lease", after(102)), None);
        assert_eq!(failing.answered("watches", after(103)), Some(OutageEvent::Ended(Duration::from_secs(2))));
    }
}
