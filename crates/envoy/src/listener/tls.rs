//! TLS towards clients: the certificate by SDS, versions, ciphers, protocols.
//!
//! A chain shows one certificate, or the one of several that fits the client, or each host its own: Envoy then looks up the
//! secret by the server name of the client, and suspends the handshake while it asks for one that it does not have. [Holder
//! clusters](crate::cluster::holder) prefetch all of them, so that a handshake rarely waits. Such a chain has session resumption
//! off, or Envoy rejects the listener.
//!
//! Which client certificates are accepted comes by SDS, too, whichever way certificates come. See
//! [`crate::secret::clients`].

use crate::{name, tls_parameters};
use envoy_api::{
    any,
    envoy::{
        config::core::v3::{TransportSocket, TypedExtensionConfig, transport_socket::ConfigType},
        extensions::transport_sockets::tls::{
            cert_mappers::sni::v3::Sni,
            cert_selectors::on_demand_secret::v3::Config as OnDemandSecret,
            v3::{
                CommonTlsContext, DownstreamTlsContext, SdsSecretConfig, common_tls_context::ValidationContextType,
                downstream_tls_context::SessionTicketKeysType,
            },
        },
    },
};
use model::{
    CertificateRef, Port,
    listener::{ConnectionSettings, HttpVersions},
    tls::{Termination, TlsVersions},
};
use std::time::Duration;

/// The secret name of clients that send no server name. No host has this name.
const NO_SERVER_NAME: &str = "_";

/// How long a handshake on an on-demand chain may take. It bounds those that wait for an xDS server that is away: of server
/// names that nobody has, and of names in upper case.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// How Envoy loads the certificates of TLS hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Certificates {
    /// Hosts with a certificate of their own, valid for no other name, share one chain with on-demand certificates, which
    /// holder clusters prefetch: a new host costs the same among 50,000 as among ten. A certificate for several names has a
    /// chain, which the hosts that show it share.
    #[default]
    Auto,
    /// A chain for each certificate: with session resumption, and for Envoys before 1.38. Each chain costs Envoy 0.4 ms
    /// whenever any of them changes.
    PerChain,
    /// Every host that is not a wildcard has its certificate on demand, also where certificates have several names.
    OnDemand,
}

/// The transport socket of a chain whose requests are looked at.
pub fn transport_socket(termination: &Termination, port: &Port) -> TransportSocket {
    terminated(termination, &port.connections, &protocols(termination, port.http.versions))
}

/// The protocols that are offered: those that the host names, as far as the listener speaks them, or else all that it speaks.
fn protocols(termination: &Termination, versions: HttpVersions) -> Vec<&str> {
    let spoken: &[&str] = match versions {
        HttpVersions::Both => &["h2", "http/1.1"],
        HttpVersions::Http1 => &["http/1.1"],
        HttpVersions::Http2 => &["h2"],
    };
    let is_spoken = |name: &&str| *name != "h2" || spoken.contains(name);
    let named: Vec<&str> = own_protocols(termination).filter(is_spoken).collect();
    if named.is_empty() { spoken.to_vec() } else { named }
}

fn own_protocols(termination: &Termination) -> impl Iterator<Item = &str> {
    termination.parameters.iter().flat_map(|parameters| parameters.alpn.iter().map(|name| &**name))
}

/// The transport socket of a chain whose connections are passed on once they are decrypted.
pub(crate) fn passed_on(termination: &Termination, settings: &ConnectionSettings) -> TransportSocket {
    terminated(termination, settings, &own_protocols(termination).collect::<Vec<_>>())
}

/// The transport socket of a chain that agrees on these protocols.
fn terminated(termination: &Termination, settings: &ConnectionSettings, alpn: &[&str]) -> TransportSocket {
    TransportSocket {
        name: "envoy.transport_sockets.tls".to_owned(),
        config_type: Some(ConfigType::TypedConfig(any(&context(termination, settings, alpn)))),
    }
}

/// Certificates, settings and protocols of a chain.
pub(super) fn context(termination: &Termination, settings: &ConnectionSettings, alpn: &[&str]) -> DownstreamTlsContext {
    let versions = TlsVersions { lowest: termination.lowest, highest: termination.highest };
    let usual = tls_parameters::Usual { ciphers: &settings.ciphers, curves: &settings.curves };
    let parameters = tls_parameters::of(versions, termination.parameters.as_deref(), usual);
    let mut context = DownstreamTlsContext {
        common_tls_context: Some(CommonTlsContext {
            tls_params: Some(parameters),
            alpn_protocols: alpn.iter().map(|&protocol| protocol.to_owned()).collect(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let common = context.common_tls_context.get_or_insert_default();
    if termination.is_on_demand() {
        common.custom_tls_certificate_selector = Some(on_demand(by_server_name(), Vec::new()));
        context.disable_stateful_session_resumption = true;
        context.session_ticket_keys_type = Some(SessionTicketKeysType::DisableStatelessSessionResumption(true));
    } else {
        let by_name = |id: &CertificateRef| by_sds(name::secret(id));
        common.tls_certificate_sds_secret_configs = termination.certificates().map(by_name).collect();
    }
    if let Some(clients) = &termination.clients {
        let trust = by_sds(name::client_trust(&clients.trust));
        common.validation_context_type = Some(ValidationContextType::ValidationContextSdsSecretConfig(trust));
        context.require_client_certificate = Some(clients.is_required.into());
    }
    context
}

fn by_sds(name: String) -> SdsSecretConfig {
    SdsSecretConfig { name, sds_config: Some(name::on_this_stream()) }
}

fn by_server_name() -> TypedExtensionConfig {
    TypedExtensionConfig {
        name: "envoy.tls.certificate_mappers.sni".to_owned(),
        typed_config: Some(any(&Sni { default_value: NO_SERVER_NAME.to_owned() })),
    }
}

/// The certificate selector that asks for secrets by the names that `mapper` gives, and for these ahead of any handshake. Envoy
/// has one SDS subscription for each config source and name: a secret that one selector has costs the next no round trip.
pub(crate) fn on_demand(mapper: TypedExtensionConfig, prefetch: Vec<String>) -> TypedExtensionConfig {
    let selector = OnDemandSecret {
        config_source: Some(name::on_this_stream()),
        certificate_mapper: Some(mapper),
        prefetch_secret_names: prefetch,
    };
    TypedExtensionConfig {
        name: "envoy.tls.certificate_selectors.on_demand_secret".to_owned(),
        typed_config: Some(any(&selector)),
    }
}
