//! How the connection to the xDS server is secured: TLS 1.3. The server has a certificate; Envoy has one, too, or shows a token
//! with every request ([`super::token`]).
//!
//! With a resources folder the certificate and the CA come from SDS files that point to them, and Envoy watches the
//! folders the PEM files stand in: a renewed certificate (a Kubernetes Secret volume, or files moved into place) is used for
//! the next connection without a restart. Without one, Envoy reads the PEM files once.

use std::path::{Path, PathBuf};

use envoy_api::envoy::config::core::v3 as core;
use envoy_api::envoy::extensions::transport_sockets::tls::v3 as tls;
use envoy_api::envoy::service::discovery::v3::DiscoveryResponse;
use envoy_api::envoy::r#type::matcher::v3::{StringMatcher, string_matcher::MatchPattern};
use envoy_api::{any, json};
use serde_json::Value;

use super::{text, token};
use crate::name;

/// How Envoy knows its server, and proves who it is.
#[derive(Clone, Debug)]
pub enum Tls {
    /// By a client certificate.
    Certificate(CertificateFiles),
    /// By a token.
    Token(Token),
}

/// A token that proves the fleet, such as the projected token of a ServiceAccount.
#[derive(Clone, Debug)]
pub struct Token {
    /// The CA (PEM text) that the server's certificate must come from.
    pub ca: String,
    /// When the CAs in it expire, in seconds since 1970.
    pub ca_expirations: Vec<i64>,
    /// The file of the token. Envoy reads it anew when it is replaced.
    pub file: PathBuf,
    /// Where the SDS file goes that points to it, in a folder `sds`.
    pub resources_dir: PathBuf,
}

/// The PEM files of the connection.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    /// The CA that the server's certificate must come from.
    pub ca: PathBuf,
    /// Envoy's own certificate, with the chain up to the CA if there is one.
    pub certificate: PathBuf,
    /// The private key of that certificate.
    pub key: PathBuf,
    /// Where the SDS files go, in a folder `sds`.
    pub resources_dir: Option<PathBuf>,
}

pub(super) fn transport_socket(from: &Tls) -> core::TransportSocket {
    let version = tls::tls_parameters::TlsProtocol::TlSv13.into();
    let mut common = tls::CommonTlsContext {
        tls_params: Some(tls::TlsParameters {
            tls_minimum_protocol_version: version,
            tls_maximum_protocol_version: version,
            ..Default::default()
        }),
        alpn_protocols: vec!["h2".to_owned()],
        ..Default::default()
    };
    use tls::common_tls_context::ValidationContextType::{ValidationContext, ValidationContextSdsSecretConfig};
    match from {
        Tls::Token(token) => {
            let ca = core::data_source::Specifier::InlineString(token.ca.clone());
            let ca = core::DataSource { specifier: Some(ca), ..Default::default() };
            common.validation_context_type = Some(ValidationContext(validation(ca)));
        }
        Tls::Certificate(CertificateFiles { resources_dir: Some(dir), .. }) => {
            common.tls_certificate_sds_secret_configs = vec![from_file(name::XDS_CERTIFICATE, &certificate_path(dir))];
            let validation = from_file(name::XDS_VALIDATION, &validation_path(dir));
            common.validation_context_type = Some(ValidationContextSdsSecretConfig(validation));
        }
        Tls::Certificate(files) => {
            common.tls_certificates = vec![certificate(files)];
            common.validation_context_type = Some(ValidationContext(validation(from_path(&files.ca))));
        }
    }
    core::TransportSocket {
        name: "envoy.transport_sockets.tls".to_owned(),
        config_type: Some(core::transport_socket::ConfigType::TypedConfig(any(&tls::UpstreamTlsContext {
            common_tls_context: Some(common),
            ..Default::default()
        }))),
    }
}

/// The SDS files, if there is a folder for them.
pub(super) fn files(from: &Tls) -> Vec<(PathBuf, Value)> {
    let files = match from {
        Tls::Token(token) => return vec![token::sds_file(token)],
        Tls::Certificate(files) => files,
    };
    let Some(dir) = &files.resources_dir else { return Vec::new() };
    let with_directory = |path: &Path| Some(core::WatchedDirectory { path: text(parent(path)), ..Default::default() });
    let certificate =
        tls::TlsCertificate { watched_directory: with_directory(&files.certificate), ..certificate(files) };
    let validation = tls::CertificateValidationContext {
        watched_directory: with_directory(&files.ca),
        ..validation(from_path(&files.ca))
    };
    vec![
        (certificate_path(dir), secret_file(name::XDS_CERTIFICATE, tls::secret::Type::TlsCertificate(certificate))),
        (validation_path(dir), secret_file(name::XDS_VALIDATION, tls::secret::Type::ValidationContext(validation))),
    ]
}

fn certificate_path(dir: &Path) -> PathBuf {
    dir.join("sds/xds-tls-certificate.json")
}

fn validation_path(dir: &Path) -> PathBuf {
    dir.join("sds/xds-validation-context.json")
}

fn certificate(files: &CertificateFiles) -> tls::TlsCertificate {
    tls::TlsCertificate {
        certificate_chain: Some(from_path(&files.certificate)),
        private_key: Some(from_path(&files.key)),
        ..Default::default()
    }
}

fn validation(ca: core::DataSource) -> tls::CertificateValidationContext {
    let is_named = |name: &str| tls::SubjectAltNameMatcher {
        san_type: tls::subject_alt_name_matcher::SanType::Dns.into(),
        matcher: Some(StringMatcher {
            match_pattern: Some(MatchPattern::Exact(name.to_owned())),
            ..Default::default()
        }),
        ..Default::default()
    };
    tls::CertificateValidationContext {
        trusted_ca: Some(ca),
        match_typed_subject_alt_names: name::XDS_SERVER_SANS.map(is_named).into(),
        ..Default::default()
    }
}

pub(super) fn from_path(path: &Path) -> core::DataSource {
    core::DataSource { specifier: Some(core::data_source::Specifier::Filename(text(path))), ..Default::default() }
}

pub(super) fn from_file(name: &str, path: &Path) -> tls::SdsSecretConfig {
    let source = core::PathConfigSource { path: text(path), ..Default::default() };
    tls::SdsSecretConfig {
        name: name.to_owned(),
        sds_config: Some(core::ConfigSource {
            resource_api_version: core::ApiVersion::V3.into(),
            config_source_specifier: Some(core::config_source::ConfigSourceSpecifier::PathConfigSource(source)),
            ..Default::default()
        }),
    }
}

pub(super) fn secret_file(name: &str, secret: tls::secret::Type) -> Value {
    let secret = tls::Secret { name: name.to_owned(), r#type: Some(secret) };
    let response = DiscoveryResponse { resources: vec![any(&secret)], ..Default::default() };
    json::to_json(&response).expect("a secret's type is part of the API")
}

/// The folder of a file; the current one for a bare name.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
