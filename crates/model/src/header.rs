//! Header names and values that Envoy takes as they are.
//!
//! Envoy refuses a whole route table for one header name with a space in it, so the check stands here, where the field
//! that holds it can still be named.

mod format;

pub use format::{Formatted, HeaderFormat, only_request_header};

use std::{fmt, sync::Arc};

/// The longest name or value that is passed on; Envoy's own limits on a request are of this order.
pub const LONGEST: usize = 16 * 1024;

/// Why a text is no header name or value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Nothing there.
    #[error("the header name is empty")]
    Empty,
    /// A character that no header may have.
    #[error("`{0}` has a character that a header cannot carry")]
    Character(Box<str>),
    /// Past [`LONGEST`].
    #[error("it is {0} bytes long; {LONGEST} is the limit")]
    TooLong(usize),
}

/// A header name in lower case; a pseudo header (`:method`) where a match asks for one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeaderName(Arc<str>);

impl HeaderName {
    /// Reads an ordinary header name, in any case.
    pub fn parse(text: &str) -> Result<Self, HeaderError> {
        if text.is_empty() {
            return Err(HeaderError::Empty);
        }
        if text.len() > LONGEST {
            return Err(HeaderError::TooLong(text.len()));
        }
        if !text.bytes().all(is_token) {
            return Err(HeaderError::Character(text.escape_debug().to_string().into()));
        }
        Ok(Self(text.to_ascii_lowercase().into()))
    }

    /// Reads a name that a match may ask for: an ordinary header, or one of HTTP/2's pseudo headers.
    pub fn parse_matched(text: &str) -> Result<Self, HeaderError> {
        match text.to_ascii_lowercase().as_str() {
            pseudo @ (":method" | ":path" | ":authority" | ":scheme") => Ok(Self(pseudo.into())),
            // Envoy knows the header by its other name only.
            "host" => Ok(Self::authority()),
            _ => Self::parse(text),
        }
    }

    /// `:authority`, which is what HTTP/1 calls `Host`.
    pub fn authority() -> Self {
        Self(":authority".into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HeaderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A header value: visible characters, spaces and tabs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeaderValue(Arc<str>);

impl HeaderValue {
    /// Reads a value.
    pub fn parse(text: &str) -> Result<Self, HeaderError> {
        if text.len() > LONGEST {
            return Err(HeaderError::TooLong(text.len()));
        }
        if text.bytes().any(|b| (b < 0x20 && b != b'\t') || b == 0x7f) {
            return Err(HeaderError::Character(text.escape_debug().to_string().into()));
        }
        Ok(Self(text.into()))
    }

    /// The value as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tokens() {
        assert_eq!(HeaderName::parse("X-Team").map(|n| n.to_string()), Ok("x-team".into()));
        for wrong in ["", "a b", "a:b", ":method", "é", "a\n"] {
            assert!(HeaderName::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn values_have_no_line_ends() {
        assert!(HeaderValue::parse("a, b\tc").is_ok());
        for wrong in ["a\nb", "a\rb", "a\0", "\x7f"] {
            assert!(HeaderValue::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
