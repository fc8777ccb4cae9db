//! What the source must be allowed to do: for whoever writes roles, and for the test that compares them.

use super::target::{Content, Target};
use kinds::Kind;

/// A right: the verb, the API group, the resource.
pub type Right = (&'static str, &'static str, &'static str);

/// The rights to read these kinds. Where only names are followed, contents are fetched one by one.
pub fn rights(kinds: &[Kind]) -> Vec<Right> {
    let targets = Target::all(kinds, &[]);
    let of = |target: &Target| {
        let verbs: &[&str] = match target.content {
            Content::Whole => &["list", "watch"],
            Content::Names => &["get", "list", "watch"],
        };
        verbs.iter().map(|verb| (*verb, target.kind.group(), target.kind.plural())).collect::<Vec<_>>()
    };
    targets.iter().flat_map(of).collect()
}
