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
    listener::HttpSettings,
    tls::{Termination, TlsVersion},
};

/// What TLS 1.2 may use, as Contour has it: forward secrecy and authenticated encryption only.
const CIPHERS: [&str; 4] = [
    "[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305]",
    "[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
];

/// The transport socket of a chain whose requests are looked at.
pub fn transport_socket(termination: &Termination, http: &HttpSettings) -> TransportSocket {
    terminated(termination, if http.http2 { &["h2", "http/1.1"] } else { &["http/1.1"] })
}

/// The transport socket of a chain that agrees on these protocols.
pub(crate) fn terminated(termination: &Termination, alpn: &[&str]) -> TransportSocket {
    let context = DownstreamTlsContext {
        common_tls_context: Some(CommonTlsContext {
            tls_params: Some(TlsParameters {
                tls_minimum_protocol_version: version(termination.lowest).into(),
                tls_maximum_protocol_version: version(termination.highest).into(),
                cipher_suites: CIPHERS.map(str::to_owned).to_vec(),
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

fn version(version: TlsVersion) -> TlsProtocol {
    match version {
        TlsVersion::V1_2 => TlsProtocol::TlSv12,
        TlsVersion::V1_3 => TlsProtocol::TlSv13,
    }
}
