//! Services and extensions, and the clusters and endpoints that are made of them. All of it is in the lane.

use crate::{
    extensions::KnownExtensions,
    objects::{EndpointSlices, Services, SlicesByService},
    settings::ForResolve,
};
use engine::{Derived, Reads, Table};
use kinds::kind;
use model::{
    Cluster, ClusterId, Endpoints, EndpointsId, ObjectRef,
    cluster::{Backend, ClusterOverrides, Discovery, DnsTarget},
};
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

/// The cluster that is made of a Service or an extension, if it is there and has the port.
pub fn cluster(id: &ClusterId, reads: &mut Reads<'_>) -> Option<Cluster> {
    match &id.backend {
        Backend::Service(backend) => {
            let service = reads.get::<KnownServices>(&service(backend))?;
            Some(service.cluster(backend.port, backend.transport)?.varied(id))
        }
        Backend::Services(_) => Some(Cluster::new(id.clone(), Discovery::WeightedEndpoints).varied(id)),
        Backend::Extension(object) => Some(reads.get::<KnownExtensions>(object)?.found.as_ref().ok()?.cluster()),
        Backend::Outside(outside) => {
            let target = DnsTarget { host: outside.host().clone(), port: outside.port() };
            Some(Cluster::new(id.clone(), Discovery::Dns(vec![target])).varied(id))
        }
    }
}

/// Whether a cluster may trust a CA bundle or present a certificate. Of most the identity says that they do neither.
pub fn may_have_secrets(id: &ClusterId) -> bool {
    let has_secrets = |it: &ClusterOverrides| it.validation.is_some() || it.client_certificate.is_some();
    match &id.backend {
        Backend::Service(_) | Backend::Services(_) | Backend::Outside(_) => {
            id.overrides.as_deref().is_some_and(has_secrets)
        }
        Backend::Extension(_) => true,
    }
}

/// The endpoints of a cluster, if what is behind it is there: of each Service port, with its share.
pub fn endpoints(id: &ClusterId, reads: &mut Reads<'_>) -> Option<Vec<(EndpointsId, Endpoints, u32)>> {
    match &id.backend {
        Backend::Service(backend) => {
            let health = id.overrides.as_ref().and_then(|overrides| overrides.health_port);
            Some(vec![(backend.clone(), endpoints_of(backend, health, reads)?, 1)])
        }
        Backend::Services(several) => {
            let of_each = several.iter().filter_map(|id| Some((id.clone(), endpoints_of(id, None, reads)?, 1)));
            Some(of_each.collect())
        }
        Backend::Extension(object) => {
            let services = reads.get::<KnownExtensions>(object)?.found.as_ref().ok()?.services.iter();
            let of_each =
                services.filter_map(|(id, weight)| Some((id.clone(), endpoints_of(id, None, reads)?, *weight)));
            Some(of_each.collect())
        }
        Backend::Outside(_) => None,
    }
}

fn endpoints_of(id: &EndpointsId, health: Option<u16>, reads: &mut Reads<'_>) -> Option<Endpoints> {
    let name = service(id);
    let service = reads.get::<KnownServices>(&name)?;
    let slices: Vec<_> = reads.probe::<SlicesByService>(&name).collect();
    let slices: Vec<_> = slices.into_iter().filter_map(|key| reads.get::<EndpointSlices>(key)).collect();
    let slices = slices.into_iter().map(|slice| &**slice);
    Some(resolve::endpoints::endpoints(service, id.port, id.transport, health, slices))
}

/// How many endpoints the slices of a cluster name, those included that are not served: what it costs to read them.
pub fn endpoints_named(id: &ClusterId, reads: &mut Reads<'_>) -> usize {
    let services: Vec<ObjectRef> = match &id.backend {
        Backend::Service(backend) => vec![service(backend)],
        Backend::Services(several) => several.iter().map(service).collect(),
        Backend::Extension(object) => {
            let found = reads.get::<KnownExtensions>(object).and_then(|known| known.found.as_ref().ok());
            found.map(|it| it.services.iter().map(|(id, _)| service(id)).collect()).unwrap_or_default()
        }
        Backend::Outside(_) => Vec::new(),
    };
    let mut named = 0;
    for service in &services {
        let slices: Vec<_> = reads.probe::<SlicesByService>(service).collect();
        let slices = slices.into_iter().filter_map(|key| reads.get::<EndpointSlices>(key));
        named += slices.map(|slice| slice.endpoints.len()).sum::<usize>();
    }
    named
}

fn service(id: &EndpointsId) -> ObjectRef {
    ObjectRef::new(kind::SERVICE, id.namespace.clone(), id.service.clone())
}

/// The object that a cluster is made from, if it is made from one.
pub fn origin(id: &ClusterId) -> Option<ObjectRef> {
    match &id.backend {
        Backend::Service(backend) => Some(service(backend)),
        Backend::Extension(object) => Some(object.clone()),
        Backend::Services(several) => several.first().map(service),
        Backend::Outside(_) => None,
    }
}

/// Declares what is known about Services.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.derived(KnownServices).each::<Services>().lane().fans_out();
}
