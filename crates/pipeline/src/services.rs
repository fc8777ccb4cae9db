//! Services, and the clusters and endpoints that are made of them. All of it is in the lane.

use crate::{
    objects::{EndpointSlices, Services, SlicesByService},
    settings::ForResolve,
};
use engine::{Derived, Reads, Table};
use kinds::kind;
use model::{CertificateRef, Cluster, ClusterId, Endpoints, ObjectRef, cluster::CaBundle};
use resolve::Service;

/// What is known about each Service.
pub struct KnownServices;

impl Table for KnownServices {
    type Key = ObjectRef;
    type Value = Service;
    const NAME: &'static str = "known services";
}

impl Derived for KnownServices {
    fn compute(&self, key: &ObjectRef, reads: &mut Reads<'_>) -> Option<Service> {
        Some(Service::read(reads.get::<Services>(key)?, reads.get::<ForResolve>(&())?))
    }
}

/// The cluster that is made of a Service, if it is there and has the port.
pub fn cluster(id: &ClusterId, reads: &mut Reads<'_>) -> Option<Cluster> {
    Some(reads.get::<KnownServices>(&service(id))?.cluster(id.backend.port, id.backend.transport)?.varied(id))
}

/// The CA bundle that a cluster trusts: that is for a route to say.
pub fn ca(id: &ClusterId) -> Option<&CaBundle> {
    id.overrides.as_ref()?.validation.as_ref()?.ca.bundle()
}

/// The certificate that a cluster presents: that is for a route to say.
pub fn client_certificate(id: &ClusterId) -> Option<CertificateRef> {
    Some(CertificateRef::Secret(id.overrides.as_ref()?.client_certificate.clone()?))
}

/// The endpoints of a cluster, if its Service is there.
pub fn endpoints(id: &ClusterId, reads: &mut Reads<'_>) -> Option<Endpoints> {
    let name = service(id);
    let service = reads.get::<KnownServices>(&name)?;
    let slices: Vec<_> = reads.probe::<SlicesByService>(&name).collect();
    let slices: Vec<_> = slices.into_iter().filter_map(|key| reads.get::<EndpointSlices>(key)).collect();
    let health = id.overrides.as_ref().and_then(|overrides| overrides.health_port);
    let model::EndpointsId { port, transport, .. } = id.backend;
    Some(resolve::endpoints::endpoints(service, port, transport, health, slices.into_iter().map(|slice| &**slice)))
}

/// The Service that a cluster is made from.
pub fn service(id: &ClusterId) -> ObjectRef {
    ObjectRef::new(kind::SERVICE, id.backend.namespace.clone(), id.backend.service.clone())
}

/// Declares what is known about Services.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.derived(KnownServices).each::<Services>().lane().fans_out();
}
