//! TLS towards clients: the certificate by SDS, versions, ciphers, protocols.
//!
//! A chain shows one certificate, or, on demand, each host its own: Envoy then holds the handshake and asks for a secret by
//! the server name that the client sent. Such a chain cannot resume sessions (Envoy refuses the listener otherwise): what a
//! session was made with is not known to it.

use crate::name;
use envoy_api::{
    any,
    envoy::{
        config::core::v3::{TransportSocket, TypedExtensionConfig, transport_socket::ConfigType},
        extensions::transport_sockets::tls::{
            cert_mappers::sni::v3::Sni,
            cert_selectors::on_demand_secret::v3::Config as OnDemand,
            v3::{
                CommonTlsContext, DownstreamTlsContext, SdsSecretConfig, TlsParameters,
                downstream_tls_context::SessionTicketKeysType, tls_parameters::TlsProtocol,
            },
        },
    },
};
use model::{
    listener::{ConnectionSettings, HttpVersions},
    tls::{Termination, TlsVersion},
};
use std::sync::Arc;

/// What a client that names no server asks for on demand. No host is called so.
const NO_NAME: &str = "_";

/// How proxies come by the certificates of hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Certificates {
    /// All of them from the start, with a chain for each: handshakes need nobody, and sessions are resumed. Each chain costs
    /// Envoy 0.2 ms whenever any of them comes or goes.
    #[default]
    PerChain,
    /// Each when a client first asks for it, all in one chain: a host costs the same among 100,000 as among ten. Handshakes for
    /// hosts that were not asked for before need the controller, and sessions are not resumed.
    OnDemand,
}

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
    let mut context = DownstreamTlsContext {
        common_tls_context: Some(CommonTlsContext {
            tls_params: Some(TlsParameters {
                tls_minimum_protocol_version: version(termination.lowest).into(),
                tls_maximum_protocol_version: version(termination.highest).into(),
                cipher_suites: words(&settings.ciphers),
                ecdh_curves: words(&settings.curves),
                ..Default::default()
            }),
            alpn_protocols: alpn.iter().map(|&protocol| protocol.to_owned()).collect(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let common = context.common_tls_context.get_or_insert_default();
    if termination.is_on_demand() {
        common.custom_tls_certificate_selector = Some(by_server_name());
        context.disable_stateful_session_resumption = true;
        context.session_ticket_keys_type = Some(SessionTicketKeysType::DisableStatelessSessionResumption(true));
    } else {
        common.tls_certificate_sds_secret_configs = vec![SdsSecretConfig {
            name: name::secret(&termination.certificate),
            sds_config: Some(name::on_this_stream()),
        }];
    }
    TransportSocket {
        name: "envoy.transport_sockets.tls".to_owned(),
        config_type: Some(ConfigType::TypedConfig(any(&context))),
    }
}

fn by_server_name() -> TypedExtensionConfig {
    let mapper = TypedExtensionConfig {
        name: "envoy.tls.certificate_mappers.sni".to_owned(),
        typed_config: Some(any(&Sni { default_value: NO_NAME.to_owned() })),
    };
    let selector = OnDemand {
        config_source: Some(name::on_this_stream()),
        certificate_mapper: Some(mapper),
        ..Default::default()
    };
    TypedExtensionConfig {
        name: "envoy.tls.certificate_selectors.on_demand_secret".to_owned(),
        typed_config: Some(any(&selector)),
    }
}

/// A version in the words of Envoy.
pub(crate) fn version(version: TlsVersion) -> TlsProtocol {
    match version {
        TlsVersion::V1_2 => TlsProtocol::TlSv12,
        TlsVersion::V1_3 => TlsProtocol::TlSv13,
    }
}
