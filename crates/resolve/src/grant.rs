//! Permission to refer to objects of another namespace by Gateway API's ReferenceGrants.
//!
//! A ReferenceGrant stands beside what is referred to. Without one, whether the object exists is not said: permission comes before
//! existence.

use crate::View;
use kinds::{Kind, ReferenceGrant};
use model::ObjectRef;

/// Whether objects of a kind in a namespace may refer to an object. Inside one namespace they always may.
pub fn permits(view: &mut impl View, from: Kind, namespace: &str, to: &ObjectRef) -> bool {
    *to.namespace == *namespace
        || view.grants(&to.namespace, from, namespace).iter().any(|grant| allows(grant, from, namespace, to))
}

/// Who a grant lets refer to objects of its namespace: kinds by group and name, with their namespaces.
pub fn sources(grant: &ReferenceGrant) -> impl Iterator<Item = (&str, &str, &str)> {
    grant.spec.from.good().map(|(_, from)| (&*from.group, &*from.kind, &*from.namespace))
}

fn allows(grant: &ReferenceGrant, from: Kind, namespace: &str, to: &ObjectRef) -> bool {
    let is_from = sources(grant).any(|source| source == (from.group(), from.name(), namespace));
    let is_to = grant.spec.to.good().any(|(_, target)| {
        (&*target.group, &*target.kind) == (to.kind.group(), to.kind.name())
            && target.name.as_deref().is_none_or(|name| name.is_empty() || *name == *to.name)
    });
    *grant.meta.namespace == *to.namespace && is_from && is_to
}
