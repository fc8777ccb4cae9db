//! TLS towards clients: the certificate by SDS, versions, ciphers, protocols.

use crate::name;
use envoy_api::{
    any,
    envoy::{
        config::core::v3::{TransportSocket, transport_socket::ConfigType},
        extensions::transport_sockets::tls::v3::{
            CommonTlsContext, DownstreamTlsContext, SdsSecretConfig, TlsParameters, tls_parameters::TlsProtocol,
        },
    },
};
use model::{
    listener::{ConnectionSettings, HttpVersions},
    tls::{Termination, TlsVersion},
};
use std::sync::Arc;

/// The transport socket of a chain whose requests are looked at.
pub fn transport_socket(termination: &Termination, listener: &model::Listener) -> TransportSocket {
    let alpn: &[&str] = match listener.http.versions {
        HttpVersions::Both => &["h2", "http/1.1"],
        HttpVersions::Http1 => &["http/1.1"],
        HttpVersions::Http2 => &["h2"],
    };
    terminated(termination, &listener.connections, alpn)
}

/// The transport socket of a chain that agrees on these protocols.
pub(crate) fn terminated(termination: &Termination, settings: &ConnectionSettings, alpn: &[&str]) -> TransportSocket {
    let words = |words: &[Arc<str>]| words.iter().map(ToString::to_string).collect();
    let context = DownstreamTlsContext {
        common_tls_context: Some(CommonTlsContext {
            tls_params: Some(TlsParameters {
                tls_minimum_protocol_version: version(termination.lowest).into(),
                tls_maximum_protocol_version: version(termination.highest).into(),
                cipher_suites: words(&settings.ciphers),
                ecdh_curves: words(&settings.curves),
                ..Default::default()
            }),
            tls_certificate_sds_secret_configs: vec![SdsSecretConfig {
                name: name::secret(&termination.certificate),
                sds_config: Some(name::on_this_stream()),
            }],
            alpn_protocols: alpn.iter().map(|&protocol| protocol.to_owned()).collect(),
            ..Default::default()
        }),
        ..Default::default()
    };
    TransportSocket {
        name: "envoy.transport_sockets.tls".to_owned(),
        config_type: Some(ConfigType::TypedConfig(any(&context))),
    }
}

/// A version in the words of Envoy.
pub(crate) fn version(version: TlsVersion) -> TlsProtocol {
    match version {
        TlsVersion::V1_2 => TlsProtocol::TlSv12,
        TlsVersion::V1_3 => TlsProtocol::TlSv13,
    }
}
