//! How many requests each proxy takes.

use crate::{HeaderName, header::HeaderFormat};
use std::time::Duration;

/// Whether Envoy takes a status here: from 400 on, only those that have a name.
pub fn is_status(code: u16) -> bool {
    matches!(code, 400..=417 | 421..=424 | 426 | 428 | 429 | 431 | 500..=508 | 510 | 511)
}

/// How many requests each proxy takes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalLimit {
    /// So many; at least 1.
    pub requests: u32,
    /// In this time.
    pub unit: Duration,
    /// So many more at once.
    pub burst: u32,
    /// The status of an answer to one too many; see [`is_status`].
    pub status: u16,
    /// Headers of that answer.
    pub headers: Vec<(HeaderName, HeaderFormat)>,
}
