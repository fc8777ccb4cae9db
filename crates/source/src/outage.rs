//! An outage, and when there is something to say about it: when it begins, once a minute while it lasts, and when it ends.
//!
//! In: what failed and what worked, with the time. Out: what is to be said, mostly nothing. Whoever tries again several times
//! a second tells of it with this, so that a log has three lines of an outage and not thousands.

use std::time::{Duration, Instant};

/// How often an outage that lasts is told.
const AGAIN: Duration = Duration::from_secs(60);

/// What is to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageEvent {
    /// It has started.
    Started,
    /// It has lasted so long.
    Ongoing(Duration),
    /// It has ended, after so long.
    Ended(Duration),
}

/// Whether something that is tried again and again works.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outage {
    /// Since when it does not, and when that was last said.
    since: Option<(Instant, Instant)>,
}

impl Outage {
    /// It failed.
    pub fn failed(&mut self, now: Instant) -> Option<OutageEvent> {
        match &mut self.since {
            None => {
                self.since = Some((now, now));
                Some(OutageEvent::Started)
            }
            Some((begun, last)) if now.saturating_duration_since(*last) >= AGAIN => {
                *last = now;
                Some(OutageEvent::Ongoing(now.saturating_duration_since(*begun)))
            }
            Some(_) => None,
        }
    }

    /// It worked.
    pub fn worked(&mut self, now: Instant) -> Option<OutageEvent> {
        self.since.take().map(|(begun, _)| OutageEvent::Ended(now.saturating_duration_since(begun)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_when_it_begins_once_a_minute_and_when_it_ends() {
        let (mut outage, begin) = (Outage::default(), Instant::now());
        let after = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!(outage.worked(begin), None);
        let told: Vec<_> = (0..150).filter_map(|second| Some((second, outage.failed(after(second))?))).collect();
        let lasting = |seconds| OutageEvent::Ongoing(Duration::from_secs(seconds));
        assert_eq!(told, [(0, OutageEvent::Started), (60, lasting(60)), (120, lasting(120))]);
        assert_eq!(outage.worked(after(150)), Some(OutageEvent::Ended(Duration::from_secs(150))));
        assert_eq!(outage.worked(after(151)), None);
        assert_eq!(outage.failed(after(152)), Some(OutageEvent::Started), "another one");
    }
}
