//! How much one Ingress may hold.
//!
//! In a cluster an object has at most 1.5 MB, which is some 15,000 paths written as tersely as possible; a file has no
//! such limit. The limits lie far above what people have in one object, and bound what it takes in time and memory. What lies within them is served, in the order in which it is written;
//! on a host of which paths are left out, what no other path takes answers 503.

use kinds::Ingress;
use model::Host;
use std::{collections::BTreeSet, fmt};

/// The most hosts of rules, and the most of TLS entries.
pub const HOSTS: usize = 10_000;
/// The most paths of all rules together.
pub const PATHS: usize = 10_000;
/// The most bytes of text that come of paths, with the headers that are set on the way to their backends.
pub const BYTES: usize = 8 << 20;

/// Whether an Ingress has more than so many paths and TLS hosts.
pub fn exceeds(object: &Ingress, limit: usize) -> bool {
    let paths = object.spec.rules.good().map(|(_, rule)| 1 + rule.http.paths.len());
    let tls = object.spec.tls.good().map(|(_, tls)| tls.hosts.len());
    let mut count = 0;
    paths.chain(tls).any(|more| {
        count += more;
        count > limit
    })
}

/// A limit that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Hosts,
    Paths,
    Bytes,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Hosts => write!(f, "{HOSTS} hosts"),
            Limit::Paths => write!(f, "{PATHS} paths"),
            Limit::Bytes => write!(f, "{BYTES} bytes of paths and headers"),
        }
    }
}

/// What an Ingress has so far.
#[derive(Default)]
pub(crate) struct Budget {
    pub hosts: BTreeSet<Host>,
    paths: usize,
    bytes: usize,
}

impl Budget {
    /// Takes a host.
    pub fn host(&mut self, host: &Host) -> Result<(), Limit> {
        if self.hosts.len() >= HOSTS && !self.hosts.contains(host) {
            return Err(Limit::Hosts);
        }
        self.hosts.insert(host.clone());
        Ok(())
    }

    /// Takes the next path.
    pub fn path(&mut self) -> Result<(), Limit> {
        if self.paths >= PATHS {
            return Err(Limit::Paths);
        }
        self.paths += 1;
        Ok(())
    }

    /// Takes what came of it.
    pub fn bytes(&mut self, bytes: usize) -> Result<(), Limit> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > BYTES { Err(Limit::Bytes) } else { Ok(()) }
    }
}
