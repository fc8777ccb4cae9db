//! A listener: its address, its filter chains, and what every connection goes through.
//!
//! A route's edit never comes here: routes, certificates and endpoints are asked for by name. Only a listener's own
//! settings and the set of TLS chains stand in it, and a TLS host that joins a chain changes nothing but the map from
//! server names to chains, which Envoy updates in place. Chains are encoded one by one, when they change.

pub mod access_log;
pub mod admin;
pub mod connection;
pub mod filters;
pub mod slots;
pub mod sni;
pub mod source_ip;
pub mod tcp;
pub mod tls;

use crate::{endpoints::socket, name, packing::Arrangement, splice};
use bytes::{Bytes, BytesMut};
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
    xds::r#type::matcher::v3::Matcher,
};
use model::{ListenerId, RouteTableId, listener::ConnectionSettings};
use prost::Message;

/// The number of `Listener.filter_chains`.
const FILTER_CHAINS: u32 = 3;
/// The number of `Listener.default_filter_chain`.
const DEFAULT_FILTER_CHAIN: u32 = 25;

/// A plaintext listener, whose hosts travel so.
pub fn plain(listener: &model::Listener, arrangement: Arrangement) -> Listener {
    let table = RouteTableId { listener: listener.id.clone(), termination: None };
    let chain = FilterChain { filters: vec![http(listener, &table, arrangement)], ..Default::default() };
    Listener { filter_chains: vec![chain], ..head(listener) }
}

/// A listener under TLS, encoded: its [chains](chain), that for all other names, and [what leads to each](sni).
pub fn encrypted<'a>(
    listener: &model::Listener,
    chains: impl Iterator<Item = &'a Bytes>,
    fallback: Option<&Bytes>,
    names: Matcher,
) -> Bytes {
    let mut head = Listener { filter_chain_matcher: Some(names), ..head(listener) };
    let inspector = TlsInspector {
        enable_ja3_fingerprinting: listener.connections.ja3.then(|| true.into()),
        enable_ja4_fingerprinting: listener.connections.ja4.then(|| true.into()),
        ..Default::default()
    };
    head.listener_filters.push(listener_filter("envoy.filters.listener.tls_inspector", any(&inspector)));
    let mut bytes = BytesMut::from(&head.encode_to_vec()[..]);
    chains.for_each(|chain| splice::append(&mut bytes, FILTER_CHAINS, chain));
    if let Some(chain) = fallback {
        splice::append(&mut bytes, DEFAULT_FILTER_CHAIN, chain);
    }
    bytes.freeze()
}

/// The chain of a listener under TLS whose requests are looked up in this table, encoded; its hosts travel so.
pub fn chain(listener: &model::Listener, table: &RouteTableId, arrangement: Arrangement) -> Option<Bytes> {
    let termination = table.termination.as_deref()?;
    let chain = FilterChain {
        name: chain_name(table)?,
        filters: vec![http(listener, table, arrangement)],
        transport_socket: Some(tls::transport_socket(termination, listener)),
        transport_socket_connect_timeout: termination.is_on_demand().then(|| tls::HANDSHAKE_TIMEOUT.into()),
        ..Default::default()
    };
    Some(chain.encode_to_vec().into())
}

/// The name of that chain.
pub fn chain_name(table: &RouteTableId) -> Option<String> {
    let termination = table.termination.as_deref()?;
    let is_fallback = table.listener == ListenerId::fallback();
    Some(if is_fallback { name::FALLBACK_CHAIN.to_owned() } else { termination.to_string() })
}

/// All of a listener but its chains.
fn head(listener: &model::Listener) -> Listener {
    let mut listener_filters = Vec::new();
    if listener.http.proxy_protocol {
        listener_filters.push(listener_filter("envoy.filters.listener.proxy_protocol", any(&ProxyProtocol::default())));
    }
    Listener {
        name: listener.id.to_string(),
        address: Some(socket(&listener.address.to_string(), listener.port)),
        per_connection_buffer_limit_bytes: Some(listener.connections.buffer.into()),
        socket_options: keepalive().into_iter().chain(marks(listener)).collect(),
        connection_balance_config: listener.connections.even_balance.then(evenly),
        max_connections_to_accept_per_socket_event: listener.connections.accepted_at_once.map(Into::into),
        listener_filters,
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
