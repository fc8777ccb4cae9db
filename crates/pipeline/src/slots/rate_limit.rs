//! What fills the slot for global rate limits: the rate limit service of the fleet.

use crate::{
    emissary::rate_limits,
    extensions::{self, ExtensionName},
    resources::Resource,
    services,
    settings::Fleets,
};
use engine::Reads;
use envoy::{listener::rate_limit, name};
use kinds::kind;
use model::{ObjectRef, PortId, cluster::Extension};
use xds::{Kind, Ref};

/// The filter of global rate limits, in a fleet that has a service: that of the operator, or that which objects name. One that cannot be
/// used is asked all the same: requests are denied, or let through where that is said.
pub fn filled(port: &PortId, reads: &mut Reads<'_>) -> Option<Resource> {
    let fleet = reads.get::<Fleets>(port.fleet())?.clone();
    let (extension, service) = match &fleet.rate_limit_service {
        Some((named, service)) => {
            let ExtensionName { namespace, name } = named.clone();
            let absent = || Extension::absent(ObjectRef::new(kind::CONTOUR_EXTENSION_SERVICE, namespace, name));
            (Some(extensions::find(named, reads).unwrap_or_else(|_| absent())), service.clone())
        }
        None => rate_limits::of_fleet(port.fleet(), reads)?,
    };
    let cluster = extension.as_ref().map(|extension| &extension.cluster);
    let cluster = cluster.filter(|cluster| services::cluster(cluster, reads).is_some());
    let refs = cluster.map(|cluster| Ref::To(Kind::Cluster, name::cluster(cluster).into()));
    let message = rate_limit::filled(port, &service, extension.as_ref());
    Some(Resource { refs: refs.into_iter().collect(), ..Resource::new(message.name.clone(), &message) })
}
