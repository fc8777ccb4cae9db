//! Services, and of those that routes use, their clusters and endpoints. All of it is in the lane.

use crate::{
    objects::{EndpointSlices, Services, SlicesByService},
    settings::ForResolve,
    translations::{NamedClustersInUse, SharedClustersInUse},
};
use engine::{Derived, Index, Reads, Table};
use kinds::kind;
use model::{Cluster, ClusterId, Endpoints, ObjectRef};
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

/// The clusters that routes use.
pub struct Clusters;

impl Table for Clusters {
    type Key = ClusterId;
    type Value = Cluster;
    const NAME: &'static str = "clusters";
}

impl Derived for Clusters {
    fn compute(&self, id: &ClusterId, reads: &mut Reads<'_>) -> Option<Cluster> {
        Some(reads.get::<KnownServices>(&service(id))?.cluster(id.backend.port, id.backend.transport)?.varied(id))
    }
}

/// Clusters by the CA that they trust.
pub struct ClustersByCa;

impl Index for ClustersByCa {
    type Of = Clusters;
    type Key = ObjectRef;
    const NAME: &'static str = "by CA";

    fn keys(_: &ClusterId, cluster: &Cluster) -> impl IntoIterator<Item = ObjectRef> {
        cluster.validation.as_ref().and_then(|validation| validation.ca.bundle().cloned())
    }
}

/// Their endpoints.
pub struct EndpointSets;

impl Table for EndpointSets {
    type Key = ClusterId;
    type Value = Endpoints;
    const NAME: &'static str = "endpoint sets";
}

impl Derived for EndpointSets {
    fn compute(&self, id: &ClusterId, reads: &mut Reads<'_>) -> Option<Endpoints> {
        let name = service(id);
        let service = reads.get::<KnownServices>(&name)?;
        let slices: Vec<_> = reads.probe::<SlicesByService>(&name).collect();
        let slices: Vec<_> = slices.into_iter().filter_map(|key| reads.get::<EndpointSlices>(key)).collect();
        let health = id.overrides.as_ref().and_then(|overrides| overrides.health_port);
        let model::EndpointsId { port, transport, .. } = id.backend;
        Some(resolve::endpoints::endpoints(service, port, transport, health, slices.into_iter().map(|slice| &**slice)))
    }
}

/// Clusters for which there is no endpoint. Whether there is one is all that its readers depend on: endpoints that come
/// and go wake nobody as long as one is left.
pub struct WithoutEndpoints;

impl Index for WithoutEndpoints {
    type Of = EndpointSets;
    type Key = ClusterId;
    const NAME: &'static str = "without endpoints";

    fn keys(id: &ClusterId, endpoints: &Endpoints) -> impl IntoIterator<Item = ClusterId> {
        endpoints.list.is_empty().then(|| id.clone())
    }
}

/// The Service that a cluster is made from.
pub fn service(id: &ClusterId) -> ObjectRef {
    ObjectRef::new(kind::SERVICE, id.backend.namespace.clone(), id.backend.service.clone())
}

/// Declares what is known about Services.
pub fn declare_known(pipeline: &mut engine::Pipeline) {
    pipeline.derived(KnownServices).each::<Services>().lane();
}

/// Declares the clusters and endpoints of the Services that translations use.
pub fn declare_used(pipeline: &mut engine::Pipeline) {
    pipeline.derived(Clusters).per::<SharedClustersInUse>().per::<NamedClustersInUse>().lane();
    pipeline.derived(EndpointSets).per::<SharedClustersInUse>().per::<NamedClustersInUse>().lane();
    pipeline.index::<WithoutEndpoints>();
}
