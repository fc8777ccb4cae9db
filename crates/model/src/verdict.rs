//! A verdict: what became of a field, as a code, the field, and a sentence about this very case.

use crate::{Code, ObjectRef, Origin, Severity};
use std::fmt;

/// The longest message, in bytes: what is quoted in one may be as long as an object.
pub const LONGEST_MESSAGE: usize = 1024;

/// One finding about one place of one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Verdict {
    /// The place.
    pub origin: Origin,
    /// The row of the table.
    pub code: Code,
    /// This very case, with the names: `Service shop/cart has no port 8081`. At most [`LONGEST_MESSAGE`] bytes.
    pub message: Box<str>,
    /// The other object, or field of one, that the message speaks of, whether it exists or not: who has what is asked for, what is
    /// referred to in vain. For those who can show where it stands, or what stands near it.
    pub related: Option<Box<Origin>>,
}

impl Verdict {
    /// Those about one object, of a list that is sorted by object: what is told about others is not looked at.
    pub fn about<'v>(object: &ObjectRef, verdicts: &'v [Self]) -> &'v [Self] {
        let start = verdicts.partition_point(|verdict| verdict.origin.object < *object);
        let end = start + verdicts[start..].partition_point(|verdict| verdict.origin.object == *object);
        &verdicts[start..end]
    }

    /// A finding. A message that is too long ends in `…`.
    pub fn new(code: Code, origin: Origin, message: impl Into<Box<str>>) -> Self {
        let mut message = message.into();
        if message.len() > LONGEST_MESSAGE {
            let end = message.floor_char_boundary(LONGEST_MESSAGE - "…".len());
            message = format!("{}…", &message[..end]).into();
        }
        Self { origin, code, message, related: None }
    }

    /// The same, with the other object that it speaks of.
    #[must_use]
    pub fn related_to(self, other: impl Into<Option<Origin>>) -> Self {
        Self { related: other.into().map(Box::new), ..self }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_never_longer_than_its_limit() {
        let verdict = |message: String| {
            Verdict::new(Code::IngressHost, ObjectRef::new(kinds::kind::SERVICE, "a", "b").at(""), message)
        };
        assert_eq!(verdict("é".repeat(512)).message.len(), LONGEST_MESSAGE);
        let cut = verdict("é".repeat(513)).message;
        assert!(cut.len() <= LONGEST_MESSAGE && cut.ends_with("é…"), "{cut}");
    }
}
