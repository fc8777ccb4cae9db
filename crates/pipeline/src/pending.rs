//! What stands in for the parts of a unit that depend on a Secret that has not been read yet.
//!
//! In: the unit as it would be without that Secret, which names the objects that depend on it, and the last unit that depended
//! on nothing unknown, if there was one. Out: the unit that is served meanwhile. It is never the unit without the Secret, which
//! would close what is open, or open what is to be protected.
//!
//! A root decides about the host and keeps all of it; nothing, where there was nothing before. What it no longer asks for it
//! gives up at once: a host that it named before may have another owner.
//!
//! An object that a root includes keeps its own routes only, so that it cannot hold up the others. It keeps them where all
//! that others say about them is what it was: the hosts and their listeners, the policies of the host, and the places that
//! the includes on the way to it give it. Otherwise the routes that it has now answer 503, and so do those of a new object:
//! neither is a stricter parent disobeyed, nor does a wider route take the requests.

use crate::units::Asked;
use model::{
    Host, ListenerId, ObjectRef, Route, Unit,
    route::{Action, Respond},
};
use std::sync::Arc;

/// The hosts that a unit asks for, sorted, if it is pending as a whole.
pub fn claimed(unit: &Unit) -> Vec<Host> {
    if !unit.is_pending(&unit.subject) {
        return Vec::new();
    }
    let named = unit.hosts.iter().map(|(_, host)| host).chain(unit.tls.iter().map(|piece| &piece.host));
    let mut claimed: Vec<_> = named.cloned().collect();
    claimed.sort_unstable();
    claimed.dedup();
    claimed
}

/// The unit without what its pending objects bring: the routes of those that it includes answer 503.
pub fn without(mut unit: Unit) -> Unit {
    if unit.is_pending(&unit.subject) {
        let Unit { subject, members, part, pending, .. } = unit;
        return Unit { members, part, pending, ..Unit::empty(subject) };
    }
    let pending = &unit.pending;
    let is_pending = |object: &ObjectRef| pending.binary_search(object).is_ok();
    for piece in unit.routes.iter_mut().filter(|piece| is_pending(&piece.route.origin.object)) {
        let (action, policy) = (Action::Respond(Respond::unavailable()), Default::default());
        piece.route = Arc::new(Route { action, policy, ..Route::clone(&piece.route) });
    }
    unit.verdicts.retain(|verdict| !is_pending(&verdict.origin.object));
    unit
}

/// The unit that was [computed](without), with what its pending objects brought before. It refers to what both refer to.
pub fn kept(good: &Asked, computed: Asked) -> Asked {
    let Asked { mut unit, mut secrets, claimed, .. } = computed;
    if unit.is_pending(&unit.subject) {
        let Unit { members, pending, .. } = unit;
        unit = good.unit.clone();
        let is_claimed = |host: &Host| claimed.binary_search(host).is_ok();
        unit.hosts.retain(|(_, host)| is_claimed(host));
        unit.routes.retain(|piece| is_claimed(&piece.host));
        unit.tls.retain(|piece| is_claimed(&piece.host));
        unit.members = merged(&unit.members, members);
        unit.pending = pending;
    } else if is_same_host(good, &unit) {
        let mut kept = unit.pending.clone();
        kept.retain(|object| unit.places_of(object) == good.places_of(object));
        let is_kept = |object: &ObjectRef| kept.binary_search(object).is_ok();
        unit.routes.retain(|piece| !is_kept(&piece.route.origin.object));
        unit.routes.extend(good.routes.iter().filter(|piece| is_kept(&piece.route.origin.object)).cloned());
    }
    secrets = merged(&good.secrets, secrets);
    Asked { claimed, ..Asked::new(unit.sorted(), secrets) }
}

/// Whether two units of a root say the same for all routes. A certificate is none of their business; whether there is TLS is.
fn is_same_host(one: &Unit, other: &Unit) -> bool {
    let tls = |unit: &Unit| -> Vec<(ListenerId, Host)> {
        unit.tls.iter().map(|piece| (piece.listener.clone(), piece.host.clone())).collect()
    };
    one.hosts == other.hosts && one.policy == other.policy && tls(one) == tls(other)
}

fn merged<T: Ord + Clone>(some: &[T], mut more: Vec<T>) -> Vec<T> {
    more.extend(some.iter().cloned());
    more.sort_unstable();
    more.dedup();
    more
}
