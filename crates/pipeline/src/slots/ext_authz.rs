//! What fills the slot for external authorization by the server of a fleet.

use crate::{emissary::authorization, resources::Resource};
use engine::Reads;
use envoy::{listener::ext_authz, name};
use model::PortId;
use xds::{Kind, Ref};

/// The slot of a port for the authorization server of its fleet, if that has one.
pub fn filled_by_fleet(id: &PortId, reads: &mut Reads<'_>) -> Option<Resource> {
    let service = authorization::of_fleet(id.fleet(), reads)?;
    let message = ext_authz::filled_by_fleet(id, &service);
    let cluster = service.server.extension.map(|extension| name::cluster(&extension.cluster));
    let refs = cluster.into_iter().map(|cluster| Ref::To(Kind::Cluster, cluster.into())).collect();
    Some(Resource { refs, ..Resource::new(message.name.clone(), &message) })
}
