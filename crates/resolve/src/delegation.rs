//! Permission to use a Secret of another namespace.

use kinds::{TlsCertificateDelegation, kind};
use model::ObjectRef;

/// The Secrets that an object delegates.
pub fn secrets(object: &TlsCertificateDelegation) -> impl Iterator<Item = ObjectRef> + '_ {
    object
        .spec
        .delegations
        .good()
        .map(|(_, entry)| ObjectRef::new(kind::SECRET, object.meta.namespace.clone(), &*entry.secret_name))
}

/// Whether an object lets a namespace use a Secret. `*` means everyone, and only where it stands alone.
pub fn allows(object: &TlsCertificateDelegation, id: &ObjectRef, to: &str) -> bool {
    *object.meta.namespace == *id.namespace
        && object.spec.delegations.good().any(|(_, entry)| {
            *entry.secret_name == *id.name
                && match &*entry.target_namespaces {
                    [only] if **only == *"*" => true,
                    names => names.iter().any(|name| **name == *to),
                }
        })
}
