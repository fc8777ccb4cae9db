//! Names of what is created.
//!
//! In: a Gateway, whose name may have 253 characters with dots in it, and begin with a digit. Out: one name for its
//! ServiceAccount, Deployment and Service, which is also the value of the label that selects its pods. A Service allows 63
//! characters, no dots and a letter first, so the name is cut, and a hash of namespace, name and uid is added. No two Gateways
//! share a name, not even one that is deleted and one that is created after it: the objects of the old one are never in the way
//! of the new one's, and the name of a ServiceAccount is bound to the uid of its Gateway.

use aws_lc_rs::digest;
use model::FleetName;

/// The longest name of a Service, and the longest value of a label.
const LONGEST: usize = 63;
/// How many hexadecimal digits of the hash are used.
const DIGITS: usize = 12;

/// The name of the objects of a fleet.
pub fn of(fleet: &FleetName, uid: &str) -> String {
    let hash = hash(&[&fleet.namespace, &fleet.name, uid]);
    let words: String = fleet.name.chars().map(|c| if c == '.' { '-' } else { c }).collect();
    let prefix = format!("envoy-{words}");
    format!("{}-{hash}", cut(&prefix, LONGEST - DIGITS - 1))
}

/// A name as the value of a label: itself if it is short enough.
pub fn label(name: &str) -> String {
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    format!("{}-{}", cut(name, LONGEST - DIGITS - 1), hash(&[name]))
}

/// The first characters, without dots and dashes at the end.
fn cut(text: &str, longest: usize) -> &str {
    let end = text.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= longest).last();
    text[..end.unwrap_or_default()].trim_end_matches(['-', '.'])
}

/// The beginning of a hash over texts, each with its length, so that no two lists of texts run together.
fn hash(texts: &[&str]) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    for text in texts {
        context.update(&(text.len() as u64).to_be_bytes());
        context.update(text.as_bytes());
    }
    let mut hex: String = context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    hex.truncate(DIGITS);
    hex
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn is_service_name(name: &str) -> bool {
        name.len() <= 63
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && !name.ends_with('-')
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    }

    #[test]
    fn every_gateway_has_a_name_of_its_own() {
        let long = "a".repeat(253);
        let dotted = format!("{}.b", "a".repeat(50));
        let gateways = [
            ("shop", "edge", "1"),
            ("shop", "edge", "2"),
            ("bank", "edge", "1"),
            ("shop", "0.edge", "1"),
            ("shop", "0-edge", "1"),
            ("shop", &long, "1"),
            ("shop", &long[1..], "1"),
            ("shop", &dotted, "1"),
            ("sho", "pedge", "1"),
        ];
        let names: Vec<String> =
            gateways.iter().map(|(namespace, name, uid)| of(&FleetName::new(namespace, name), uid)).collect();
        for name in &names {
            assert!(is_service_name(name), "{name}");
        }
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), gateways.len());
        assert!(names[0].starts_with("envoy-edge-"), "{}", names[0]);
        assert_eq!(names[0], of(&FleetName::new("shop", "edge"), "1"), "the same on every replica and at any time");
    }

    #[test]
    fn a_label_is_the_name_where_it_can_be() {
        assert_eq!(label("edge.example"), "edge.example");
        let long = format!("{}.{}", "a".repeat(49), "b".repeat(100));
        let value = label(&long);
        assert_eq!((value.len(), &value[..50]), (49 + 1 + 12, &*format!("{}-", "a".repeat(49))));
        assert_ne!(value, label(&format!("{long}c")));
    }
}
