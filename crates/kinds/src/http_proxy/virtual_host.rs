//! The host of a root: its name, its certificate, what holds for all its routes, and where its connections go if they
//! are passed on without being read.

use super::{
    Service,
    rate_limit::RateLimitPolicy,
    route::LoadBalancerPolicy,
    security::{AuthorizationServer, IpFilter, JwtProvider},
};
use crate::{Checked, List};
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

/// Where connections go: services, or what a child says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TcpProxy {
    /// How an endpoint is chosen.
    #[serde(default)]
    pub load_balancer_policy: Checked<Option<Box<LoadBalancerPolicy>>>,
    /// The backends and their shares.
    #[serde(default)]
    pub services: List<Service>,
    /// The child.
    #[serde(default)]
    pub include: Checked<Option<Box<TcpProxyInclude>>>,
    /// The child, under the field's older name.
    #[serde(default)]
    pub includes: Checked<Option<Box<TcpProxyInclude>>>,
    /// How backends are probed.
    #[serde(default)]
    pub health_check_policy: Checked<Option<Box<TcpHealthCheckPolicy>>>,
}

/// A child that says where connections go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TcpProxyInclude {
    /// Its name.
    pub name: Box<str>,
    /// Its namespace; that of the including object if absent.
    pub namespace: Option<Box<str>>,
}

/// How backends are probed by connecting to them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TcpHealthCheckPolicy {
    /// Seconds between probes.
    pub interval_seconds: Option<i64>,
    /// Seconds that a connection may take.
    pub timeout_seconds: Option<i64>,
    /// Failures after which a backend is not used.
    pub unhealthy_threshold_count: Option<i64>,
    /// Successes after which it is used again.
    pub healthy_threshold_count: Option<i64>,
}
