//! HTTP/3 listeners: QUIC over UDP, with a filter chain for each certificate, as over TCP.
//!
//! In: a port, its chains and [what leads to each](super::sni). Out: the listener. What differs from TLS over TCP on Envoy 1.40:
//!
//! - `%FILTER_CHAIN_NAME%` is empty, so a chain's connection manager has its name as a literal: see [`crate::packing::admission`].
//! - A certificate selector is not supported: no chain has certificates on demand.
//! - Of a TLS context, versions, ciphers and curves have no effect, and Envoys before 1.40 refuse a listener that asks for client
//!   certificates. Hosts that ask for any of it have no chain here: assembly sees to it.
//! - Requests of a resumed connection may come before its handshake is done, and may have been sent by somebody else (0-RTT). Over TCP there is
//!   no such thing: it is off.
//!
//! A chain that comes or goes is updated in place, and connections of the others stay open.

use super::{FILTER_CHAINS, access_log, marks, tls};
use crate::{endpoints::socket, name, splice};
use bytes::{Bytes, BytesMut};
use envoy_api::{
    any,
    envoy::{
        config::{
            core::v3::{
                Http3ProtocolOptions, QuicProtocolOptions, TransportSocket, UdpSocketConfig, address, socket_address,
                transport_socket::ConfigType,
            },
            listener::v3::{Listener, QuicProtocolOptions as QuicOptions, UdpListenerConfig},
        },
        extensions::transport_sockets::quic::v3::QuicDownstreamTransport,
    },
    xds::r#type::matcher::v3::Matcher,
};
use model::{Port, listener::HttpSettings, tls::Termination};
use prost::Message;

/// The only protocol that is offered.
const ALPN: &str = "h3";

/// The listener, encoded, with its chains and what leads to each.
pub fn listener<'a>(port: &Port, chains: impl Iterator<Item = &'a Bytes>, names: Matcher) -> Bytes {
    let mut address = socket(&port.address.to_string(), port.port);
    if let Some(address::Address::SocketAddress(socket)) = &mut address.address {
        socket.protocol = socket_address::Protocol::Udp.into();
    }
    let head = Listener {
        name: name::port(&port.id),
        metadata: Some(access_log::listener(&port.id)),
        address: Some(address),
        per_connection_buffer_limit_bytes: Some(port.connections.buffer.into()),
        socket_options: marks(port).collect(),
        filter_chain_matcher: Some(names),
        udp_listener_config: Some(UdpListenerConfig {
            quic_options: Some(QuicOptions {
                quic_protocol_options: Some(transport(&port.http)),
                ..Default::default()
            }),
            downstream_socket_config: Some(UdpSocketConfig { prefer_gro: Some(true.into()), ..Default::default() }),
            ..Default::default()
        }),
        ..Default::default()
    };
    let mut bytes = BytesMut::from(&head.encode_to_vec()[..]);
    chains.for_each(|chain| splice::append(&mut bytes, FILTER_CHAINS, chain));
    bytes.freeze()
}

/// The transport socket of a chain.
pub(super) fn transport_socket(termination: &Termination, port: &Port) -> TransportSocket {
    let transport = QuicDownstreamTransport {
        downstream_tls_context: Some(tls::context(termination, &port.connections, &[ALPN])),
        enable_early_data: Some(false.into()),
        ..Default::default()
    };
    TransportSocket {
        name: "envoy.transport_sockets.quic".to_owned(),
        config_type: Some(ConfigType::TypedConfig(any(&transport))),
    }
}

/// What a connection manager is told about HTTP/3.
pub(super) fn http3(http: &HttpSettings) -> Http3ProtocolOptions {
    Http3ProtocolOptions { quic_protocol_options: Some(transport(http)), ..Default::default() }
}

/// How much clients may send ahead, and how many requests they may have in flight: as over HTTP/2.
fn transport(http: &HttpSettings) -> QuicProtocolOptions {
    QuicProtocolOptions {
        max_concurrent_streams: Some(http.max_streams.into()),
        initial_stream_window_size: Some(super::connection::STREAM_WINDOW.into()),
        initial_connection_window_size: Some(super::connection::CONNECTION_WINDOW.into()),
        ..Default::default()
    }
}
