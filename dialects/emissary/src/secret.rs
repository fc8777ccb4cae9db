//! Secrets that objects refer to, and whose they may be.
//!
//! An object uses Secrets of its own namespace and those that are delegated to it. What the operator offers to everybody is in TLSContexts of
//! Sesame's namespace: the Secrets of a [TLSContext](crate::tls_context) are used with the rights of its namespace, by whomever it may be
//! named. Secrets that are Sesame's own are nobody's, whoever's rights are used ([`resolve::reserved`]).

use crate::{EmissaryView, Settings};
use model::ObjectRef;
use resolve::Rejection;

/// The namespace with whose rights a Secret is used for an object of namespace `user`.
fn rights<'u>(user: &'u str, id: &'u ObjectRef, settings: &Settings) -> &'u str {
    if settings.cross_namespace { &id.namespace } else { user }
}

/// The certificate in a Secret, for an object of namespace `user`.
pub(crate) fn certificate(
    view: &mut impl EmissaryView,
    user: &str,
    id: &ObjectRef,
    settings: &Settings,
) -> Result<(), Rejection> {
    resolve::certificate(view, rights(user, id, settings), id)
}

/// The CA bundle in a Secret, for an object of namespace `user`.
pub(crate) fn trusted(
    view: &mut impl EmissaryView,
    user: &str,
    id: &ObjectRef,
    settings: &Settings,
) -> Result<(), Rejection> {
    resolve::trusted(view, rights(user, id, settings), id)
}

/// The CRLs in a Secret, for an object of namespace `user`.
pub(crate) fn revocation_lists(
    view: &mut impl EmissaryView,
    user: &str,
    id: &ObjectRef,
    settings: &Settings,
) -> Result<(), Rejection> {
    resolve::revocation_lists(view, rights(user, id, settings), id)
}
