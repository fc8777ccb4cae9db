//! Names that a table does not list but that lead to one it does: a certificate by the SNI that a visitor sent.

use crate::kind::Kind;
use crate::resource::Name;

/// Knows which listed resource answers for a name that is not listed.
pub trait Resolver: Send + Sync {
    /// Whether it knows about resources of this type at all.
    fn resolves(&self, kind: Kind) -> bool;

    /// The name of the resource that answers for `asked`; `listed` tells whether the table has a name. `None` is
    /// answered as removed, and asked again when names come or go.
    fn resolve(&self, kind: Kind, asked: &str, listed: &dyn Fn(&str) -> bool) -> Option<Name>;

    /// Whether a client may have been made to ask for this name by somebody else. If no resource answers for it, such a name
    /// is forgotten when there are too many of them: the client is told that it is gone, and asks again if it needs it.
    fn is_made_up(&self, _kind: Kind, _asked: &str) -> bool {
        true
    }
}
