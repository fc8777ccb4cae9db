//! Hashes of what objects bring to a translation.
//!
//! In: a translation. Out: a number for each object that it is made of, which differs after an edit of what proxies are sent for it.
//! Objects share resources, so that neither the names nor the versions of these tell whose edit a version has: by its hash an object
//! is known to have changed, and its status waits for proxies again ([`crate::object_resources`]).

use model::{ObjectRef, Translation};
use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};

/// The hash of what each object of a translation brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentHashes {
    subject: u64,
    /// Those that the subject includes, if they bring anything; by object.
    included: Box<[(ObjectRef, u64)]>,
}

impl ContentHashes {
    /// The hashes of a translation. What no included object brings is the subject's.
    pub fn new(translation: &Translation) -> Self {
        let Translation { subject, hosts, routes, tls, listeners, streams, .. } = translation;
        let Translation { shared, selectors, conditional, policy, .. } = translation;
        let mut own = DefaultHasher::new();
        let mut included: BTreeMap<&ObjectRef, DefaultHasher> = BTreeMap::new();
        (hosts, tls, listeners, streams).hash(&mut own);
        (selectors, conditional, policy).hash(&mut own);
        for shared in shared {
            (&shared.pool, &shared.hosts, &shared.labels).hash(&mut own);
        }
        let own_routes = routes.iter().map(|piece| (Some((&piece.listener, &piece.host)), &piece.route));
        let shared_routes = shared.iter().flat_map(|shared| &shared.routes).map(|route| (None, route));
        for (place, route) in own_routes.chain(shared_routes) {
            let author = &route.origin.object;
            let hasher = if author == subject { &mut own } else { included.entry(author).or_default() };
            (place, route).hash(hasher);
        }
        let included = included.into_iter().map(|(object, hasher)| (object.clone(), hasher.finish())).collect();
        Self { subject: own.finish(), included }
    }

    /// The hash of what the subject brings.
    pub fn of_subject(&self) -> u64 {
        self.subject
    }

    /// The hash of what an included object brings; nothing if it brings nothing.
    pub fn of_included(&self, object: &ObjectRef) -> Option<u64> {
        let at = self.included.binary_search_by(|(of, _)| of.cmp(object)).ok()?;
        Some(self.included[at].1)
    }
}
