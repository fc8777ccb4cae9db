//! Paths and path matches.

use crate::Regex;
use std::{fmt, sync::Arc};

/// The longest path that a route may name.
pub const LONGEST: usize = 4096;

/// The directory of ACME HTTP-01 challenges (RFC 8555), which a certificate authority requests in plaintext.
pub const ACME: &str = "/.well-known/acme-challenge/";

/// Why a text is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A path begins with `/`.
    #[error("`{0}` must begin with `/`")]
    NotAbsolute(Box<str>),
    /// A character that is not allowed in a path.
    #[error("`{0}` contains a space, a control character, `?` or `#`")]
    Character(Box<str>),
    /// Nothing at all.
    #[error("the text is empty")]
    Empty,
    /// A control character, where any other is allowed.
    #[error("`{0}` contains a control character")]
    Control(Box<str>),
    /// Longer than [`LONGEST`].
    #[error("the path has {0} bytes; the limit is {LONGEST}")]
    TooLong(usize),
}

/// A path without query: begins with `/`, and has no character that is not allowed in a request's path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Arc<str>);

impl Path {
    /// Reads a path.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if !text.starts_with('/') {
            return Err(PathError::NotAbsolute(shown(text)));
        }
        if text.len() > LONGEST {
            return Err(PathError::TooLong(text.len()));
        }
        if text.bytes().any(|b| b <= 0x20 || b == 0x7f || b == b'?' || b == b'#') {
            return Err(PathError::Character(shown(text)));
        }
        Ok(Self(text.into()))
    }

    /// The path `/`.
    pub fn root() -> Self {
        Self("/".into())
    }

    /// The same with one final slash, which may be the one byte more than [`LONGEST`].
    #[must_use]
    pub fn with_final_slash(&self) -> Self {
        Self(with_final_slash(&self.0))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A path with or without a query, as a request line has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathAndQuery(Arc<str>);

impl PathAndQuery {
    /// Reads a path and the query after the first `?`; further `?` are part of the query.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        Path::parse(path)?;
        if text.len() > LONGEST {
            return Err(PathError::TooLong(text.len()));
        }
        if query.bytes().any(|b| b <= 0x20 || b == 0x7f || b == b'#') {
            return Err(PathError::Character(shown(text)));
        }
        Ok(Self(text.into()))
    }

    /// Both as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Path> for PathAndQuery {
    fn from(path: Path) -> Self {
        Self(path.0)
    }
}

/// What replaces a path, or a prefix of one: any text without control characters, which is sent as it is written. It may have a query.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathReplacement(Arc<str>);

impl PathReplacement {
    /// Reads a text.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        if text.len() > LONGEST {
            return Err(PathError::TooLong(text.len()));
        }
        if text.bytes().any(|b| b < 0x20 || b == 0x7f) {
            return Err(PathError::Control(shown(text)));
        }
        Ok(Self(text.into()))
    }

    /// Reads a text that begins as a path does.
    pub fn parse_absolute(text: &str) -> Result<Self, PathError> {
        if !text.starts_with('/') {
            return Err(PathError::NotAbsolute(shown(text)));
        }
        Self::parse(text)
    }

    /// The same with one final slash, which may be the one byte more than [`LONGEST`].
    #[must_use]
    pub fn with_final_slash(&self) -> Self {
        Self(with_final_slash(&self.0))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Path> for PathReplacement {
    fn from(path: Path) -> Self {
        Self(path.0)
    }
}

impl fmt::Display for PathReplacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for PathAndQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn with_final_slash(text: &str) -> Arc<str> {
    format!("{}/", text.trim_end_matches('/')).into()
}

fn shown(text: &str) -> Box<str> {
    text.chars().take(80).collect::<String>().escape_debug().to_string().into()
}

/// How the path of a request is matched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathMatch {
    /// The path is this one.
    Exact(Path),
    /// The whole path matches this pattern.
    Regex(Regex),
    /// This path and those below it, by path element: `/a` matches `/a` and `/a/b`, not `/ab`. Without a final `/`.
    Below(Path),
    /// Every path that begins with this text: `/a` matches `/ab`.
    Prefix(Path),
    /// The path is this one, in upper or lower case.
    ExactIgnoreCase(Path),
    /// Every path that begins with this text, in upper or lower case.
    PrefixIgnoreCase(Path),
}

impl PathMatch {
    /// A match by path element. A final `/` is ignored, and every path is below `/`.
    pub fn below(path: &Path) -> Self {
        match path.as_str().trim_end_matches('/') {
            "" => PathMatch::Prefix(Path::root()),
            trimmed => PathMatch::Below(Path(trimmed.into())),
        }
    }

    /// Whether it matches ACME challenges only: their directory, in any form, or a path below it.
    pub fn is_acme(&self) -> bool {
        match self {
            PathMatch::Below(path) => path.as_str().starts_with(ACME) || path.as_str() == ACME.trim_end_matches('/'),
            PathMatch::Exact(_) | PathMatch::Prefix(_) => self.text().starts_with(ACME),
            // What follows may be another alternative, or make the final `/` optional.
            PathMatch::Regex(regex) => regex
                .as_str()
                .strip_prefix(ACME)
                .is_some_and(|rest| !rest.contains('|') && !rest.starts_with(['?', '*', '{'])),
            PathMatch::ExactIgnoreCase(_) | PathMatch::PrefixIgnoreCase(_) => {
                self.text().get(..ACME.len()).is_some_and(|start| start.eq_ignore_ascii_case(ACME))
            }
        }
    }

    /// The text of the path or pattern.
    pub fn text(&self) -> &str {
        match self {
            PathMatch::Exact(path)
            | PathMatch::Below(path)
            | PathMatch::Prefix(path)
            | PathMatch::ExactIgnoreCase(path)
            | PathMatch::PrefixIgnoreCase(path) => path.as_str(),
            PathMatch::Regex(regex) => regex.as_str(),
        }
    }

    /// Whether it matches every path.
    pub fn is_every_path(&self) -> bool {
        matches!(self, PathMatch::Prefix(path) | PathMatch::PrefixIgnoreCase(path) if path.as_str() == "/")
    }
}

impl fmt::Display for PathMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathMatch::Exact(path) => write!(f, "= {path}"),
            PathMatch::Regex(regex) => write!(f, "~ {regex}"),
            PathMatch::Below(path) => write!(f, "{path}/…"),
            PathMatch::Prefix(path) => write!(f, "{path}…"),
            PathMatch::ExactIgnoreCase(path) => write!(f, "= {path} in any case"),
            PathMatch::PrefixIgnoreCase(path) => write!(f, "{path}… in any case"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_absolute_and_clean() {
        assert!(Path::parse("/a/b%20c").is_ok());
        for wrong in ["", "a", "/a b", "/a?b", "/a#b", "/a\n"] {
            assert!(Path::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_query_follows_a_path() {
        for right in ["/", "/check?x=1", "/check?", "/check?a=b?c&d=/"] {
            assert_eq!(PathAndQuery::parse(right).map(|found| found.to_string()), Ok(right.to_owned()));
        }
        for wrong in ["", "?x=1", "check?x=1", "/check?a b", "/check?a#b", "/check#a?b", "/check?a\n"] {
            assert!(PathAndQuery::parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(PathAndQuery::parse(&format!("/?{}", "a".repeat(LONGEST))).is_err());
    }

    #[test]
    fn a_replacement_is_any_text_without_control_characters() {
        for right in ["/", "/a", "v2/", "/search?q=", "/a#b", "/a b", "?x"] {
            assert_eq!(PathReplacement::parse(right).map(|found| found.to_string()), Ok(right.to_owned()));
        }
        assert_eq!(PathReplacement::parse(""), Err(PathError::Empty));
        assert!(PathReplacement::parse_absolute("/a?b#c").is_ok());
        assert!(matches!(PathReplacement::parse_absolute("a"), Err(PathError::NotAbsolute(_))));
        for wrong in ["/a\nb", "/a\rb", "/a\0", "/a\tb", "/a\x7f"] {
            assert!(matches!(PathReplacement::parse(wrong), Err(PathError::Control(_))), "{wrong:?}");
        }
        assert!(matches!(PathReplacement::parse(&"a".repeat(LONGEST + 1)), Err(PathError::TooLong(_))));
    }

    #[test]
    fn the_directory_of_challenges_is_known_with_and_without_a_final_slash() {
        let path = |text: &str| Path::parse(text).expect("a path");
        for text in [ACME, "/.well-known/acme-challenge", "/.well-known/acme-challenge/token"] {
            assert!(PathMatch::below(&path(text)).is_acme(), "{text}");
        }
        assert!(PathMatch::Prefix(path(ACME)).is_acme());
        assert!(PathMatch::PrefixIgnoreCase(path("/.Well-Known/ACME-challenge/")).is_acme());
        assert!(!PathMatch::PrefixIgnoreCase(path("/.Well-Known/é")).is_acme());
        assert!(PathMatch::Exact(path("/.well-known/acme-challenge/token")).is_acme());
        for text in ["/", "/.well-known", "/.well-known/acme-challenges", "/x/.well-known/acme-challenge"] {
            assert!(!PathMatch::below(&path(text)).is_acme(), "{text}");
        }
        let pattern = |rest: &str| PathMatch::Regex(Regex::parse(&format!("{ACME}{rest}")).expect("a pattern"));
        for rest in ["[a-z]+", ".*", "(x)/y"] {
            assert!(pattern(rest).is_acme(), "{rest}");
        }
        for rest in ["x|/login.*", "|/", "?", "*.*", "{0}login", "(x|y)"] {
            assert!(!pattern(rest).is_acme(), "{rest}");
        }
    }

    #[test]
    fn a_final_slash_is_no_element() {
        let below = |text| PathMatch::below(&Path::parse(text).expect("a path"));
        assert_eq!(below("/a/"), below("/a"));
        assert_eq!(below("/"), PathMatch::Prefix(Path::root()));
        assert_eq!(below("//"), PathMatch::Prefix(Path::root()));
    }

    #[test]
    fn one_final_slash_is_added_to_any_path() {
        for (text, with_slash) in [("/a", "/a/"), ("/a/", "/a/"), ("/a//", "/a/"), ("/", "/")] {
            assert_eq!(Path::parse(text).expect("a path").with_final_slash().as_str(), with_slash);
            assert_eq!(PathReplacement::parse(text).expect("a text").with_final_slash().as_str(), with_slash);
        }
        let longest = format!("/{}", "a".repeat(LONGEST - 1));
        let path = Path::parse(&longest).expect("a path of the greatest length");
        assert_eq!(path.with_final_slash().as_str(), format!("{longest}/"));
    }
}
