//! The client certificate that proxies present to TLS backends, which the Gateway of each parent chooses.
//!
//! Rules are read once, whatever the parents are. Where the Gateway of a parent has a client certificate, its proxies have clusters of
//! their own for TLS backends. A certificate that cannot be used is never left out: a backend that relies on it would be shown none.
//! The backend is then not used, and its share is answered.

use super::{Rejection, Work, attachment::Parent};
use crate::{GatewayView, gateway::backend_certificate::BackendCertificate};
use model::{ClusterId, Code, FieldPath, ObjectRef, translation::PendingPart};
use std::{collections::BTreeMap, sync::Arc};

/// The certificates of the Gateways of a route.
#[derive(Default)]
pub(crate) struct Presented(BTreeMap<ObjectRef, Option<Arc<BackendCertificate>>>);

impl Presented {
    /// The certificates of these parents' Gateways. Where one is no longer permitted, nothing of the route is kept as it was for the
    /// sake of something that has not been read yet: it may be in use there.
    pub fn of(work: &mut Work<'_, impl GatewayView>, parents: &[Parent<'_>]) -> Self {
        let mut all = BTreeMap::new();
        for parent in parents.iter().filter(|parent| parent.attached().next().is_some()) {
            let certificate = |work: &mut Work<'_, _>| GatewayView::backend_certificate(work.view, &parent.gateway);
            all.entry(parent.gateway.clone()).or_insert_with(|| certificate(work));
        }
        if all.values().flatten().any(|certificate| certificate.is_forbidden()) {
            work.pending_parts.clear();
        }
        Self(all)
    }

    /// The certificate of a parent's Gateway, if it has one.
    pub fn at(&self, parent: &Parent<'_>) -> Option<&BackendCertificate> {
        self.0.get(&parent.gateway)?.as_deref()
    }
}

/// A cluster as proxies of a Gateway with this certificate use it; nothing if they do not.
pub(crate) fn cluster(
    work: &mut Work<'_, impl GatewayView>,
    certificate: &BackendCertificate,
    cluster: &ClusterId,
) -> Option<ClusterId> {
    if !resolve::speaks_tls(work.view, cluster) {
        return Some(cluster.clone());
    }
    match certificate {
        BackendCertificate::Secret(secret) => Some(resolve::with_certificate(cluster.clone(), secret)),
        BackendCertificate::Pending | BackendCertificate::Unusable(_) => None,
    }
}

/// Tells that TLS backends of a rule are not used at a parent, or notes that they will be once the certificate is known. What is
/// wrong with it is told on the Gateway, whose owner chose it.
pub(crate) fn unused(
    work: &mut Work<'_, impl GatewayView>,
    certificate: &BackendCertificate,
    parent: &Parent<'_>,
    field: &FieldPath,
) {
    match certificate {
        BackendCertificate::Pending if !work.forbidden_parts.contains(field) => {
            let listeners = parent.attached().map(|(listener, _)| Some(listener.id.clone()));
            let parts = listeners.map(|listener| PendingPart { listener, field: field.clone() });
            work.pending_parts.extend(parts);
        }
        BackendCertificate::Unusable(_) => {
            let why = format!("TLS backends are not used: the client certificate of {} cannot be used", parent.gateway);
            work.report(&Rejection::new(Code::GatewayClientCertificate, field.field("backendRefs"), why));
        }
        BackendCertificate::Pending | BackendCertificate::Secret(_) => {}
    }
}
