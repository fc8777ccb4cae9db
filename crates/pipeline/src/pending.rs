//! What stands in for the parts of a unit that depend on a Secret that has not been read yet.
//!
//! In: the unit as it would be without that Secret, which names the objects that depend on it, and the last unit
//! that depended on nothing unknown, if there was one. Out: the unit that is served meanwhile. The part of an object that is
//! pending is what it was, or nothing; it is never the unit without the Secret, which would close what is open, or open what
//! is to be protected. An object that a root includes keeps its own routes only, so that it cannot hold up the others; a root
//! decides about the host and keeps all of it.

use crate::units::Asked;
use model::{ObjectRef, Unit};

/// The unit without what its pending objects bring.
pub fn without(mut unit: Unit) -> Unit {
    if unit.is_pending(&unit.subject) {
        let Unit { subject, members, part, pending, .. } = unit;
        return Unit { members, part, pending, ..Unit::empty(subject) };
    }
    let pending = unit.pending.clone();
    let is_pending = |object: &ObjectRef| pending.binary_search(object).is_ok();
    unit.routes.retain(|piece| !is_pending(&piece.route.origin.object));
    unit.tls.retain(|piece| !is_pending(&piece.origin.object));
    unit.verdicts.retain(|verdict| !is_pending(&verdict.origin.object));
    unit
}

/// The unit that was [computed](without), with what its pending objects brought before. It refers to what both refer to.
pub fn kept(good: &Asked, computed: Asked) -> Asked {
    let Asked { mut unit, mut secrets, .. } = computed;
    let pending = std::mem::take(&mut unit.pending);
    if pending.contains(&unit.subject) {
        let members = std::mem::take(&mut unit.members);
        unit = good.unit.clone();
        unit.members = merged(&unit.members, members);
    } else {
        let is_pending = |object: &ObjectRef| pending.binary_search(object).is_ok();
        unit.routes.extend(good.routes.iter().filter(|piece| is_pending(&piece.route.origin.object)).cloned());
        unit.tls.extend(good.tls.iter().filter(|piece| is_pending(&piece.origin.object)).cloned());
    }
    unit.pending = pending;
    secrets = merged(&good.secrets, secrets);
    Asked::new(unit.sorted(), secrets)
}

fn merged<T: Ord + Clone>(some: &[T], mut more: Vec<T>) -> Vec<T> {
    more.extend(some.iter().cloned());
    more.sort_unstable();
    more.dedup();
    more
}
