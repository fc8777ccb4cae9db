//! TLS listeners of one port whose certificates have names in common: a client that has a connection to one of them may send requests
//! for hosts of the other over it, and has to be told by 421 that it cannot.
//!
//! In: the listeners of one object, each with its port and its Secrets, and the names of each certificate. Out: which of the listeners
//! that is so for. Each name is looked at once for each port and Secret, however many listeners share one.

use model::ObjectRef;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What a listener shows, at the port that proxies bind.
#[derive(Debug)]
pub(super) struct ShownAt {
    pub bound: u16,
    pub secrets: Vec<ObjectRef>,
}

/// Whether each listener has a certificate with a name that a certificate of another listener of the port is for, too.
pub(super) fn of<'n>(listeners: &[ShownAt], mut names: impl FnMut(&ObjectRef) -> &'n [Box<str>]) -> Vec<bool> {
    let mut users: BTreeMap<(u16, &ObjectRef), Vec<usize>> = BTreeMap::new();
    for (at, listener) in listeners.iter().enumerate() {
        for secret in &listener.secrets {
            let users = users.entry((listener.bound, secret)).or_default();
            if users.last() != Some(&at) {
                users.push(at);
            }
        }
    }
    let users: Vec<((u16, &ObjectRef), Vec<usize>)> = users.into_iter().collect();
    let names: Vec<&[Box<str>]> = users.iter().map(|((_, secret), _)| names(secret)).collect();
    let bound = |certificate: usize| users[certificate].0.0;
    // The first certificate of a port with each name. All others with the name overlap with that one.
    let mut first: HashMap<(u16, &str), usize> = HashMap::new();
    let mut pairs: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (certificate, names) in names.iter().enumerate() {
        for name in *names {
            let first = *first.entry((bound(certificate), &**name)).or_insert(certificate);
            pairs.extend((first != certificate).then_some((first, certificate)));
        }
    }
    for (certificate, names) in names.iter().enumerate() {
        for above in names.iter().filter_map(|name| name.split_once('.')).map(|(_, above)| format!("*.{above}")) {
            let wide = first.get(&(bound(certificate), above.as_str())).copied();
            pairs.extend(wide.filter(|wide| *wide != certificate).map(|wide| (wide, certificate)));
        }
    }
    let mut overlap = vec![false; listeners.len()];
    for (certificate, (_, users)) in users.iter().enumerate() {
        if users.len() > 1 && !names[certificate].is_empty() {
            users.iter().for_each(|at| overlap[*at] = true);
        }
    }
    for (one, other) in pairs {
        let (one, other) = (&users[one].1, &users[other].1);
        // Both may be of one listener and of no other.
        if one.len() > 1 || other.len() > 1 || one != other {
            one.iter().chain(other).for_each(|at| overlap[*at] = true);
        }
    }
    overlap
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::kind;

    fn secret(name: &str) -> ObjectRef {
        ObjectRef::new(kind::SECRET, "default", name)
    }

    /// Listeners by port and Secrets; a Secret is named after the names that its certificate has.
    fn overlapping(listeners: &[(u16, &[&str])]) -> Vec<bool> {
        let shown = |(bound, secrets): &(u16, &[&str])| ShownAt {
            bound: *bound,
            secrets: secrets.iter().map(|name| secret(name)).collect(),
        };
        let listeners: Vec<ShownAt> = listeners.iter().map(shown).collect();
        let split = |secret: &ObjectRef| secret.name.split_whitespace().map(Into::into).collect::<Vec<Box<str>>>();
        let secrets = listeners.iter().flat_map(|listener| &listener.secrets);
        let names: HashMap<&ObjectRef, Vec<Box<str>>> = secrets.map(|secret| (secret, split(secret))).collect();
        of(&listeners, |secret| &names[secret])
    }

    #[test]
    fn names_in_common_are_equal_or_one_label_below_a_wildcard() {
        type Case<'c> = (&'c [(u16, &'c [&'c str])], &'c [bool]);
        let cases: [Case<'_>; 8] = [
            (&[(443, &["a.com"]), (443, &["b.com"])], &[false, false]),
            (&[(443, &["a.com"]), (8443, &["a.com"])], &[false, false]),
            (&[(443, &["a.com"]), (443, &["a.com"]), (443, &["c.com"])], &[true, true, false]),
            (&[(443, &["a.com b.com"]), (443, &["b.com"])], &[true, true]),
            (&[(443, &["*.a.com"]), (443, &["x.a.com"])], &[true, true]),
            (&[(443, &["*.a.com"]), (443, &["x.y.a.com"]), (443, &["a.com"])], &[false, false, false]),
            // Two certificates of one listener, such as those of two types of keys, are no other listener's.
            (&[(443, &["a.com x.com", "a.com"]), (443, &["b.com"])], &[false, false]),
            (&[(443, &["*.a.com", "x.a.com"]), (443, &["x.a.com"])], &[true, true]),
        ];
        for (listeners, expected) in cases {
            assert_eq!(overlapping(listeners), expected, "{listeners:?}");
        }
    }
}
