//! The log lines about requests that the API server answers with an error.
//!
//! In: what failed and what was written, with the time. Out: for each operation, kind of object and HTTP status one line when it begins to fail, one a
//! minute with the number of failures while that lasts, and one when objects are written again; everything else is logged at
//! debug. A right that is missing fails for every object and every retry: ten thousand objects have the same three lines as one.

use crate::request_error::RequestError;
use kinds::Kind;
use model::ObjectRef;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use tracing::{debug, info, warn};

/// How often a failure that lasts is logged.
const INTERVAL: Duration = Duration::from_secs(60);
/// The HTTP statuses that are about the one object in the request.
const OF_ONE_OBJECT: [u16; 2] = [400, 422];

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// The status of an object.
    Status,
    /// An event about an object.
    Event,
}

impl Operation {
    fn word(self) -> &'static str {
        match self {
            Operation::Status => "status",
            Operation::Event => "event",
        }
    }
}

/// Failures with one HTTP status.
#[derive(Debug)]
struct Failing {
    /// The object of the last line, and since when requests fail; `None` after objects were written again.
    current: Option<(ObjectRef, Instant)>,
    /// When the last line was written.
    logged: Instant,
    /// Failures since then.
    unlogged: u64,
}

/// What failed lately.
#[derive(Debug, Default)]
pub(crate) struct FailureLog {
    failing: BTreeMap<(Operation, Kind, u16), Failing>,
}

impl FailureLog {
    /// Logs a failed request.
    pub fn failed(&mut self, operation: Operation, object: &ObjectRef, error: &RequestError, now: Instant) {
        let (what, then) =
            (operation.word(), if error.is_refusal() && operation == Operation::Event { "" } else { "; retrying" });
        let line = error.status().and_then(|status| self.count(operation, object, status, now));
        match line {
            Some(0) => warn!(%object, %error, "failed to write {what}{then}"),
            Some(failures) => warn!(%object, %error, failures, "still failing to write {what}{then}"),
            None => debug!(%object, %error, "failed to write {what}{then}"),
        }
    }

    /// Logs that objects of a kind are written again, if they were not.
    pub fn written(&mut self, operation: Operation, object: &ObjectRef, now: Instant) {
        if let Some(duration) = self.end(operation, object, now) {
            info!(%object, ?duration, "{} is written again", operation.word());
        }
    }

    /// Counts a failure; gives the number of failures since the last line if it is time for another.
    fn count(&mut self, operation: Operation, object: &ObjectRef, status: u16, now: Instant) -> Option<u64> {
        let row = (operation, object.kind, status);
        let Some(failing) = self.failing.get_mut(&row) else {
            self.failing.insert(row, Failing { current: Some((object.clone(), now)), logged: now, unlogged: 0 });
            return Some(0);
        };
        failing.unlogged += 1;
        if now.saturating_duration_since(failing.logged) < INTERVAL {
            return None;
        }
        failing.logged = now;
        let failures = std::mem::take(&mut failing.unlogged);
        match &mut failing.current {
            Some((current, _)) => {
                current.clone_from(object);
                Some(failures)
            }
            // Objects were written since: this is a failure of its own.
            None => {
                failing.current = Some((object.clone(), now));
                Some(0)
            }
        }
    }

    /// Ends the failures that an object written now disproves; says how long they lasted.
    ///
    /// A right may be missing in one namespace alone, and an object may be refused for what is in it, so not every success is a proof.
    fn end(&mut self, operation: Operation, object: &ObjectRef, now: Instant) -> Option<Duration> {
        let rows = self.failing.iter_mut().filter(|((of, kind, _), _)| *of == operation && *kind == object.kind);
        let ended = rows.filter_map(|((_, _, status), failing)| {
            let is_ended = |(named, _): &mut (ObjectRef, Instant)| {
                named == object || named.namespace == object.namespace && !OF_ONE_OBJECT.contains(status)
            };
            let (_, since) = failing.current.take_if(is_ended)?;
            Some(now.saturating_duration_since(since))
        });
        ended.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::kind;

    fn object(namespace: &str, name: &str) -> ObjectRef {
        ObjectRef::new(kind::INGRESS, namespace, name)
    }

    fn after(begin: Instant, seconds: u64) -> Instant {
        begin + Duration::from_secs(seconds)
    }

    #[test]
    fn a_failure_of_many_objects_is_one_line_a_minute() {
        let (mut log, begin) = (FailureLog::default(), Instant::now());
        let mut lines = Vec::new();
        for second in 0..=120 {
            for name in ["a", "b", "c"] {
                let count = log.count(Operation::Status, &object("shop", name), 403, after(begin, second));
                lines.extend(count.map(|count| (second, count)));
            }
        }
        assert_eq!(lines, [(0, 0), (60, 180), (120, 180)]);
        let written = log.end(Operation::Status, &object("shop", "c"), after(begin, 130));
        assert_eq!(written, Some(Duration::from_secs(130)));
        assert_eq!(log.end(Operation::Status, &object("shop", "a"), after(begin, 131)), None, "said once");
        let again = log.count(Operation::Status, &object("shop", "a"), 403, after(begin, 3600));
        assert_eq!(again, Some(0), "a failure after a success is a new one");
    }

    #[test]
    fn statuses_kinds_and_operations_are_told_apart() {
        let (mut log, now) = (FailureLog::default(), Instant::now());
        let service = ObjectRef::new(kind::SERVICE, "shop", "a");
        assert_eq!(log.count(Operation::Status, &object("shop", "a"), 403, now), Some(0));
        assert_eq!(log.count(Operation::Status, &object("shop", "a"), 500, now), Some(0));
        assert_eq!(log.count(Operation::Event, &object("shop", "a"), 403, now), Some(0));
        assert_eq!(log.count(Operation::Status, &service, 403, now), Some(0));
        assert_eq!(log.count(Operation::Status, &service, 403, now), None);
    }

    #[test]
    fn what_comes_and_goes_is_no_flood_either() {
        let (mut log, begin) = (FailureLog::default(), Instant::now());
        let key = object("shop", "a");
        let lines = (0..60).filter(|second| {
            let now = after(begin, *second);
            let failed = log.count(Operation::Status, &key, 429, now).is_some();
            let ended = log.end(Operation::Status, &key, now).is_some();
            failed || ended
        });
        assert_eq!(lines.collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn a_success_elsewhere_ends_nothing() {
        let (mut log, now) = (FailureLog::default(), Instant::now());
        log.count(Operation::Status, &object("shop", "a"), 403, now);
        log.count(Operation::Status, &object("cart", "a"), 422, now);
        assert_eq!(log.end(Operation::Status, &object("other", "a"), now), None, "the right is for one namespace");
        assert_eq!(log.end(Operation::Event, &object("shop", "a"), now), None, "another right");
        assert_eq!(log.end(Operation::Status, &object("cart", "b"), now), None, "the other one is not valid");
        assert_eq!(log.end(Operation::Status, &object("cart", "a"), now), Some(Duration::ZERO));
    }
}
