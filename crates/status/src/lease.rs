//! Leader election: the replica that holds a Lease of the API server writes status and events.
//!
//! In: the [`Settings`], under Contour's names. Out: a [`Leadership`], which every writer asks for a [`Permit`] before each
//! request. All replicas serve proxies; only writing depends on the lease, so a lost lease, or an API server that cannot be
//! reached, stops nothing else.
//!
//! There are never two writers. A holder counts from the moment it *sent* its last renewal that succeeded, and stops
//! [`renew_deadline`](Settings::renew_deadline) later, in the middle of a request if need be. The others count from the
//! moment they *saw* that renewal, and wait [`lease_duration`](Settings::lease_duration), which is longer. No clock is
//! compared with another machine's. A holder that shuts down releases the lease once its last request is answered.

mod election;
mod leadership;

use k8s_openapi::api::coordination::v1::LeaseSpec;
use std::{
    hash::{BuildHasher, RandomState},
    time::{Duration, Instant},
};

pub use election::{ADDRESS, Election, Holder};
pub use leadership::{Leadership, Permit};

/// Which lease, and how it is held. The defaults are Contour's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The identity of this process: no two processes may ever have the same, see [`unique`].
    pub identity: String,
    /// The address at which the other replicas reach this one while it holds the lease, as `host:port`; written to the lease
    /// as the annotation [`ADDRESS`].
    pub address: Option<String>,
    /// How long others wait for a holder that does not renew.
    pub lease_duration: Duration,
    /// How long a holder that cannot renew continues to write.
    pub renew_deadline: Duration,
    /// How often a holder renews, and how often the others try to acquire.
    pub retry_period: Duration,
}

impl Settings {
    /// The usual lease in a namespace, for a replica of that name.
    pub fn new(namespace: &str, replica: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: "leader-elect".to_owned(),
            identity: unique(replica),
            address: None,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }

    /// Checks that the durations are consistent.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.retry_period.is_zero() {
            return Err(SettingsError::NoRetry);
        }
        // A renewal that fails must leave time for another.
        if self.renew_deadline <= self.retry_period.mul_f32(1.2) {
            return Err(SettingsError::Deadline { deadline: self.renew_deadline, retry: self.retry_period });
        }
        if self.lease_duration <= self.renew_deadline {
            return Err(SettingsError::Duration { duration: self.lease_duration, deadline: self.renew_deadline });
        }
        Ok(())
    }
}

/// Durations that are not consistent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Nothing between two tries.
    #[error("the retry period must be longer than zero")]
    NoRetry,
    /// A single renewal that fails would lose the lease.
    #[error("the renew deadline ({deadline:?}) must be more than 1.2 times the retry period ({retry:?})")]
    Deadline {
        /// The renew deadline.
        deadline: Duration,
        /// The retry period.
        retry: Duration,
    },
    /// There could be two writers.
    #[error("the lease duration ({duration:?}) must be longer than the renew deadline ({deadline:?})")]
    Duration {
        /// The lease duration.
        duration: Duration,
        /// The renew deadline.
        deadline: Duration,
    },
}

/// A unique identity that begins with the name of the replica: a restarted pod is another holder, and waits until the lease
/// of the one before has expired.
pub fn unique(replica: &str) -> String {
    format!("{replica}_{:016x}", RandomState::new().hash_one(std::process::id()))
}

/// The lease as last read, and since when it has been unchanged.
#[derive(Clone, Debug)]
struct Observation {
    spec: LeaseSpec,
    since: Instant,
}

impl Observation {
    /// The next observation; the time stays if nothing has changed.
    fn next(before: Option<Observation>, spec: LeaseSpec, now: Instant) -> Observation {
        match before {
            Some(before) if before.spec == spec => before,
            _ => Observation { spec, since: now },
        }
    }

    fn is_held_by(&self, identity: &str) -> bool {
        self.spec.holder_identity.as_deref() == Some(identity)
    }

    /// When the lease may be acquired: at once if it has no holder.
    fn free_at(&self) -> Instant {
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
        let observation = Observation::next(None, lease("a", 1), begin);
        assert_eq!(observation.free_at(), after(15));
        let same = Observation::next(Some(observation.clone()), lease("a", 1), after(9));
        assert_eq!(same.free_at(), after(15), "seeing the same again is no news");
        let renewed = Observation::next(Some(observation), lease("a", 2), after(9));
        assert_eq!(renewed.free_at(), after(24));
        assert!(renewed.is_held_by("a") && !renewed.is_held_by("b"));
    }

    #[test]
    fn a_lease_without_a_holder_is_free() {
        let begin = Instant::now();
        assert_eq!(Observation::next(None, lease("", 1), begin).free_at(), begin);
        assert_eq!(Observation::next(None, LeaseSpec::default(), begin).free_at(), begin);
    }
}
