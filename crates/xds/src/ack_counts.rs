//! How many clients stand how to one version of one resource, and what that says about the resource.
//!
//! In: counts per version of Envoy, of this replica or added up over several. Out: whether the resource is good, bad, or
//! whether it is too early to tell. A version of Envoy may be too old for what another takes, so each is counted by itself;
//! and a single client that refuses what its like take has a problem of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// For how long a client may not have what it should before it counts as stuck and nobody waits for it.
pub const STUCK: Duration = Duration::from_secs(10);

/// How many clients stand how to one version of one resource. Those that did not ask for it are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AckCounts {
    /// They have it.
    pub have: u32,
    /// They do not have it yet.
    pub behind: u32,
    /// They have not had it for [`STUCK`].
    pub stuck: u32,
    /// They refused it.
    pub refused: u32,
}

impl AckCounts {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: AckCounts) -> AckCounts {
        AckCounts {
            have: self.have.saturating_add(other.have),
            behind: self.behind.saturating_add(other.behind),
            stuck: self.stuck.saturating_add(other.stuck),
            refused: self.refused.saturating_add(other.refused),
        }
    }

    /// How many were counted.
    pub fn clients(self) -> u32 {
        let sum = self.have.saturating_add(self.behind).saturating_add(self.stuck);
        sum.saturating_add(self.refused)
    }
}

/// FleetAckCounts by the version of Envoy.
pub type FleetAckCounts = BTreeMap<Arc<str>, AckCounts>;

/// Adds another replica's counts.
pub fn add(counts: &mut FleetAckCounts, others: &FleetAckCounts) {
    for (version, ack_counts) in others {
        let sum = counts.entry(version.clone()).or_default();
        *sum = sum.plus(*ack_counts);
    }
}

/// What the counts say: `Some(false)` if all clients of some version of Envoy refused it, `Some(true)` if everybody has
/// answered otherwise, `None` while somebody has yet to answer, or nobody was asked.
pub fn decide(counts: &FleetAckCounts) -> Option<bool> {
    let refused = |ack_counts: &AckCounts| ack_counts.refused > 0 && ack_counts.have == 0 && ack_counts.behind == 0;
    if counts.values().any(refused) {
        return Some(false);
    }
    let answered = counts.values().all(|ack_counts| ack_counts.behind == 0)
        && counts.values().any(|ack_counts| ack_counts.have > 0);
    answered.then_some(true)
}

/// As [`decide`], without waiting any longer: whoever has yet to answer counts as stuck.
pub fn decide_now(mut counts: FleetAckCounts) -> Option<bool> {
    for ack_counts in counts.values_mut() {
        ack_counts.stuck = ack_counts.stuck.saturating_add(std::mem::take(&mut ack_counts.behind));
    }
    decide(&counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counts: &[(&str, u32, u32, u32)]) -> FleetAckCounts {
        let ack_counts = |(version, have, behind, refused): &(&str, u32, u32, u32)| {
            (Arc::from(*version), AckCounts { have: *have, behind: *behind, stuck: 0, refused: *refused })
        };
        counts.iter().map(ack_counts).collect()
    }

    #[test]
    fn all_of_one_version_of_envoy_make_a_verdict() {
        assert_eq!(decide(&counts(&[("1.40", 0, 0, 1)])), Some(false), "the only client counts");
        assert_eq!(decide(&counts(&[("1.40", 0, 0, 3), ("1.41", 7, 0, 0)])), Some(false));
        assert_eq!(decide(&counts(&[("1.40", 2, 0, 1)])), Some(true), "one of many is reported only");
        assert_eq!(decide(&counts(&[("1.40", 0, 1, 1)])), None, "somebody has yet to answer");
        assert_eq!(decide(&counts(&[("1.40", 1, 1, 0)])), None);
        assert_eq!(decide(&counts(&[])), None, "nobody was asked");
    }

    #[test]
    fn who_is_stuck_is_not_waited_for() {
        let stuck = AckCounts { refused: 1, stuck: 1, ..AckCounts::default() };
        assert_eq!(decide(&[("1.40".into(), stuck)].into()), Some(false));
    }

    #[test]
    fn at_the_end_nobody_is_waited_for() {
        let silent = counts(&[("1.40", 20, 1, 1)]);
        assert_eq!(decide(&silent), None);
        assert_eq!(decide_now(silent), Some(true), "one of many is reported only");
        assert_eq!(decide_now(counts(&[("1.40", 0, 1, 1)])), Some(false), "nobody has it");
        assert_eq!(decide_now(counts(&[("1.40", 0, 1, 0)])), None, "nobody has answered");
    }
}
