//! What a backend speaks: HTTP version and encryption.

use crate::route::action::timeout;
use envoy_api::{
    any,
    envoy::{
        config::core::v3::{
            Http1ProtocolOptions, Http2ProtocolOptions, HttpProtocolOptions as Connections, TransportSocket,
            transport_socket::ConfigType,
        },
        extensions::{
            transport_sockets::tls::v3::{
                CommonTlsContext, TlsParameters, UpstreamTlsContext, tls_parameters::TlsProtocol,
            },
            upstreams::http::v3::{
                HttpProtocolOptions,
                http_protocol_options::{
                    ExplicitHttpConfig, UpstreamProtocolOptions, explicit_http_config::ProtocolConfig,
                },
            },
        },
    },
    google::protobuf::Any,
};
use model::Timeout;
use std::collections::BTreeMap;

const OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/// The HTTP options; HTTP/1.1 with nothing said about its connections needs none.
pub fn options(cluster: &model::Cluster) -> BTreeMap<String, Any> {
    if !cluster.protocol.is_h2() && cluster.idle == Timeout::Default {
        return BTreeMap::new();
    }
    let protocol_config = if cluster.protocol.is_h2() {
        ProtocolConfig::Http2ProtocolOptions(Http2ProtocolOptions::default())
    } else {
        ProtocolConfig::HttpProtocolOptions(Http1ProtocolOptions::default())
    };
    let options = HttpProtocolOptions {
        common_http_protocol_options: timeout(cluster.idle)
            .map(|idle| Connections { idle_timeout: Some(idle), ..Default::default() }),
        upstream_protocol_options: Some(UpstreamProtocolOptions::ExplicitHttpConfig(ExplicitHttpConfig {
            protocol_config: Some(protocol_config),
        })),
        ..Default::default()
    };
    BTreeMap::from([(OPTIONS.to_owned(), any(&options))])
}

/// TLS to the backend. Nothing was said about whom to trust, so nobody is verified: the connection is private, not proven.
pub fn transport_socket(cluster: &model::Cluster) -> Option<TransportSocket> {
    if !cluster.protocol.is_tls() {
        return None;
    }
    let alpn = if cluster.protocol.is_h2() { vec!["h2".to_owned()] } else { Vec::new() };
    let context = UpstreamTlsContext {
        common_tls_context: Some(CommonTlsContext {
            // Left alone, Envoy speaks no more than 1.2 to its upstreams.
            tls_params: Some(TlsParameters {
                tls_minimum_protocol_version: TlsProtocol::TlSv12.into(),
                tls_maximum_protocol_version: TlsProtocol::TlSv13.into(),
                ..Default::default()
            }),
            alpn_protocols: alpn,
            ..Default::default()
        }),
        sni: cluster.server_name.as_deref().unwrap_or_default().to_owned(),
        ..Default::default()
    };
    Some(TransportSocket {
        name: "envoy.transport_sockets.tls".to_owned(),
        config_type: Some(ConfigType::TypedConfig(any(&context))),
    })
}
