//! A pattern and what replaces what it matches.
//!
//! Envoy refuses a substitution that refers to a group that the pattern does not have, so both are read together.

use super::{Regex, leading_slash};
use std::sync::Arc;

/// The longest substitution, in bytes.
pub const LONGEST: usize = 4096;

/// A pattern, and what replaces each of its matches: text in which `\1` to `\9` are groups of the pattern, `\0` is all that it
/// matched, and `\\` is a backslash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegexRewrite {
    pattern: Regex,
    substitution: Arc<str>,
}

/// Why a text is no substitution for a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubstitutionError {
    /// A group that there is not.
    #[error("`\\{group}` refers to a group that the pattern does not have; it has {groups}")]
    Group {
        /// The group.
        group: usize,
        /// How many there are.
        groups: usize,
    },
    /// A backslash before something else.
    #[error("a backslash must be followed by a digit or a backslash")]
    Escape,
    /// A character that cannot stand in a path.
    #[error("it contains a space or a control character")]
    Character,
    /// Longer than [`LONGEST`].
    #[error("it has {0} bytes; the limit is {LONGEST}")]
    TooLong(usize),
}

impl RegexRewrite {
    /// Reads a substitution for a pattern.
    pub fn new(pattern: Regex, substitution: &str) -> Result<Self, SubstitutionError> {
        if substitution.len() > LONGEST {
            return Err(SubstitutionError::TooLong(substitution.len()));
        }
        if substitution.bytes().any(|byte| byte <= 0x20 || byte == 0x7f) {
            return Err(SubstitutionError::Character);
        }
        let groups = pattern.groups();
        let mut bytes = substitution.bytes();
        while let Some(byte) = bytes.next() {
            if byte != b'\\' {
                continue;
            }
            match bytes.next() {
                Some(b'\\') => {}
                Some(digit) if digit.is_ascii_digit() => {
                    let group = usize::from(digit - b'0');
                    if group > groups {
                        return Err(SubstitutionError::Group { group, groups });
                    }
                }
                _ => return Err(SubstitutionError::Escape),
            }
        }
        Ok(Self { pattern, substitution: substitution.into() })
    }

    /// The pattern.
    pub fn pattern(&self) -> &Regex {
        &self.pattern
    }

    /// What replaces what it matches.
    pub fn substitution(&self) -> &str {
        &self.substitution
    }

    /// Whether every path, each of which begins with `/`, still begins with one when it is rewritten.
    pub fn keeps_leading_slash(&self) -> bool {
        leading_slash::is_kept(self.pattern.as_str(), &self.substitution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(pattern: &str, substitution: &str) -> Result<RegexRewrite, SubstitutionError> {
        RegexRewrite::new(Regex::parse(pattern).expect("a pattern"), substitution)
    }

    #[test]
    fn a_substitution_refers_to_groups_that_there_are() {
        for (pattern, substitution) in
            [("/(a)/(b)", "/\\2/\\1"), ("/a", "/\\0"), ("/(?P<x>a)(?:b)", "/\\1"), ("/a", "/\\\\x"), ("/a", "")]
        {
            assert!(rewrite(pattern, substitution).is_ok(), "{pattern} {substitution}");
        }
        assert_eq!(rewrite("/(a)", "/\\2"), Err(SubstitutionError::Group { group: 2, groups: 1 }));
        assert_eq!(rewrite("/(?:a)", "/\\1"), Err(SubstitutionError::Group { group: 1, groups: 0 }));
        for wrong in ["/\\x", "/\\"] {
            assert_eq!(rewrite("/a", wrong), Err(SubstitutionError::Escape), "{wrong}");
        }
        for wrong in ["/a b", "/a\r\nx: y"] {
            assert_eq!(rewrite("/a", wrong), Err(SubstitutionError::Character), "{wrong:?}");
        }
    }
}
