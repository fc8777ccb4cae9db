//! Holder clusters: which one holds the certificate of each host with an on-demand certificate.
//!
//! In: the on-demand secrets that proxies are sent. Out: clusters that prefetch them, at most [`MOST`] names each (see
//! [`envoy::cluster::holder`]). Names are spread by a hash. A range of hashes that has too many names is split, and ranges that
//! together have few enough are one again. So which holder has a name follows from the set of names alone, never from the
//! order in which they came, and a host that comes or goes changes one holder; a split or a merge changes its neighbours too.
//!
//! A range that cannot be split any more has at most [`MOST_UNSPLIT`] of its names in a holder: whoever makes up names for one
//! range must not make Envoy load thousands of certificates at each change there. The names of a namespace are taken in turn with
//! those of the others, so that those that one tenant makes up push out no other's. The rest are fetched when a client asks for
//! them.
//!
//! A holder lists only secrets that are sent: one that is withheld or gone leaves it, and changes it again when it is back.
//! Envoy needs that change to prefetch the secret anew.

use crate::{
    resources::{HostSecretResources, Resource, authors},
    translations::HostKey,
    withheld::WithheldRows,
};
use engine::{Derived, Index, PartIndex, Reads, Table};
use envoy::{cluster::holder, name};
use model::{ListenerId, ObjectRef};
use std::{
    collections::{BTreeSet, HashMap},
    fmt,
};
use xds::{Kind, Ref, Role};

/// How many names a holder has before it is split. Envoy loads all certificates of a holder again when it changes, 0.2 ms each.
pub const MOST: usize = 32;

/// How many names a holder has whose range cannot be split: 26 ms of loading.
pub const MOST_UNSPLIT: usize = 4 * MOST;

/// By how many bits of the hash ranges are told apart, from the widest to the narrowest: 4,096 holders at most, which have
/// [`MOST`] names at some 100,000 hosts and [`MOST_UNSPLIT`] at some 500,000.
const BITS: [u8; 6] = [0, 4, 6, 8, 10, 12];

/// The names whose hash begins with these bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// Its place in [`BITS`].
    depth: u8,
    /// The bits, as a number.
    prefix: u16,
}

impl Range {
    /// Every range that has a name, the widest first.
    fn all_of(name: &str) -> [Range; BITS.len()] {
        let hash = xds::content_version(name.as_bytes());
        let mut depth = 0..;
        BITS.map(|bits| Range {
            depth: depth.next().unwrap_or_default(),
            prefix: u16::try_from(hash.checked_shr(64 - u32::from(bits)).unwrap_or_default()).unwrap_or_default(),
        })
    }

    fn bits(self) -> u8 {
        BITS[usize::from(self.depth)]
    }

    /// The next wider range.
    fn parent(self) -> Option<Range> {
        let depth = self.depth.checked_sub(1)?;
        let parent = Range { depth, prefix: 0 };
        Some(Range { prefix: self.prefix >> (self.bits() - parent.bits()), ..parent })
    }

    fn can_be_split(self) -> bool {
        usize::from(self.depth) + 1 < BITS.len()
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.bits(), self.prefix)
    }
}

/// A holder: the listener whose hosts it is for, and their range.
pub type HolderKey = (ListenerId, Range);

/// The secrets that proxies are sent by every range that has them.
pub struct SecretsByRange;

impl Index for SecretsByRange {
    type Of = HostSecretResources;
    type Key = HolderKey;
    const NAME: &'static str = "by range";

    fn keys((listener, _): &HostKey, secret: &Resource) -> impl IntoIterator<Item = HolderKey> {
        let ranges = (secret.role == Role::Own).then(|| Range::all_of(&secret.name));
        ranges.into_iter().flatten().map(|range| (listener.clone(), range))
    }
}

/// The namespace of the Secret that a name's certificate is from; empty for one that Sesame signed.
impl PartIndex for SecretsByRange {
    type Part<'v> = &'v str;

    fn part<'v>(_: &HolderKey, secret: &'v Resource) -> &'v str {
        secret.origin.as_ref().map_or("", |secret| &secret.namespace)
    }
}

/// The hosts of a range that its holder has: all, or of too many the first of each namespace, then the second of each, and so on.
fn prefetched_hosts<'r>(key: &HolderKey, reads: &mut Reads<'r>) -> Vec<&'r HostKey> {
    let mut hosts = reads.parts::<SecretsByRange>(key);
    if hosts.len() > MOST_UNSPLIT {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        let mut turns: Vec<(usize, &HostKey, &str)> = Vec::with_capacity(hosts.len());
        for (host, namespace) in hosts {
            let turn = seen.entry(namespace).or_default();
            turns.push((*turn, host, namespace));
            *turn += 1;
        }
        turns.sort_unstable();
        turns.truncate(MOST_UNSPLIT);
        hosts = turns.into_iter().map(|(_, host, namespace)| (host, namespace)).collect();
        hosts.sort_unstable();
    }
    hosts.into_iter().map(|(host, _)| host).collect()
}

/// The ranges that have too many names for one holder.
pub struct SplitRanges;

impl Table for SplitRanges {
    type Key = HolderKey;
    type Value = ();
    const NAME: &'static str = "split ranges";
}

impl Derived for SplitRanges {
    fn compute(&self, key: &HolderKey, reads: &mut Reads<'_>) -> Option<()> {
        (key.1.can_be_split() && reads.probe::<SecretsByRange>(key).len() > MOST).then_some(())
    }
}

/// The holders.
pub struct HolderResources;

impl Table for HolderResources {
    type Key = HolderKey;
    type Value = Resource;
    const NAME: &'static str = "holder resources";
}

impl Derived for HolderResources {
    fn compute(&self, key: &HolderKey, reads: &mut Reads<'_>) -> Option<Resource> {
        let (listener, range) = key;
        if let Some(parent) = range.parent() {
            reads.get::<SplitRanges>(&(listener.clone(), parent))?;
        }
        if reads.get::<SplitRanges>(key).is_some() {
            return None;
        }
        let hosts = prefetched_hosts(key, reads);
        let names: Vec<String> = hosts.iter().map(|(_, host)| name::host_secret(host)).collect();
        let refs = names.iter().map(|name| Ref::To(Kind::Secret, name.as_str().into())).collect();
        let name = holder_name(key);
        let cluster = holder::holder(&name, names);
        let resource = Resource { refs, ..Resource::new(name, &cluster) }.in_fleet(listener.fleet());
        let resource = resource.unless_withheld(Kind::Cluster, reads);
        Some(resource.reported_on(|| {
            let objects: BTreeSet<ObjectRef> = hosts.into_iter().flat_map(|host| authors(host, reads)).collect();
            objects.into_iter().collect()
        }))
    }
}

/// The name of a holder.
pub fn holder_name((listener, range): &HolderKey) -> String {
    name::holder(listener, range)
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.parts::<SecretsByRange>();
    pipeline.derived(SplitRanges).per::<SecretsByRange>();
    pipeline.derived(HolderResources).per::<SecretsByRange>().output();
    pipeline.index::<WithheldRows<HolderResources>>();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_range_lies_in_the_next_wider_one() {
        for name in ["a.example.com", "b.example.com", "x"] {
            let ranges = Range::all_of(name);
            assert_eq!(ranges[0].to_string(), "0-0");
            for pair in ranges.windows(2) {
                assert_eq!(pair[1].parent(), Some(pair[0]));
            }
            assert_eq!(ranges.map(Range::can_be_split), [true, true, true, true, true, false]);
        }
    }
}
