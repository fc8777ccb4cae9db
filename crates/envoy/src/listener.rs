//! A listener: its address, its filter chains, and what every connection goes through.
//!
//! A route's edit never comes here: routes, certificates and endpoints are asked for by name. Only a listener's own
//! settings and the set of TLS chains stand in it, and a TLS host that joins a chain changes nothing but the map from
//! server names to chains, which Envoy updates in place. Chains are encoded one by one, when they change.

pub mod access_log;
pub mod admin;
mod composite;
pub mod connection;
pub mod ext_authz;
pub mod filters;
pub mod jwt;
pub mod local_replies;
pub mod quic;
pub mod rate_limit;
pub mod script;
pub mod slots;
pub mod sni;
pub mod source_ip;
pub mod tcp;
pub mod tls;
pub mod tracing;
pub mod udp;

use crate::{endpoints::socket, name, packing::Packing, splice};
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
use model::{ChainId, Port, PortProtocol, listener::ConnectionSettings};
use prost::Message;

/// The number of `Listener.filter_chains`.
const FILTER_CHAINS: u32 = 3;
/// The number of `Listener.default_filter_chain`.
const DEFAULT_FILTER_CHAIN: u32 = 25;

/// A plaintext HTTP listener, whose hosts travel so.
pub fn plain(port: &Port, packing: Packing) -> Listener {
    let chain = FilterChain { filters: vec![http(port, None, packing)], ..Default::default() };
    Listener { filter_chains: vec![chain], ..head(port) }
}

/// A TLS listener, encoded: its [chains](chain), that of the fallback certificate, and [what leads to each](sni).
pub fn encrypted<'a>(
    port: &Port,
    chains: impl Iterator<Item = &'a Bytes>,
    fallback: Option<&Bytes>,
    names: Matcher,
) -> Bytes {
    let access_log = access_log::handshakes::access_log(&port.http.access_log);
    let mut head = Listener { filter_chain_matcher: Some(names), access_log, ..head(port) };
    let inspector = TlsInspector {
        enable_ja3_fingerprinting: port.connections.ja3.then(|| true.into()),
        enable_ja4_fingerprinting: port.connections.ja4.then(|| true.into()),
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

/// A chain of a TLS or HTTP/3 listener whose requests are looked at, encoded; the hosts of the port travel so.
pub fn chain(port: &Port, id: &ChainId, packing: Packing) -> Bytes {
    let transport_socket = match port.protocol {
        PortProtocol::Quic => quic::transport_socket(&id.termination, port),
        PortProtocol::Http | PortProtocol::Tls | PortProtocol::Tcp | PortProtocol::Udp => {
            tls::transport_socket(&id.termination, port)
        }
    };
    let chain = FilterChain {
        name: name::chain(id),
        filters: vec![http(port, Some(id), packing)],
        transport_socket: Some(transport_socket),
        transport_socket_connect_timeout: id.termination.is_on_demand().then(|| tls::HANDSHAKE_TIMEOUT.into()),
        ..Default::default()
    };
    chain.encode_to_vec().into()
}

/// The chain of a TLS listener for plaintext connections, encoded. They have a port of their own: the hosts of that travel so.
pub fn plaintext_chain(port: &Port, packing: Packing) -> Bytes {
    let name = name::PLAINTEXT_CHAIN.to_owned();
    let chain = FilterChain { name, filters: vec![http(port, None, packing)], ..Default::default() };
    chain.encode_to_vec().into()
}

/// All of a listener but its chains.
fn head(port: &Port) -> Listener {
    let mut listener_filters = Vec::new();
    if port.http.proxy_protocol {
        listener_filters.push(listener_filter("envoy.filters.listener.proxy_protocol", any(&ProxyProtocol::default())));
    }
    Listener {
        name: name::port(&port.id),
        metadata: Some(access_log::listener(&port.id)),
        address: Some(socket(&port.address.to_string(), port.port)),
        per_connection_buffer_limit_bytes: Some(port.connections.buffer.into()),
        socket_options: keepalive().into_iter().chain(marks(port)).collect(),
        connection_balance_config: port.connections.even_balance.then(evenly),
        max_connections_to_accept_per_socket_event: port.connections.accepted_at_once.map(Into::into),
        listener_filters,
        ..Default::default()
    }
}

fn http(port: &Port, chain: Option<&ChainId>, packing: Packing) -> Filter {
    Filter {
        name: "envoy.filters.network.http_connection_manager".to_owned(),
        config_type: Some(ConfigType::TypedConfig(any(&connection::connection_manager(port, chain, packing)))),
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
fn marks(port: &Port) -> impl Iterator<Item = SocketOption> {
    const IP: i64 = 0;
    const IPV6: i64 = 41;
    let ConnectionSettings { type_of_service, traffic_class, .. } = port.connections;
    let traffic_class = if port.address.is_ipv6() { traffic_class } else { 0 };
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
