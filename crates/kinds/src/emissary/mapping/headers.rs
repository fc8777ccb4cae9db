//! Headers that are added, and cross-origin requests.

use serde::Deserialize;

/// A header that is added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AddedHeader {
    /// Its value.
    pub value: Box<str>,
    /// A header that is there is kept beside it; true if absent.
    pub append: Option<bool>,
}

/// Cross-origin requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Cors {
    /// The origins that may ask.
    pub origins: Box<[Box<str>]>,
    /// The methods that are allowed.
    pub methods: Box<[Box<str>]>,
    /// The request headers that are allowed.
    pub headers: Box<[Box<str>]>,
    /// Credentials may be sent.
    pub credentials: Option<bool>,
    /// The response headers that scripts may read.
    pub exposed_headers: Box<[Box<str>]>,
    /// Seconds for which the answer to a preflight request may be cached.
    pub max_age: Option<Box<str>>,
}
