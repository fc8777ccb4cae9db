//! Header names and values that Envoy accepts.
//!
//! Envoy rejects a whole route table for one header name with a space in it, so names are checked where the field that
//! contains them is still known.
//!
//! A [`HeaderName`] may be read: in a condition, in a hash policy. What may be set, added, appended or removed is a
//! [`MutableHeader`], which is not a header of message framing or connection management, nor one of Sesame's own. Where it is not an
//! object that says what is set, but a server that a proxy asks, [`immutable_names`] has the same rule.

mod format;

pub use format::{Formatted, HeaderFormat, only_request_header};

use std::{fmt, sync::Arc};

/// The longest name or value, in bytes; Envoy's own limits on a request are of this order.
pub const LONGEST: usize = 16 * 1024;

/// Why a text is not a header name or value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Empty.
    #[error("the header name is empty")]
    Empty,
    /// A character that is not allowed in a header.
    #[error("`{0}` contains a character that is not allowed in a header")]
    Character(Box<str>),
    /// Longer than [`LONGEST`].
    #[error("it has {0} bytes; the limit is {LONGEST}")]
    TooLong(usize),
    /// It frames messages or manages the connection: a change of it affects other requests of the connection.
    #[error("the header {0} is managed by the proxy; it cannot be set or removed")]
    Framing(Box<str>),
    /// A value in the form that an operator had in earlier versions of Envoy: it is read as one, whatever escapes it.
    #[error("`%{0}(…)%` cannot be sent: proxies read it as an operator even where it is escaped")]
    Rewritten(Box<str>),
    /// Sesame uses it to find the virtual host of a request.
    #[error("the header {0} is reserved for Sesame; it cannot be set or removed")]
    Reserved(Box<str>),
    /// It is a pseudo header of HTTP/2.
    #[error("the pseudo-header `{0}` cannot be set or removed")]
    Pseudo(Box<str>),
    /// The Host header is rewritten by other means.
    #[error("the header Host cannot be changed here")]
    Host,
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

    /// `x-forwarded-proto`, in which proxies say by which scheme a request came to them.
    pub fn forwarded_proto() -> Self {
        Self("x-forwarded-proto".into())
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

/// The prefix of the headers that Sesame uses itself.
pub const RESERVED_PREFIX: &str = "x-sesame-";

/// Hop-by-hop headers, and those of message framing.
pub const FRAMING: [&str; 7] =
    ["connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

/// The prefix of the headers between a client and a proxy.
const PROXY_PREFIX: &str = "proxy-";

/// The name of a header that may be set, added, appended or removed; see the head of this module for those that may not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MutableHeader(HeaderName);

impl MutableHeader {
    /// Reads a name, in any case.
    pub fn parse(text: &str) -> Result<Self, HeaderError> {
        if text.starts_with(':') {
            return Err(HeaderError::Pseudo(
                text.chars().take(80).collect::<String>().escape_debug().to_string().into(),
            ));
        }
        let name = HeaderName::parse(text)?;
        match name.as_str() {
            "host" => Err(HeaderError::Host),
            own if own.starts_with(RESERVED_PREFIX) => Err(HeaderError::Reserved(own.into())),
            other if FRAMING.contains(&other) || other.starts_with(PROXY_PREFIX) => {
                Err(HeaderError::Framing(other.into()))
            }
            _ => Ok(Self(name)),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for MutableHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The names that are no [`MutableHeader`], as a regular expression for a proxy.
pub fn immutable_names() -> String {
    format!("(?i)^(:.*|host|{}|{PROXY_PREFIX}.*|{RESERVED_PREFIX}.*)$", FRAMING.join("|"))
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
    fn what_frames_a_message_and_what_is_ours_cannot_be_changed() {
        assert_eq!(MutableHeader::parse("X-Team").map(|n| n.to_string()), Ok("x-team".into()));
        for right in ["proxy", "content-type", "te-x", "x-sesame", "upgrade-insecure-requests", "keep-alive-x"] {
            assert!(MutableHeader::parse(right).is_ok(), "{right:?}");
        }
        for wrong in [
            "Content-Length",
            "TRANSFER-ENCODING",
            "connection",
            "Keep-Alive",
            "Upgrade",
            "TE",
            "Trailer",
            "Proxy-Connection",
            "Proxy-Authenticate",
            "proxy-",
            ":path",
            ":status",
            ":x",
            "Host",
            "X-Sesame-Host",
            "x-sesame-",
            "a b",
            "",
        ] {
            assert!(MutableHeader::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_expression_has_every_name_that_cannot_be_changed() {
        assert_eq!(
            immutable_names(),
            "(?i)^(:.*|host|connection|content-length|keep-alive|te|trailer|transfer-encoding|upgrade|proxy-.*|x-sesame-.*)$"
        );
    }

    #[test]
    fn values_have_no_line_ends() {
        assert!(HeaderValue::parse("a, b\tc").is_ok());
        for wrong in ["a\nb", "a\rb", "a\0", "\x7f"] {
            assert!(HeaderValue::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
