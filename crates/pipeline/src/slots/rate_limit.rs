//! What fills the slot for global rate limits: the rate limit service of the fleet.

use crate::{
    extensions::{self, ExtensionName},
    resources::Resource,
    settings::Fleets,
};
use engine::Reads;
use envoy::{listener::rate_limit, name};
use kinds::kind;
use model::{ObjectRef, PortId, cluster::Extension};
use xds::{Kind, Ref};

/// The filter of global rate limits, in a fleet that has a service. One that cannot be used is asked all the same: requests
/// are denied, or let through if the operator says so.
pub fn filled(port: &PortId, reads: &mut Reads<'_>) -> Option<Resource> {
    let fleet = reads.get::<Fleets>(port.fleet())?.clone();
    let (named, service) = fleet.rate_limit_service.as_ref()?;
    let (extension, refs) = match extensions::find(named, reads) {
        Ok(found) => {
            let refs = vec![Ref::To(Kind::Cluster, name::cluster(&found.cluster).into())];
            (found, refs)
        }
        Err(_) => {
            let ExtensionName { namespace, name } = named.clone();
            let object = ObjectRef::new(kind::CONTOUR_EXTENSION_SERVICE, namespace, name);
            (Extension::absent(object), Vec::new())
        }
    };
    let message = rate_limit::filled(port, service, &extension);
    Some(Resource { refs, ..Resource::new(message.name.clone(), &message) })
}
