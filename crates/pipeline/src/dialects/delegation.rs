//! TLSCertificateDelegation of both groups, wired: its status. What it permits is in a table of its own ([`crate::certificates`]).

use super::Dialect;
use crate::view::TableView;
use dialect_httpproxy::delegation;
use kinds::{Kind, TlsCertificateDelegation, Typed};
use model::{ObjectRef, Translation};

/// TLSCertificateDelegations.
pub struct DelegationDialect;

impl Dialect for DelegationDialect {
    fn translates(&self) -> &'static [Kind] {
        TlsCertificateDelegation::KINDS
    }

    fn declare(&self, _: &mut engine::Pipeline, _: bool) {}

    fn translate(&self, object: &ObjectRef, view: &mut TableView<'_, '_>) -> Option<Translation> {
        let delegation = view.get::<TlsCertificateDelegation>(object)?;
        Some(delegation::translate(object.kind, &delegation))
    }

    fn exceeds(&self, _: &ObjectRef, _: usize, _: &mut TableView<'_, '_>) -> bool {
        false
    }
}
