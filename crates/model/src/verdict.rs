//! What became of something a person wrote: a code, the place, and a sentence about this very case.

use crate::{Code, Origin, Severity};
use std::fmt;

/// One finding about one place of one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Verdict {
    /// The place.
    pub origin: Origin,
    /// The row of the table.
    pub code: Code,
    /// This very case, with the names: `Service shop/cart has no port 8081`.
    pub message: Box<str>,
}

impl Verdict {
    /// A finding.
    pub fn new(code: Code, origin: Origin, message: impl Into<Box<str>>) -> Self {
        Self { origin, code, message: message.into() }
    }

    /// How much it takes away.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {} ({})", self.code, self.origin, self.message, self.code.help())
    }
}
