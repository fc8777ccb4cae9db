//! What stands in for the parts of a unit that depend on a Secret that has not been read yet.
//!
//! In: the unit as it would be without that Secret, in which a verdict marks each place that depends on it, and the last unit
//! that depended on nothing unknown, if there was one. Out: the unit that is served meanwhile. The part of an object that is
//! pending is what it was, or nothing; it is never the unit without the Secret, which would close what is open, or open what
//! is to be protected. An object that a root includes keeps its own routes only, so that it cannot hold up the others; a root
//! decides about the host and keeps all of it.

use crate::units::Asked;
use model::{Code, ObjectRef, Unit};

/// The objects whose part of a unit is pending, sorted. A place that nobody marked counts as the root's.
pub fn objects(unit: &Unit) -> Vec<ObjectRef> {
    let marked = unit.verdicts.iter().filter(|verdict| verdict.code == Code::SecretPending);
    let mut objects: Vec<_> = marked.map(|verdict| verdict.origin.object.clone()).collect();
    objects.sort_unstable();
    objects.dedup();
    if objects.is_empty() {
        objects.push(unit.subject.clone());
    }
    objects
}

/// The unit without what these objects bring.
pub fn without(mut unit: Unit, objects: &[ObjectRef]) -> Unit {
    if objects.contains(&unit.subject) {
        let Unit { subject, members, part, .. } = unit;
        let (hosts, routes, tls, verdicts) = Default::default();
        return Unit { subject, hosts, routes, tls, members, part, verdicts };
    }
    let is_pending = |object: &ObjectRef| objects.binary_search(object).is_ok();
    unit.routes.retain(|piece| !is_pending(&piece.route.origin.object));
    unit.tls.retain(|piece| !is_pending(&piece.origin.object));
    unit.verdicts.retain(|verdict| !is_pending(&verdict.origin.object));
    unit
}

/// The unit that was [computed](without), with what its pending objects brought before. It refers to what both refer to.
pub fn kept(good: &Asked, computed: Asked) -> Asked {
    let Asked { mut unit, mut secrets, pending, .. } = computed;
    if pending.contains(&unit.subject) {
        let members = std::mem::take(&mut unit.members);
        unit = good.unit.clone();
        unit.members = merged(&unit.members, members);
    } else {
        let is_pending = |object: &ObjectRef| pending.binary_search(object).is_ok();
        unit.routes.extend(good.routes.iter().filter(|piece| is_pending(&piece.route.origin.object)).cloned());
        unit.tls.extend(good.tls.iter().filter(|piece| is_pending(&piece.origin.object)).cloned());
        unit.verdicts.extend(good.verdicts.iter().filter(|verdict| is_pending(&verdict.origin.object)).cloned());
    }
    secrets = merged(&good.secrets, secrets);
    Asked::new(unit.sorted(), secrets, pending)
}

fn merged<T: Ord + Clone>(some: &[T], mut more: Vec<T>) -> Vec<T> {
    more.extend(some.iter().cloned());
    more.sort_unstable();
    more.dedup();
    more
}
