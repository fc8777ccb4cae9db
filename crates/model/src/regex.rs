//! Regular expressions that Envoy's engine, RE2, compiles.
//!
//! A regex that RE2 refuses makes Envoy refuse every route sent with it, so a pattern is parsed here first. RE2 and the
//! `regex` crate, whose parser this is, agree on most of the language; where they differ the pattern is refused rather
//! than guessed at ([`re2`]). The size of the compiled program is bounded, too: `(((a{100}){100}){100})` is a short text
//! and a very long program.

mod leading_slash;
mod re2;
mod rewrite;

use regex_syntax::ast;
use std::{fmt, sync::Arc};

pub use rewrite::{RegexRewrite, SubstitutionError};

/// The longest pattern.
pub const LONGEST: usize = 4096;
/// The largest program, in instructions as we estimate them; RE2's own limit is several times this.
pub const LARGEST: u64 = 20_000;

/// A pattern in RE2's syntax.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Regex(Arc<str>);

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegexError {
    /// Nothing there: Envoy takes no empty pattern.
    #[error("the regular expression is empty")]
    Empty,
    /// It does not parse; the text says where.
    #[error("`{pattern}` is not a valid regular expression: {why} (at character {at})")]
    Syntax {
        /// The pattern.
        pattern: Box<str>,
        /// What is wrong.
        why: Box<str>,
        /// Where, counted from 1.
        at: usize,
    },
    /// Something that the two engines read differently or RE2 does not know.
    #[error("`{pattern}` uses {what}, which is not supported")]
    Unsupported {
        /// The pattern.
        pattern: Box<str>,
        /// The construct.
        what: &'static str,
    },
    /// The compiled form passes the limit.
    #[error("the regular expression is too large: {0}")]
    TooLarge(&'static str),
}

impl Regex {
    /// Reads a pattern.
    pub fn parse(pattern: &str) -> Result<Self, RegexError> {
        if pattern.is_empty() {
            return Err(RegexError::Empty);
        }
        if pattern.len() > LONGEST {
            return Err(RegexError::TooLarge("more than 4096 bytes"));
        }
        let tree = ast::parse::ParserBuilder::new().nest_limit(100).build().parse(pattern).map_err(|error| {
            let (why, at) = (error.kind().to_string().into(), error.span().start.column);
            RegexError::Syntax { pattern: pattern.into(), why, at }
        })?;
        ast::visit(&tree, re2::Check).map_err(|what| RegexError::Unsupported { pattern: pattern.into(), what })?;
        let re2::Size { steps, repeats } = re2::size(&tree);
        if repeats > re2::MOST_REPEATS {
            return Err(RegexError::TooLarge("its repetitions multiply to more than 1000"));
        }
        if steps > LARGEST {
            return Err(RegexError::TooLarge("it makes a program of more than 20000 steps"));
        }
        Ok(Self(pattern.into()))
    }

    /// A pattern that matches exactly this text.
    pub fn literal(text: &str) -> Self {
        Self(regex_syntax::escape(text).into())
    }

    /// How many groups it captures.
    pub fn groups(&self) -> usize {
        let tree = ast::parse::ParserBuilder::new().nest_limit(100).build().parse(&self.0);
        tree.map_or(0, |tree| re2::groups(&tree))
    }

    /// The pattern as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    //! What is taken and what is not.

    use super::*;

    #[test]
    fn patterns_that_re2_takes() {
        for right in [
            "/a.*",
            "^/v[0-9]+/x$",
            "(?i)/abc",
            r"/\d+(/|$)",
            "/(?P<id>[a-z]+)",
            r"\pL+",
            "/a{2,5}",
            r"/\w{63}(\.\w{63})*",
            "/.{1000}",
            "/é",
            "/(é)*",
            r"/\xE9*",
        ] {
            assert!(Regex::parse(right).is_ok(), "{right:?}: {:?}", Regex::parse(right));
        }
    }

    #[test]
    fn patterns_that_it_does_not() {
        for wrong in [
            "",
            "(",
            "[a",
            "a**b(",
            "(?=x)",
            r"\1",
            "a{2000}",
            "[a&&b]",
            "(?x)a b",
            r"\u{61}",
            "[[a]b]",
            r"\p{Greek}",
            r"\Qa.b\E",
            "[^[]",
            "a**",
            "a{2}{3}",
            "(a{50}){50}",
            r"\p{LC}",
            r"\p{lu}",
            r"\_",
            "(?P<a.b>x)",
            r"\b{start}",
            r"\x{10FFFF}",
            "[é]",
            "é*",
        ] {
            assert!(Regex::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_bomb_is_refused_quickly() {
        assert!(matches!(Regex::parse("((a{100}){100}){100}"), Err(RegexError::TooLarge(_))));
        assert!(matches!(Regex::parse(&"a".repeat(5000)), Err(RegexError::TooLarge(_))));
        assert!(Regex::parse(&"(".repeat(3000)).is_err());
    }

    #[test]
    fn an_error_says_where() {
        let Err(RegexError::Syntax { at, .. }) = Regex::parse("/ab[c") else { panic!("it parsed") };
        assert_eq!(at, 4);
    }

    #[test]
    fn a_literal_is_quoted() {
        assert_eq!(Regex::literal("/a.b").as_str(), r"/a\.b");
    }
}
