//! Secrets that are Sesame's own: the certificates of xDS connections, their CA, and the key of the disk cache.
//!
//! In: what an object, of whichever dialect, refers to. Out: whether it is one of them. With the client certificate of the proxies everybody's
//! keys could be read from the controller, and a host or a backend that trusts their CA would trust every proxy: so no object refers to
//! them, in Sesame's own namespace or with a grant of it either. `sesame certgen` may put a suffix behind the names of certificates,
//! so what begins with one counts.

use crate::{Rejection, View};
use kinds::kind;
use model::{Code, ObjectRef};

/// Names of certificates and of their CA, in front of any suffix.
const PREFIXES: [&str; 4] = ["sesamecert", "contourcert", "envoycert", "cacert"];

/// Whole names: the CA with its key, and the key of the disk cache.
const NAMES: [&str; 2] = ["sesame-ca", "sesame-cache-key"];

/// Refuses a reference to one of them.
pub fn check(view: &mut impl View, id: &ObjectRef) -> Result<(), Rejection> {
    if id.kind != kind::SECRET || !is_reserved_name(&id.name) || !view.is_own_namespace(&id.namespace) {
        return Ok(());
    }
    let why = format!("{id} belongs to Sesame and its proxies; no object may refer to it");
    Err(Rejection::new(Code::SecretReserved, why))
}

/// Whether an object is a Secret of Sesame's own, by the namespace of Sesame.
pub fn is_reserved(id: &ObjectRef, namespace: &str) -> bool {
    id.kind == kind::SECRET && *id.namespace == *namespace && is_reserved_name(&id.name)
}

/// Whether a Secret of this name in Sesame's namespace is its own.
pub fn is_reserved_name(name: &str) -> bool {
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_secrets_of_sesame_itself_are_reserved() {
        for (namespace, name, expected) in [
            ("projectsesame", "envoycert", true),
            ("projectsesame", "envoycert-v2", true),
            ("projectsesame", "sesamecert", true),
            ("projectsesame", "contourcert", true),
            ("projectsesame", "cacert", true),
            ("projectsesame", "sesame-ca", true),
            ("projectsesame", "sesame-cache-key", true),
            ("projectsesame", "sesame-cafe", false),
            ("projectsesame", "wildcard", false),
            ("team", "envoycert", false),
        ] {
            let id = ObjectRef::new(kind::SECRET, namespace, name);
            assert_eq!(is_reserved(&id, "projectsesame"), expected, "{id}");
        }
        let bundle = ObjectRef::new(kind::CONFIG_MAP, "projectsesame", "cacert");
        assert!(!is_reserved(&bundle, "projectsesame"), "a ConfigMap is none of them");
    }
}
