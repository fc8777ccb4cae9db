//! UDP listeners: each client address has a session with one backend.
//!
//! Envoy loses every session when anything of the listener changes, and asks for no UDP filter by name. So nothing that changes
//! stands in it: the cluster's name follows from the listener, and the backends are that cluster's endpoints, a locality for each
//! backend with its share as weight ([`cluster`], [`load_assignment`]).

use crate::{cluster::weighted_localities, endpoints, name};
use envoy_api::{
    any,
    envoy::{
        config::{
            cluster::v3::{
                Cluster,
                cluster::{ClusterDiscoveryType, CommonLbConfig, DiscoveryType, EdsClusterConfig},
            },
            core::v3::{address, socket_address},
            endpoint::v3::ClusterLoadAssignment,
            listener::v3::{Listener, ListenerFilter, listener_filter::ConfigType},
        },
        extensions::filters::udp::udp_proxy::v3::{Route, UdpProxyConfig, udp_proxy_config::RouteSpecifier},
    },
    xds::{
        core::v3::TypedExtensionConfig,
        r#type::matcher::v3::{
            Matcher,
            matcher::{OnMatch, on_match},
        },
    },
};
use model::{Endpoint, Endpoints, ListenerId, Port};
use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

/// How long a session may be without a datagram; Envoy's own default, written down.
const IDLE: Duration = Duration::from_secs(60);

/// The listener. It is the same whatever its backends are.
pub fn listener(port: &Port, of: &ListenerId) -> Listener {
    let route = any(&Route { cluster: name::udp_cluster(of) });
    let action = TypedExtensionConfig { name: "route".to_owned(), typed_config: Some(route) };
    let to_cluster = OnMatch { on_match: Some(on_match::OnMatch::Action(action)), ..Default::default() };
    let proxy = UdpProxyConfig {
        stat_prefix: "ingress_udp".to_owned(),
        idle_timeout: Some(IDLE.into()),
        route_specifier: Some(RouteSpecifier::Matcher(Matcher {
            on_no_match: Some(Box::new(to_cluster)),
            ..Default::default()
        })),
        ..Default::default()
    };
    let mut address = endpoints::socket(&port.address.to_string(), port.port);
    if let Some(address::Address::SocketAddress(socket)) = &mut address.address {
        socket.protocol = socket_address::Protocol::Udp.into();
    }
    Listener {
        name: name::port(&port.id),
        address: Some(address),
        listener_filters: vec![ListenerFilter {
            name: "envoy.filters.udp_listener.udp_proxy".to_owned(),
            config_type: Some(ConfigType::TypedConfig(any(&proxy))),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// The cluster of a UDP listener.
pub fn cluster(of: &ListenerId) -> Cluster {
    Cluster {
        name: name::udp_cluster(of),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        eds_cluster_config: Some(EdsClusterConfig { eds_config: Some(name::on_this_stream()), ..Default::default() }),
        common_lb_config: Some(CommonLbConfig {
            locality_config_specifier: Some(weighted_localities()),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// An address at which nobody answers: the discard port of the proxy's own host. Envoy gives a locality without endpoints no
/// share, so what is to be dropped needs one.
const DISCARD: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::LOCALHOST), 9);

/// Its endpoints: those of each backend, with the backend's name and share, and the share that is dropped because its backends
/// cannot be used. A backend without endpoints has no share.
pub fn load_assignment<'a>(
    of: &ListenerId,
    backends: impl Iterator<Item = (String, &'a Endpoints, u32)>,
    unavailable: u32,
) -> ClusterLoadAssignment {
    let (address, port) = DISCARD;
    let discard = Endpoint { address, port, zone: "".into(), weight: 1, health_port: None };
    let discard = Endpoints { list: vec![discard] };
    let dropped = (unavailable > 0).then(|| (name::NO_CLUSTER.to_owned(), &discard, unavailable));
    let mut backends: Vec<_> = backends.collect();
    backends.extend(dropped);
    endpoints::weighted(name::udp_cluster(of), backends.into_iter())
}
