//! What is done with every request of a route, whatever its action is.

use crate::{HeaderName, header::HeaderFormat};

/// What is changed about headers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeaderChanges {
    /// Headers that are given a value, whatever they had; sorted, each once.
    pub set: Vec<(HeaderName, HeaderFormat)>,
    /// Headers that are taken away; sorted, each once.
    pub remove: Vec<HeaderName>,
}

/// What is done with every request of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Policy {
    /// What is changed about the headers of a request.
    pub request_headers: HeaderChanges,
    /// What is changed about the headers of an answer.
    pub response_headers: HeaderChanges,
}
