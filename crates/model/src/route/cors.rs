//! CORS: which origins may use a route.

use super::StringMatch;
use crate::HeaderName;
use std::time::Duration;

/// An allowed origin.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AllowedOrigin {
    /// Every origin.
    Any,
    /// Those that match, ignoring case.
    Matching(StringMatch),
}

/// The CORS policy of a route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cors {
    /// The allowed origins; never empty.
    pub origins: Vec<AllowedOrigin>,
    /// The allowed methods.
    pub methods: Vec<HeaderToken>,
    /// The allowed request headers.
    pub headers: Vec<HeaderToken>,
    /// The exposed response headers.
    pub exposed: Vec<HeaderToken>,
    /// Whether credentials are allowed.
    pub credentials: bool,
    /// How long a browser may cache a preflight response.
    pub max_age: Option<Duration>,
    /// Whether private network access is allowed.
    pub private_network: bool,
    /// Whether a preflight request of another origin goes on to the backend; otherwise the proxy answers it, with no CORS header.
    pub forwards_other_preflights: bool,
}

/// An HTTP token, with its case preserved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeaderToken(Box<str>);

impl HeaderToken {
    /// Reads a token.
    pub fn parse(text: &str) -> Result<Self, crate::header::HeaderError> {
        HeaderName::parse(text).map(|_| Self(text.into()))
    }

    /// The token as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
