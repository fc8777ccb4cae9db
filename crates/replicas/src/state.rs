//! What one replica knows of what the others withhold.
//!
//! The control loop writes to it, so nothing else is under the same lock.

use crate::message::{CertificateHolders, Shared};
use std::collections::BTreeMap;
use std::net::SocketAddr;

#[derive(Default)]
pub(crate) struct Withheld {
    /// What this replica withholds.
    pub own: Shared,
    /// What others withhold, according to the leader.
    pub from_leader: Shared,
    /// What each follower withholds.
    pub followers: BTreeMap<u64, Shared>,
}

impl Withheld {
    /// What others than `but` withhold; without one, others than this replica.
    pub fn others(&self, but: Option<u64>) -> Shared {
        let mut all = if but.is_some() { self.own.clone() } else { self.from_leader.clone() };
        let others = self.followers.iter().filter(|(id, _)| Some(**id) != but);
        others.for_each(|(_, holds)| all.add(holds));
        all
    }
}

/// The certificates that replicas and their proxies have.
#[derive(Default)]
pub(crate) struct Certificates {
    /// Those of this replica; none before it said anything.
    pub own: Option<Vec<CertificateHolders>>,
    /// Those of each follower; none before it said anything, or if its version knows nothing of it.
    pub followers: BTreeMap<u64, (SocketAddr, Option<Vec<CertificateHolders>>)>,
}

impl Certificates {
    /// Those of all. A replica that says nothing is among them.
    pub fn all(&self) -> Vec<CertificateHolders> {
        let mut all = self.own.clone().unwrap_or_default();
        for (address, reported) in self.followers.values() {
            let silent = || CertificateHolders { names: vec![address.to_string()], count: 1, ..Default::default() };
            all.extend(reported.clone().unwrap_or_else(|| vec![silent()]));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_that_says_nothing_is_told_apart_from_one_that_has_nothing() {
        let address = SocketAddr::from(([192, 0, 2, 1], 8001));
        let mut certificates = Certificates { own: Some(Vec::new()), ..Certificates::default() };
        certificates.followers.insert(1, (address, None));
        let [silent] = &certificates.all()[..] else { panic!("one") };
        assert_eq!((silent.count, &silent.names[..]), (1, &["192.0.2.1:8001".to_owned()][..]));
        certificates.followers.insert(1, (address, Some(Vec::new())));
        assert!(certificates.all().is_empty());
    }
}
