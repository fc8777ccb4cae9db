//! The names that objects can have in Kubernetes.
//!
//! Whoever refers to an object writes any text. What cannot be a name is refused here, at the border, so that the API server
//! is never asked for it. In files nobody has checked the names of objects either ([`refusal`]): they become names of Envoy's
//! resources and stand in logs.

use crate::{Kind, ObjectRef, kind};

/// The most characters in a name.
const LONGEST: usize = 253;
/// The most characters in a label of a name, and in a namespace.
const LONGEST_LABEL: usize = 63;

/// Whether a text can be the name of a Secret or ConfigMap: a DNS subdomain as in RFC 1123.
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= LONGEST && text.split('.').all(is_part)
}

/// Whether a text can be a namespace: a DNS label as in RFC 1123.
pub fn is_label(text: &str) -> bool {
    text.len() <= LONGEST_LABEL && is_part(text)
}

/// Why no object of a kind has this name and namespace in an API server, if so: the field, and what it must be.
pub fn refusal(object: &ObjectRef) -> Option<(&'static str, &'static str)> {
    const LABEL: &str = "at most 63 lower-case letters, digits and `-`, with a letter or digit first and last";
    const SUBDOMAIN: &str = "at most 253 lower-case letters, digits, `-` and `.`, with a letter or digit first and last and around each `.`";
    let is_good = if has_label(object.kind) { is_label(&object.name) } else { is_subdomain(&object.name) };
    if !is_good {
        return Some(("metadata.name", if has_label(object.kind) { LABEL } else { SUBDOMAIN }));
    }
    let is_namespaced = object.kind.is_namespaced();
    (is_namespaced && !is_label(&object.namespace)).then_some(("metadata.namespace", LABEL))
}

/// Whether objects of a kind have a DNS label for a name, because it is a part of host names.
fn has_label(kind: Kind) -> bool {
    [kind::NAMESPACE, kind::SERVICE].contains(&kind)
}

/// Between the dots of a name; longer than a label of DNS may be, as the API server has it.
fn is_part(text: &str) -> bool {
    let inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    text.bytes().all(inner) && !text.is_empty() && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_the_api_server_takes() {
        let long = "a".repeat(64);
        for name in ["a", "cert", "my-cert.2", "1", "a.b-c.d", &long, &"a".repeat(253)] {
            assert!(is_subdomain(name), "{name}");
        }
        let longest = "a".repeat(254);
        for name in ["", "x%1", "A", "a_b", "-a", "a-", "a..b", ".a", "a.", "a.-b", "a/b", "../a", "ä", "a b", &longest]
        {
            assert!(!is_subdomain(name), "{name}");
        }
        assert!(is_label("shop-1") && !is_label("a.b") && !is_label("") && !is_label(&long));
    }

    #[test]
    fn an_object_has_a_name_that_an_api_server_takes_for_its_kind() {
        let refused = |kind: Kind, namespace: &str, name: &str| {
            refusal(&ObjectRef::new(kind, namespace, name)).map(|(field, _)| field)
        };
        assert_eq!(refused(kind::INGRESS, "shop", "a.b-c"), None);
        assert_eq!(refused(kind::INGRESS, "shop", "a\nb"), Some("metadata.name"));
        assert_eq!(refused(kind::INGRESS, "sh\u{1b}op", "a"), Some("metadata.namespace"));
        assert_eq!(refused(kind::INGRESS, "a.b", "a"), Some("metadata.namespace"));
        assert_eq!(refused(kind::SERVICE, "shop", "a.b"), Some("metadata.name"));
        assert_eq!(refused(kind::SERVICE, "shop", "1a"), None);
        assert_eq!(refused(kind::NAMESPACE, "", "a.b"), Some("metadata.name"));
        assert_eq!(refused(kind::GATEWAY_CLASS, "", "example.com"), None);
    }
}
