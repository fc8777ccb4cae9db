//! Secrets that are Sesame's own: the certificates of xDS connections, their CA, and the key of the disk cache.
//!
//! In: a Secret and the namespace of Sesame. Out: whether it is one of them. `sesame certgen` may put a suffix behind the names of
//! certificates, so what begins with one counts.

use model::ObjectRef;

/// Names of certificates and of their CA, in front of any suffix.
const PREFIXES: [&str; 4] = ["sesamecert", "contourcert", "envoycert", "cacert"];

/// Whole names: the CA with its key, and the key of the disk cache.
const NAMES: [&str; 2] = ["sesame-ca", "sesame-cache-key"];

/// Whether a Secret is Sesame's own, by the namespace of Sesame.
pub fn is_reserved(id: &ObjectRef, namespace: &str) -> bool {
    *id.namespace == *namespace && is_reserved_name(&id.name)
}

/// Whether a Secret of this name in Sesame's namespace is its own.
pub fn is_reserved_name(name: &str) -> bool {
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::kind;

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
    }
}
