//! What a candidate has seen of the lease, and whether it may take it.
//!
//! Pure: the lease as the API server shows it and our own clock in, a yes or no out.

use k8s_openapi::api::coordination::v1::LeaseSpec;
use std::time::{Duration, Instant};

/// The lease as it was last seen, and since when it has been so.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    spec: LeaseSpec,
    since: Instant,
}

impl Sight {
    /// What is seen now, after what was seen before.
    pub fn next(before: Option<Sight>, spec: LeaseSpec, now: Instant) -> Sight {
        match before {
            Some(before) if before.spec == spec => before,
            _ => Sight { spec, since: now },
        }
    }

    pub fn is_held_by(&self, identity: &str) -> bool {
        self.spec.holder_identity.as_deref() == Some(identity)
    }

    /// When the lease may be taken from its holder: at once if there is none.
    pub fn free_at(&self) -> Instant {
        let held = self.spec.holder_identity.as_deref().is_some_and(|holder| !holder.is_empty());
        let seconds = self.spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        if held { self.since + Duration::from_secs(seconds.unwrap_or_default()) } else { self.since }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, transitions: i32) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(15),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn a_lease_is_free_its_duration_after_we_saw_it_change() {
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let sight = Sight::next(None, lease("a", 1), begin);
        assert_eq!(sight.free_at(), after(15));
        let same = Sight::next(Some(sight.clone()), lease("a", 1), after(9));
        assert_eq!(same.free_at(), after(15), "seeing the same again is no news");
        let renewed = Sight::next(Some(sight), lease("a", 2), after(9));
        assert_eq!(renewed.free_at(), after(24));
        assert!(renewed.is_held_by("a") && !renewed.is_held_by("b"));
    }

    #[test]
    fn a_lease_without_a_holder_is_free() {
        let begin = Instant::now();
        assert_eq!(Sight::next(None, lease("", 1), begin).free_at(), begin);
        assert_eq!(Sight::next(None, LeaseSpec::default(), begin).free_at(), begin);
    }
}
