//! Status as typed facts: what a dialect says about one of its objects, in a form that every kind of object shares.
//!
//! In: the verdicts about an object, the addresses at which it is served, and whether proxies have acknowledged it
//! ([`StatusInput`]). Out: [`StatusFacts`]: values, conditions of the object as a whole, and lists of entries with conditions
//! of their own (listeners, parents, ancestors). A dialect supplies one [`StatusKind`] for each of its kinds: a pure function
//! from one to the other, and the [layout](StatusLayout) of its status.
//!
//! Facts have no times, no generation and no resource version, and know nothing of what the object says now: the writer adds
//! those, writes what differs, and leaves alone what other controllers wrote. So a dialect decides what is true, in its own
//! words, and one writer decides how it is written.

mod layout;
mod proxies;

pub use layout::{Acknowledgement, AtomicList, ListLayout, Mark, StatusKind, StatusLayout};
pub use proxies::{ProxyCounts, ProxyRefusal, ProxyState};

use crate::Verdict;
use std::borrow::Cow;

/// What is known about an object when its status is decided.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatusInput<'a> {
    /// All verdicts about the object.
    pub verdicts: &'a [Verdict],
    /// What its translation has already decided, where verdicts are not enough: conditions of parents, counts of routes.
    pub translated: Option<&'a StatusFacts>,
    /// What is known of the proxies that the object is for; none if nothing of it is served.
    pub proxies: Option<&'a ProxyState>,
    /// Where it is served.
    pub addresses: &'a [Address],
}

/// An address at which objects are served. A load balancer may have both an IP address and a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The IP address.
    pub ip: Option<Box<str>>,
    /// The DNS name.
    pub hostname: Option<Box<str>>,
}

impl Address {
    /// An IP address.
    pub fn ip(ip: &str) -> Self {
        Self { ip: Some(ip.into()), hostname: None }
    }

    /// A DNS name.
    pub fn hostname(name: &str) -> Self {
        Self { ip: None, hostname: Some(name.into()) }
    }
}

/// What the status of one object must say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StatusFacts {
    /// About the object as a whole.
    pub object: Scope,
    /// The lists whose entries have conditions of their own, by the name of their field. A list of the layout that is not
    /// here has no entry of ours.
    pub lists: Vec<(&'static str, Vec<Entry>)>,
}

/// What is said about an object, or about one entry of a list in its status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Fields with their values.
    pub values: Vec<(&'static str, StatusValue)>,
    /// Conditions.
    pub conditions: Vec<Condition>,
    /// Types of conditions about which nothing new is known: one that was stated about this generation stays as it is, one
    /// about an earlier generation goes.
    pub kept: Vec<&'static str>,
    /// Conditions that are stated unless they were stated to hold about this generation: those stay as they are.
    pub initial: Vec<Condition>,
}

/// One entry of a list: a listener, a parent, an ancestor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The fields that tell it from the other entries: the name of a listener, the reference to a parent.
    pub identity: Vec<(&'static str, StatusValue)>,
    /// What is said about it.
    pub scope: Scope,
}

/// A condition: one thing that holds or does not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    /// Its type: `Accepted`.
    pub kind: &'static str,
    /// Whether it holds.
    pub status: Truth,
    /// Why, in one CamelCase word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: String,
    /// Whether a message that differs is a reason to write. A message that counts things would otherwise be written anew on
    /// every object whenever a count changes.
    pub message_matters: bool,
    /// Lists of findings inside the condition, by the name of their field. Empty lists are left out.
    pub findings: Vec<(&'static str, Vec<Finding>)>,
}

impl Condition {
    /// A condition without findings.
    pub fn new(kind: &'static str, status: Truth, reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind, status, reason, message: message.into(), message_matters: true, findings: Vec::new() }
    }
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody knows yet.
    Unknown,
}

impl Truth {
    /// The word that the API has for it.
    pub fn word(self) -> &'static str {
        match self {
            Truth::True => "True",
            Truth::False => "False",
            Truth::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Truth::True } else { Truth::False }
    }
}

/// A finding inside a condition: an error or a warning with a type and a reason of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Finding {
    /// Its type.
    pub kind: &'static str,
    /// Why, in one CamelCase word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: String,
}

/// A value of a field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StatusValue {
    /// Text.
    Text(String),
    /// A count or a generation.
    Integer(i64),
    /// A list.
    List(Vec<StatusValue>),
    /// Fields with their values.
    Record(Vec<(&'static str, StatusValue)>),
    /// Addresses in the form of the core API's `LoadBalancerStatus`.
    LoadBalancer(Vec<Address>),
}

impl StatusValue {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
}

/// What must be left free behind a text that is cut, for the number of characters that are missing.
const OMITTED: usize = "… (18446744073709551615 more characters)".len();

/// At most so many bytes of a text, cut between characters, with the number of characters that were left out.
pub fn cut(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return text.into();
    }
    let end = text.floor_char_boundary(bytes.saturating_sub(OMITTED));
    let omitted = text[end..].chars().count();
    format!("{}… ({omitted} more characters)", &text[..end]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_and_says_by_how_much() {
        assert_eq!(cut("short", 5), "short");
        let text = "é".repeat(1_000);
        let short = cut(&text, 100);
        let kept = short.chars().filter(|c| *c == 'é').count();
        assert!(short.len() <= 100, "{}", short.len());
        assert!(short.ends_with(&format!("é… ({} more characters)", 1_000 - kept)), "{short}");
    }
}
