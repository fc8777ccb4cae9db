//! The names that objects can have in Kubernetes.
//!
//! Whoever refers to an object writes any text. What cannot be a name is refused here, at the border, so that the API server
//! is never asked for it.

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
}
