//! Who wins where two objects ask for the same thing.
//!
//! What was said over what is implied; then the stronger dialect; inside one the older object, then the one whose namespace
//! and name come first, then the place inside the object. The order is total, so every replica and every rebuild agree.

use std::sync::Arc;

/// The language an object is written in, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// Gateway API.
    Gateway,
    /// HTTPProxy.
    HttpProxy,
    /// Ingress.
    Ingress,
}

/// The claim of one piece; the least one wins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// Whether it only stands in where nobody said anything, such as a default backend: what was said wins.
    pub implied: bool,
    /// The dialect.
    pub dialect: Dialect,
    /// When the object was made, in seconds since 1970.
    pub created: i64,
    /// The object's namespace.
    pub namespace: Arc<str>,
    /// The object's name.
    pub name: Arc<str>,
    /// Where the piece stands inside the object.
    pub index: u32,
}
