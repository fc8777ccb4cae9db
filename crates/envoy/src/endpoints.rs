//! An endpoint set as Envoy's load assignment: one locality for each zone.

use crate::name;
use envoy_api::envoy::config::{
    core::v3::{Address, Locality, SocketAddress, address, socket_address::PortSpecifier},
    endpoint::v3::{
        ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints, endpoint::HealthCheckConfig,
        lb_endpoint::HostIdentifier,
    },
};
use model::{ClusterId, Endpoints};

/// The endpoints of a cluster.
pub fn load_assignment(id: &ClusterId, endpoints: &Endpoints) -> ClusterLoadAssignment {
    let mut localities: Vec<LocalityLbEndpoints> = Vec::new();
    let mut by_zone: Vec<&model::Endpoint> = endpoints.list.iter().collect();
    by_zone.sort_by(|a, b| a.zone.cmp(&b.zone).then_with(|| a.cmp(b)));
    for zone in by_zone.chunk_by(|a, b| a.zone == b.zone) {
        localities.push(LocalityLbEndpoints {
            locality: zone.first().and_then(|e| locality(&e.zone)),
            lb_endpoints: zone.iter().map(|e| endpoint(e)).collect(),
            ..Default::default()
        });
    }
    ClusterLoadAssignment { cluster_name: name::cluster(id), endpoints: localities, ..Default::default() }
}

/// The endpoints of several backends, each with its name and share. A backend without endpoints has no share.
pub fn weighted<'a>(
    name: String,
    backends: impl Iterator<Item = (String, &'a Endpoints, u32)>,
) -> ClusterLoadAssignment {
    let used = backends.filter(|(_, endpoints, _)| !endpoints.list.is_empty());
    let localities = used.map(|(name, endpoints, weight)| LocalityLbEndpoints {
        locality: Some(Locality { sub_zone: name, ..Default::default() }),
        lb_endpoints: endpoints.list.iter().map(endpoint).collect(),
        load_balancing_weight: Some(weight.into()),
        ..Default::default()
    });
    ClusterLoadAssignment { cluster_name: name, endpoints: localities.collect(), ..Default::default() }
}

fn locality(zone: &str) -> Option<Locality> {
    (!zone.is_empty()).then(|| Locality { zone: zone.to_owned(), ..Default::default() })
}

fn endpoint(endpoint: &model::Endpoint) -> LbEndpoint {
    LbEndpoint {
        host_identifier: Some(HostIdentifier::Endpoint(Endpoint {
            address: Some(socket(&endpoint.address.to_string(), endpoint.port)),
            health_check_config: endpoint
                .health_port
                .map(|port| HealthCheckConfig { port_value: port.into(), ..Default::default() }),
            ..Default::default()
        })),
        load_balancing_weight: (endpoint.weight != 1).then(|| endpoint.weight.max(1).into()),
        ..Default::default()
    }
}

/// An address and a port; the address may be a name where Envoy asks DNS for it.
pub(crate) fn socket(host: &str, port: u16) -> Address {
    Address {
        address: Some(address::Address::SocketAddress(SocketAddress {
            address: host.to_owned(),
            port_specifier: Some(PortSpecifier::PortValue(port.into())),
            ..Default::default()
        })),
    }
}
