//! What a backend speaks: HTTP version and encryption.

use super::ClusterSettings;
use crate::{name, route::action::timeout, tls_parameters};
use envoy_api::envoy::{
    extensions::transport_sockets::tls::v3::{
        CertificateValidationContext, SdsSecretConfig, SubjectAltNameMatcher,
        common_tls_context::{CombinedCertificateValidationContext, ValidationContextType},
        subject_alt_name_matcher::SanType,
    },
    r#type::matcher::v3::{StringMatcher, string_matcher::MatchPattern},
};
use envoy_api::{
    any,
    envoy::{
        config::core::v3::{
            DataSource, Http1ProtocolOptions, Http2ProtocolOptions, HttpProtocolOptions as Connections,
            TransportSocket, data_source, transport_socket::ConfigType,
        },
        extensions::{
            transport_sockets::tls::v3::{CommonTlsContext, UpstreamTlsContext},
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
use model::{
    CertificateRef, ObjectRef, Timeout,
    cluster::{SubjectAltName, TrustedCa, Validation},
};
use std::collections::BTreeMap;

const OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/// The HTTP options; HTTP/1.1 with nothing said about its connections needs none.
pub fn options(cluster: &model::Cluster, settings: &ClusterSettings) -> BTreeMap<String, Any> {
    let (idle_timeout, max_requests) = (timeout(cluster.overrides.idle), settings.max_requests);
    let max_connection_duration = cluster.overrides.max_connection.map(Into::into);
    let is_plain = cluster.overrides.idle == Timeout::Default
        && max_requests.is_none()
        && cluster.overrides.max_connection.is_none();
    if !cluster.protocol.is_h2() && is_plain {
        return BTreeMap::new();
    }
    let protocol_config = if cluster.protocol.is_h2() {
        ProtocolConfig::Http2ProtocolOptions(Http2ProtocolOptions::default())
    } else {
        ProtocolConfig::HttpProtocolOptions(Http1ProtocolOptions::default())
    };
    let options = HttpProtocolOptions {
        common_http_protocol_options: (!is_plain).then(|| Connections {
            idle_timeout,
            max_connection_duration,
            max_requests_per_connection: max_requests.map(Into::into),
            ..Default::default()
        }),
        upstream_protocol_options: Some(UpstreamProtocolOptions::ExplicitHttpConfig(ExplicitHttpConfig {
            protocol_config: Some(protocol_config),
        })),
        ..Default::default()
    };
    BTreeMap::from([(OPTIONS.to_owned(), any(&options))])
}

/// TLS to the backend. Where nothing was said about whom to trust, nobody is verified: the connection is private, not
/// proven.
pub fn transport_socket(cluster: &model::Cluster, settings: &ClusterSettings) -> Option<TransportSocket> {
    if !cluster.protocol.is_tls() {
        return None;
    }
    let versions = cluster.overrides.tls_versions.unwrap_or(settings.tls);
    let usual = tls_parameters::Usual { ciphers: &settings.ciphers, curves: &settings.curves };
    let alpn = if cluster.protocol.is_h2() { vec!["h2".to_owned()] } else { Vec::new() };
    let context = UpstreamTlsContext {
        common_tls_context: Some(CommonTlsContext {
            // Left alone, Envoy speaks no more than 1.2 to its upstreams.
            tls_params: Some(tls_parameters::of(versions, cluster.overrides.tls_parameters.as_deref(), usual)),
            alpn_protocols: alpn,
            tls_certificate_sds_secret_configs: cluster
                .overrides
                .client_certificate
                .iter()
                .map(client_certificate)
                .collect(),
            validation_context_type: cluster.overrides.validation.as_ref().map(|found| validation(found, settings)),
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

/// The certificate that a backend is presented.
fn client_certificate(secret: &ObjectRef) -> SdsSecretConfig {
    let name = name::secret(&CertificateRef::Secret(secret.clone()));
    SdsSecretConfig { name, sds_config: Some(name::on_this_stream()) }
}

/// Whom to trust: who was signed by the CA, which comes by SDS or is the system's, and has one of the names.
fn validation(validation: &Validation, settings: &ClusterSettings) -> ValidationContextType {
    let names = CertificateValidationContext {
        match_typed_subject_alt_names: validation.names.iter().map(subject_alt_name).collect(),
        ..Default::default()
    };
    match &validation.ca {
        TrustedCa::System => ValidationContextType::ValidationContext(CertificateValidationContext {
            trusted_ca: Some(DataSource {
                specifier: Some(data_source::Specifier::Filename(settings.system_cas.to_string())),
                ..Default::default()
            }),
            ..names
        }),
        TrustedCa::Bundle(bundle) => {
            ValidationContextType::CombinedValidationContext(CombinedCertificateValidationContext {
                default_validation_context: Some(names),
                validation_context_sds_secret_config: Some(SdsSecretConfig {
                    name: name::ca(bundle),
                    sds_config: Some(name::on_this_stream()),
                }),
                ..Default::default()
            })
        }
    }
}

fn subject_alt_name(name: &SubjectAltName) -> SubjectAltNameMatcher {
    let (san_type, text) = match name {
        SubjectAltName::Dns(name) => (SanType::Dns, name),
        SubjectAltName::Uri(uri) => (SanType::Uri, uri),
    };
    SubjectAltNameMatcher {
        san_type: san_type.into(),
        matcher: Some(StringMatcher {
            match_pattern: Some(MatchPattern::Exact(text.to_string())),
            ..Default::default()
        }),
        ..Default::default()
    }
}
