//! Precedence: which of two routes is tried first, and which is served where both match the same requests.
//!
//! A dialect fills in what its own rules are about; [`Precedence::cmp`] is the rule for routes, and for TLS settings, that are
//! in each other's way: the least is served. The order is total, so every replica and every rebuild agree. In which order routes
//! that match different requests are tried is decided in assembly, from their matches and from some of the fields here.

use super::Agreement;
use std::{
    cmp::{Ordering, Reverse},
    sync::Arc,
};

/// What a dialect is to the others, and how it orders its own routes. A dialect has one, as a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dialect {
    /// Where routes of two dialects match the same requests, the one with the lower number is served.
    pub rank: u8,
    /// What decides between its routes that are equally specific, but match different requests.
    pub tie_break: TieBreak,
    /// Whether requests that no route of their host matches are tried with the routes of wider hosts of the listener.
    pub falls_through: bool,
}

/// What decides between routes of a dialect that are equally specific, but match different requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TieBreak {
    /// What they ask of headers and query parameters, in the order of these texts.
    Conditions,
    /// The age of their objects, then namespace and name, then the place inside the object.
    Age,
    /// Nothing but the length of what they match ([`Lengths`]): the dialect has an order of its own, in which a long pattern is tried
    /// before a short exact path.
    Length,
}

/// How long the texts are that a route matches, in a dialect that tries the longer first ([`TieBreak::Length`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lengths {
    /// The path or its pattern.
    pub path: u32,
    /// The names and values of headers, the host and the method among them.
    pub headers: u32,
    /// The names and values of query parameters.
    pub query: u32,
}

/// What happens to routes of one dialect that match the same requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnEqual {
    /// One is served, the others lose.
    #[default]
    Lose,
    /// It takes a share of the requests, beside the one that would be served alone and others that take a share.
    Combine {
        /// Its share.
        share: Share,
        /// Whether it may take its share from objects of other namespaces.
        across_namespaces: bool,
    },
    /// It takes a share of the requests as a route of its own, beside others that do, each with its own settings. What all shares
    /// leave goes on to the next route that matches; one that is alone takes all.
    Split {
        /// Its share.
        share: Share,
        /// What all of them have to agree on.
        agreement: Agreement,
        /// What is said where they do not.
        messages: &'static SplitMessages,
    },
    /// It takes no requests: its backend gets a copy of those that the others take which [split](OnEqual::Split) them.
    Mirror {
        /// Of how many in a hundred; 0 to 100.
        percent: u8,
        /// Whether it may have copies of requests of other namespaces.
        across_namespaces: bool,
        /// What is said where another one has the copies.
        messages: &'static SplitMessages,
    },
}

/// What a dialect says about routes that cannot share the same requests. `{name}` is the object that is told, `{other}` the one that
/// is served, `{fields}` what they do not agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SplitMessages {
    /// The code.
    pub code: crate::Code,
    /// They do not agree in some fields.
    pub mismatch: &'static str,
    /// The shares are more than a hundred in a hundred.
    pub exceeded: &'static str,
    /// A redirect shares with nobody.
    pub redirect: &'static str,
    /// Another one has the copies already.
    pub mirror: &'static str,
    /// The requests are those of another namespace, and it gets no copies of them.
    pub foreign_mirror: &'static str,
}

/// A share of the requests that several routes match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Share {
    /// So many in a hundred; 0 to 100.
    Percent(u8),
    /// What the others leave, in equal parts with whoever else says so.
    Rest,
}

/// Which of two routes wins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Precedence {
    /// A number that the author chose: the higher one is tried first, however specific the match of the other is. Zero in
    /// dialects that have no such number.
    pub priority: i32,
    /// How much wider the route's own host name is than the virtual host that it is in: the narrower is tried first, whatever
    /// the paths are. Zero where they are equal, and in dialects that do not compare host names.
    pub widening: u16,
    /// Whether it only applies where no route was written, such as a default backend.
    pub implied: bool,
    /// What happens where another route of the dialect matches the same requests.
    pub on_equal: OnEqual,
    /// The dialect.
    pub dialect: Dialect,
    /// When the object was created, in seconds since 1970.
    pub created: i64,
    /// The object's namespace.
    pub namespace: Arc<str>,
    /// The object's name.
    pub name: Arc<str>,
    /// Where the route stands inside the object.
    pub index: u32,
    /// How long the texts are that it matches, where the dialect compares them; zero elsewhere.
    pub lengths: Lengths,
}

impl Precedence {
    /// That of a dialect in which routes neither combine nor have priorities: age, namespace, name, place.
    pub fn by_age(dialect: Dialect, created: i64, namespace: Arc<str>, name: Arc<str>, index: u32) -> Self {
        let (priority, widening, implied, on_equal, lengths) = Default::default();
        Self { priority, widening, implied, on_equal, dialect, created, namespace, name, index, lengths }
    }

    /// Whether two routes are of one object and what it includes.
    pub fn is_same_object(&self, other: &Self) -> bool {
        (self.dialect, self.created) == (other.dialect, other.created)
            && (&self.namespace, &self.name) == (&other.namespace, &other.name)
    }

    /// The order of age: the older object, then namespace and name, then the place inside the object.
    pub fn cmp_age(&self, other: &Self) -> Ordering {
        (self.created, &self.namespace, &self.name, self.index).cmp(&(
            other.created,
            &other.namespace,
            &other.name,
            other.index,
        ))
    }
}

impl Ord for Precedence {
    /// What was written over what is implied; then priority and host name; then the dialect; then age.
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |it: &Self| (it.implied, Reverse(it.priority), it.widening, it.dialect);
        key(self).cmp(&key(other)).then_with(|| self.cmp_age(other)).then_with(|| self.on_equal.cmp(&other.on_equal))
    }
}

impl PartialOrd for Precedence {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
