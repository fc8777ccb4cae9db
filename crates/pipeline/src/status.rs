//! The table of statuses: how the status of each kind is decided, by the dialect that the kind belongs to.

use kinds::Kind;
use model::status::StatusKind;

/// How the status of objects of a kind is decided; none for kinds without a status of ours.
pub fn status_of(kind: Kind) -> Option<&'static StatusKind> {
    match kind {
        Kind::Ingress => Some(&dialect_ingress::status::STATUS),
        Kind::HttpProxy(_) => Some(&dialect_httpproxy::status::STATUS),
        _ => None,
    }
}
