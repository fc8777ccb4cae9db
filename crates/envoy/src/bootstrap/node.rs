//! Who an Envoy is: its name, its cluster and its fleet.

use envoy_api::envoy::config::core::v3 as core;
use envoy_api::google::protobuf::Struct;
use model::FleetId;

/// The key in the node's metadata under which an Envoy says its fleet, as `<namespace>/<name>`. An Envoy without it
/// belongs to the fleet that its client certificate names, or to the shared one.
pub const FLEET_KEY: &str = "sesame.fleet";

/// Who an Envoy is. What is left out may be given to Envoy itself by `--service-node` and `--service-cluster`, which also
/// win over what stands here.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Its own name; in Kubernetes the pod's.
    pub id: Option<String>,
    /// The name of the group it belongs to, for statistics and logs.
    pub cluster: Option<String>,
    /// The fleet whose configuration it asks for.
    pub fleet: Option<FleetId>,
}

pub(super) fn message(node: &Node) -> Option<core::Node> {
    if node.id.is_none() && node.cluster.is_none() && node.fleet.is_none() {
        return None;
    }
    let fleet = node.fleet.as_ref().map(FleetId::to_string);
    Some(core::Node {
        id: node.id.clone().unwrap_or_default(),
        cluster: node.cluster.clone().unwrap_or_default(),
        metadata: fleet.map(|fleet| Struct { fields: [(FLEET_KEY.to_owned(), fleet.as_str().into())].into() }),
        ..Default::default()
    })
}
