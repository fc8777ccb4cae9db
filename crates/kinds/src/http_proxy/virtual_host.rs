//! The host of a root: its name, its certificate, and what holds for all its routes.

use super::{
    rate_limit::RateLimitPolicy,
    security::{AuthorizationServer, IpFilter, JwtProvider},
};
use crate::Checked;
use serde::Deserialize;

/// The host of a root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualHost {
    /// Its name; `*.` in front for every name one label below.
    #[serde(default)]
    pub fqdn: Checked<Option<Box<str>>>,
    /// Its certificate.
    #[serde(default)]
    pub tls: Checked<Option<Box<Tls>>>,
    /// Who is asked whether a request may pass.
    #[serde(default)]
    pub authorization: Checked<Option<Box<AuthorizationServer>>>,
    /// Which other sites may use it.
    #[serde(default)]
    pub cors_policy: Checked<Option<Box<CorsPolicy>>>,
    /// How many requests are taken.
    #[serde(default)]
    pub rate_limit_policy: Checked<Option<Box<RateLimitPolicy>>>,
    /// Who signs tokens.
    #[serde(default)]
    pub jwt_providers: Checked<Option<Box<[JwtProvider]>>>,
    /// The only clients that may.
    #[serde(default, rename = "ipAllowPolicy")]
    pub ip_allow: Checked<Option<Box<[IpFilter]>>>,
    /// The clients that may not.
    #[serde(default, rename = "ipDenyPolicy")]
    pub ip_deny: Checked<Option<Box<[IpFilter]>>>,
}

/// How connections to the host are encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// The Secret with certificate and key: `name` or `namespace/name`.
    pub secret_name: Option<Box<str>>,
    /// The lowest version; `1.2` if absent.
    pub minimum_protocol_version: Option<Box<str>>,
    /// The highest version; `1.3` if absent.
    pub maximum_protocol_version: Option<Box<str>>,
    /// The backend has the certificate.
    #[serde(default)]
    pub passthrough: bool,
    /// Clients that name no host see it too.
    #[serde(default)]
    pub enable_fallback_certificate: bool,
    /// The certificate that clients must have.
    pub client_validation: Option<Box<DownstreamValidation>>,
}

/// The certificate that clients must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DownstreamValidation {
    /// The Secret with the CA: `name` or `namespace/name`.
    pub ca_secret: Option<Box<str>>,
    /// It is asked for, not checked.
    #[serde(default)]
    pub skip_client_cert_validation: bool,
    /// Clients without one may pass.
    #[serde(default)]
    pub optional_client_certificate: bool,
    /// The Secret with what was revoked: `name` or `namespace/name`.
    pub crl_secret: Option<Box<str>>,
    /// Only the client's own certificate is looked up there.
    #[serde(default)]
    pub crl_only_verify_leaf_cert: bool,
    /// What the backend is told about it.
    pub forward_client_certificate: Option<Box<ClientCertificateDetails>>,
}

/// What the backend is told about the client's certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClientCertificateDetails {
    /// The subject.
    pub subject: bool,
    /// The certificate.
    pub cert: bool,
    /// The chain.
    pub chain: bool,
    /// The DNS names.
    pub dns: bool,
    /// The URI.
    pub uri: bool,
}

/// Which other sites may use the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CorsPolicy {
    /// The sites.
    #[serde(default)]
    pub allow_origin: Box<[Box<str>]>,
    /// The methods that they may use.
    #[serde(default)]
    pub allow_methods: Box<[Box<str>]>,
    /// The headers that they may send.
    #[serde(default)]
    pub allow_headers: Box<[Box<str>]>,
    /// The headers that they may read.
    #[serde(default)]
    pub expose_headers: Box<[Box<str>]>,
    /// Whether with cookies and the like.
    #[serde(default)]
    pub allow_credentials: bool,
    /// How long a browser may remember it.
    pub max_age: Option<Box<str>>,
    /// Whether from a public site to a private address.
    #[serde(default)]
    pub allow_private_network: bool,
}
