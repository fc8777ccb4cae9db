//! What is done with every request of a route, whatever its action is.

use super::{ClientFilter, CookieRewrite, Cors, LocalLimit};
use crate::{HeaderName, header::HeaderFormat};
use std::sync::Arc;

/// What is changed about headers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeaderChanges {
    /// Headers that are given a value, whatever they had; sorted, each once, never `host`.
    pub set: Vec<(HeaderName, HeaderFormat)>,
    /// Headers that are taken away; sorted, each once, never `host`.
    pub remove: Vec<HeaderName>,
}

/// What is done with every request of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Policy {
    /// What is changed about the headers of a request.
    pub request_headers: HeaderChanges,
    /// What is changed about the headers of an answer.
    pub response_headers: HeaderChanges,
    /// Which clients may.
    pub clients: Option<ClientFilter>,
    /// How many requests of this route are taken.
    pub limit: Option<LocalLimit>,
    /// How many requests of all routes of the host are taken together, where a route says nothing.
    pub host_limit: Option<Arc<LocalLimit>>,
    /// Which other sites may.
    pub cors: Option<Arc<Cors>>,
    /// What is changed about the cookies that backends set; sorted, each cookie once.
    pub cookies: Vec<CookieRewrite>,
}
