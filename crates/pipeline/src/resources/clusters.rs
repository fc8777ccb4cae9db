//! Clusters, their endpoints, and the CAs that they trust.
//!
//! In: the clusters that are in use, each named by its Service port or extension and its settings. Out: a resource for each, which refers
//! to its endpoints and certificates. Endpoints have resources of their own: those that come and go change no cluster.

use super::Resource;
use crate::{
    certificates::{CaBundles, Crls},
    large, services,
    settings::ForClusters,
};
use engine::{Derived, Index, Reads, Table};
use envoy::name;
use model::{
    CertificateRef, ClusterId,
    cluster::{CaBundle, Discovery},
};
use std::sync::Arc;
use xds::{Kind, Ref};

/// Clusters.
pub struct ClusterResources;

impl Table for ClusterResources {
    type Key = ClusterId;
    type Value = Resource;
    const NAME: &'static str = "cluster resources";
}

impl Derived for ClusterResources {
    fn compute(&self, id: &ClusterId, reads: &mut Reads<'_>) -> Option<Resource> {
        let cluster = services::cluster(id, reads)?;
        let settings = reads.get::<ForClusters>(&())?;
        let mut resource = Resource::new(name::cluster(id), &envoy::cluster::cluster(&cluster, settings));
        match cluster.discovery.is_by_eds() {
            true => resource.refs = vec![Ref::To(Kind::Endpoints, resource.name.clone())],
            false => resource.warms = true,
        }
        let presented =
            cluster.overrides.client_certificate.filter(|_| cluster.protocol.is_tls()).map(CertificateRef::Secret);
        resource.refs.extend(presented.map(|id| Ref::To(Kind::Secret, name::secret(&id).into())));
        resource.ca =
            cluster.overrides.validation.as_ref().and_then(|validation| validation.ca.bundle()).cloned().map(Arc::new);
        resource.origin = services::origin(id).map(Arc::new);
        Some(resource.unless_withheld(Kind::Cluster, reads))
    }
}

/// Clusters by the CA that they trust.
pub struct ClustersByCa;

impl Index for ClustersByCa {
    type Of = ClusterResources;
    type Key = CaBundle;
    const NAME: &'static str = "by CA";

    fn keys(_: &ClusterId, resource: &Resource) -> impl IntoIterator<Item = CaBundle> {
        resource.ca.as_deref().cloned()
    }
}

/// CA bundles that clusters trust.
pub struct CaResources;

impl Table for CaResources {
    type Key = CaBundle;
    type Value = Resource;
    const NAME: &'static str = "CA resources";
}

impl Derived for CaResources {
    fn compute(&self, bundle: &CaBundle, reads: &mut Reads<'_>) -> Option<Resource> {
        let mut pem = String::new();
        for object in bundle.objects() {
            // One that is gone meanwhile is not trusted any more; the others are.
            let Some(Ok(certificates)) = reads.get::<CaBundles>(object).map(|it| it.as_ref().as_ref()) else {
                continue;
            };
            if !pem.is_empty() && !pem.ends_with('\n') {
                pem.push('\n');
            }
            pem.push_str(certificates);
        }
        if pem.is_empty() {
            return None;
        }
        // Without its CRLs no certificate is trusted: whoever needs the bundle is told where it is referred to.
        let crls = match bundle.crl() {
            Some(crl) => Some(reads.get::<Crls>(crl)?.as_ref().as_ref().ok()?.pem.clone()),
            None => None,
        };
        let mut resource = Resource::new(name::ca(bundle), &envoy::secret::authority(bundle, &pem, crls.as_deref()));
        resource.origin = Some(Arc::new(bundle.first().clone()));
        Some(resource.unless_withheld(Kind::Secret, reads))
    }
}

/// Endpoint sets.
pub struct EndpointResources;

impl Table for EndpointResources {
    type Key = ClusterId;
    type Value = Resource;
    const NAME: &'static str = "endpoint resources";
}

impl Derived for EndpointResources {
    fn compute(&self, id: &ClusterId, reads: &mut Reads<'_>) -> Option<Resource> {
        let discovery = services::cluster(id, reads)?.discovery;
        let endpoints = services::endpoints(id, reads)?;
        let assignment = match (discovery, &endpoints[..]) {
            (Discovery::Endpoints, [(_, endpoints, _)]) => envoy::endpoints::load_assignment(id, endpoints),
            (Discovery::WeightedEndpoints, all) => {
                let all = all.iter().map(|(id, endpoints, weight)| (id.to_string(), endpoints, *weight));
                envoy::endpoints::weighted(name::cluster(id), all)
            }
            (Discovery::Endpoints | Discovery::Dns(_), _) => return None,
        };
        let mut resource = Resource::new(name::cluster(id), &assignment);
        resource.origin = services::origin(id).map(Arc::new);
        resource.lacks_endpoints = endpoints.iter().all(|(_, endpoints, _)| endpoints.list.is_empty());
        Some(resource.unless_withheld(Kind::Endpoints, reads))
    }

    fn is_large(&self, id: &ClusterId, reads: &mut Reads<'_>) -> bool {
        large::has_many_endpoints([id], reads)
    }
}

/// Clusters for which there is no endpoint. Whether there is one is all that its readers depend on: endpoints that come and go
/// wake nobody as long as one is left.
pub struct WithoutEndpoints;

impl Index for WithoutEndpoints {
    type Of = EndpointResources;
    type Key = ClusterId;
    const NAME: &'static str = "without endpoints";

    fn keys(id: &ClusterId, resource: &Resource) -> impl IntoIterator<Item = ClusterId> {
        resource.lacks_endpoints.then(|| id.clone())
    }
}
