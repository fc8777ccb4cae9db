//! Which other sites may use a route.

use super::TextMatch;
use crate::HeaderName;
use std::time::Duration;

/// A site.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// Every one.
    Any,
    /// Those whose origin is so, in any case.
    Matching(TextMatch),
}

/// Which other sites may use a route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cors {
    /// The sites; never empty.
    pub origins: Vec<Origin>,
    /// The methods that they may use; tokens.
    pub methods: Vec<HeaderToken>,
    /// The headers that they may send.
    pub headers: Vec<HeaderToken>,
    /// The headers that they may read.
    pub exposed: Vec<HeaderToken>,
    /// Whether with cookies and the like.
    pub credentials: bool,
    /// How long a browser may remember it.
    pub max_age: Option<Duration>,
    /// Whether from a public site to a private address.
    pub private_network: bool,
}

/// A word of the characters that header names have, in the case in which it was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeaderToken(Box<str>);

impl HeaderToken {
    /// Reads a word.
    pub fn parse(text: &str) -> Result<Self, crate::header::HeaderError> {
        HeaderName::parse(text).map(|_| Self(text.into()))
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
