//! A listener: its address, its filter chains, and what every connection goes through.
//!
//! A route's edit never comes here: routes, certificates and endpoints are asked for by name. Only a listener's own
//! settings and the set of TLS chains stand in it, and a TLS host that joins a chain changes nothing but the map from
//! server names to chains, which Envoy updates in place.

pub mod access_log;
pub mod admin;
pub mod compression;
pub mod connection;
pub mod filters;
pub mod sni;
pub mod tcp;
pub mod tls;

use crate::{endpoints::socket, name, packing::Arrangement};
use envoy_api::{
    any,
    envoy::{
        config::{
            core::v3::{SocketOption, socket_option},
            listener::v3::{
                Filter, FilterChain, Listener, ListenerFilter,
                filter::ConfigType,
                listener::{ConnectionBalanceConfig, connection_balance_config},
                listener_filter,
            },
        },
        extensions::filters::listener::{proxy_protocol::v3::ProxyProtocol, tls_inspector::v3::TlsInspector},
    },
};
use model::{
    ListenerId, RouteTableId,
    listener::{ConnectionSettings, Security},
    tls::{Chain, TcpChain},
};

/// The filter chains of a TLS listener.
#[derive(Clone, Debug, Default)]
pub struct Chains {
    /// Those whose requests are looked at.
    pub http: Vec<Chain>,
    /// Those whose connections are passed on.
    pub tcp: Vec<TcpChain>,
    /// That for clients that name no host, or one that no other chain has.
    pub fallback: Option<Chain>,
}

/// The listener in the clear, or under TLS with these chains; how the hosts of each travel is told by its route table.
pub fn listener(
    listener: &model::Listener,
    chains: &Chains,
    arrangement: impl Fn(&RouteTableId) -> Arrangement,
) -> Listener {
    let mut listener_filters = Vec::new();
    if listener.http.proxy_protocol {
        listener_filters.push(listener_filter("envoy.filters.listener.proxy_protocol", any(&ProxyProtocol::default())));
    }
    let built = Listener {
        name: listener.id.to_string(),
        address: Some(socket(&listener.address.to_string(), listener.port)),
        per_connection_buffer_limit_bytes: Some(listener.connections.buffer.into()),
        socket_options: keepalive().into_iter().chain(marks(listener)).collect(),
        connection_balance_config: listener.connections.even_balance.then(evenly),
        max_connections_to_accept_per_socket_event: listener.connections.accepted_at_once.map(Into::into),
        ..Default::default()
    };
    match listener.security {
        Security::Plain => Listener { listener_filters, filter_chains: vec![plain(listener, arrangement)], ..built },
        Security::Tls => {
            let inspector = TlsInspector {
                enable_ja3_fingerprinting: listener.connections.ja3.then(|| true.into()),
                enable_ja4_fingerprinting: listener.connections.ja4.then(|| true.into()),
                ..Default::default()
            };
            listener_filters.push(listener_filter("envoy.filters.listener.tls_inspector", any(&inspector)));
            let Chains { http, tcp, fallback } = chains;
            let named = http.iter().map(|chain| encrypted(listener, &listener.id, chain, &arrangement));
            Listener {
                listener_filters,
                filter_chains: named.chain(tcp.iter().map(|chain| tcp::chain(chain, &listener.connections))).collect(),
                filter_chain_matcher: Some(sni::matcher(http, tcp)),
                default_filter_chain: fallback.as_ref().map(|chain| FilterChain {
                    name: name::FALLBACK_CHAIN.to_owned(),
                    ..encrypted(listener, &ListenerId::fallback(), chain, &arrangement)
                }),
                ..built
            }
        }
    }
}

fn plain(listener: &model::Listener, arrangement: impl Fn(&RouteTableId) -> Arrangement) -> FilterChain {
    let table = RouteTableId { listener: listener.id.clone(), termination: None };
    FilterChain { filters: vec![http(listener, &table, arrangement(&table))], ..Default::default() }
}

/// The chain, whose hosts are looked up in a part of the listener: that of names, or that of the fallback certificate.
fn encrypted(
    listener: &model::Listener,
    part: &ListenerId,
    chain: &Chain,
    arrangement: impl Fn(&RouteTableId) -> Arrangement,
) -> FilterChain {
    let table = RouteTableId { listener: part.clone(), termination: Some(chain.termination.clone()) };
    FilterChain {
        name: chain.termination.to_string(),
        filters: vec![http(listener, &table, arrangement(&table))],
        transport_socket: Some(tls::transport_socket(&chain.termination, listener)),
        ..Default::default()
    }
}

fn http(listener: &model::Listener, table: &RouteTableId, arrangement: Arrangement) -> Filter {
    Filter {
        name: "envoy.filters.network.http_connection_manager".to_owned(),
        config_type: Some(ConfigType::TypedConfig(any(&connection::connection_manager(listener, table, arrangement)))),
    }
}

fn listener_filter(name: &str, config: envoy_api::Any) -> ListenerFilter {
    ListenerFilter {
        name: name.to_owned(),
        config_type: Some(listener_filter::ConfigType::TypedConfig(config)),
        ..Default::default()
    }
}

/// Every thread gets as many connections as the others.
fn evenly() -> ConnectionBalanceConfig {
    let exact = connection_balance_config::ExactBalance {};
    ConnectionBalanceConfig { balance_type: Some(connection_balance_config::BalanceType::ExactBalance(exact)) }
}

/// Idle connections are probed after 45 s, every 5 s, nine times: load balancers forget them sooner than Linux asks.
fn keepalive() -> Vec<SocketOption> {
    const SOCKET: i64 = 1;
    const TCP: i64 = 6;
    [
        ("keep-alive on", SOCKET, 9, 1),
        ("seconds idle before the first probe", TCP, 4, 45),
        ("seconds between probes", TCP, 5, 5),
        ("probes before giving up", TCP, 6, 9),
    ]
    .map(socket_option)
    .to_vec()
}

/// How packets are marked for the network. A socket of IPv4 knows no option of IPv6, and Envoy refuses a listener that asks
/// for one.
fn marks(listener: &model::Listener) -> impl Iterator<Item = SocketOption> {
    const IP: i64 = 0;
    const IPV6: i64 = 41;
    let ConnectionSettings { type_of_service, traffic_class, .. } = listener.connections;
    let traffic_class = if listener.address.is_ipv6() { traffic_class } else { 0 };
    let marks =
        [("type of service", IP, 1, i64::from(type_of_service)), ("traffic class", IPV6, 67, i64::from(traffic_class))];
    marks.into_iter().filter(|(_, _, _, value)| *value != 0).map(socket_option)
}

fn socket_option((description, level, name, value): (&str, i64, i64, i64)) -> SocketOption {
    SocketOption {
        description: description.to_owned(),
        level,
        name,
        value: Some(socket_option::Value::IntValue(value)),
        state: socket_option::SocketState::StateListening.into(),
        ..Default::default()
    }
}
