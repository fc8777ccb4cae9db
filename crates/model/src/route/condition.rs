//! What a request must fulfil besides its path: headers and query parameters.

use crate::{HeaderName, Regex};
use std::{fmt, sync::Arc};

/// How a text is compared. The order is that in which routes are tried: the narrower first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TextMatch {
    /// It is this text.
    Exact(Arc<str>),
    /// The whole of it matches this pattern.
    Regex(Regex),
    /// It begins with this text; never empty.
    Prefix(Arc<str>),
    /// It ends with this text; never empty.
    Suffix(Arc<str>),
    /// It has this text in it; never empty.
    Contains(Arc<str>),
}

/// What is asked of a header or a parameter that may be there several times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Test {
    /// Its value is so.
    Text {
        /// How it is compared.
        text: TextMatch,
        /// Upper and lower case are the same.
        ignore_case: bool,
    },
    /// It is there.
    Present,
}

/// A condition about a header.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeaderMatch {
    /// The header.
    pub name: HeaderName,
    /// Whether the test must fail.
    pub invert: bool,
    /// What is asked of it.
    pub test: Test,
    /// A header that is not there is an empty one.
    pub missing_is_empty: bool,
}

/// The longest name of a query parameter that Envoy takes.
pub const LONGEST_PARAMETER: usize = 1024;

/// A condition about a query parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryMatch {
    /// The parameter: 1 to [`LONGEST_PARAMETER`] bytes.
    pub name: Arc<str>,
    /// What is asked of it.
    pub test: Test,
}

/// Everything that a request must fulfil besides its path; sorted, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Conditions {
    /// About headers.
    pub headers: Vec<HeaderMatch>,
    /// About query parameters.
    pub query: Vec<QueryMatch>,
}

impl Conditions {
    /// Whether every request fulfils them.
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.query.is_empty()
    }

    /// The conditions in the one order that equal sets have in common.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.headers.sort();
        self.headers.dedup();
        self.query.sort();
        self.query.dedup();
        self
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for header in &self.headers {
            write!(f, " and header {}", header.name)?;
        }
        for parameter in &self.query {
            write!(f, " and parameter {}", parameter.name)?;
        }
        Ok(())
    }
}
