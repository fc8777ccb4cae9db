//! Who may: authorization servers, tokens, addresses.

use super::service::UpstreamValidation;
use crate::{TextMap, open_enum::open_enum};
use serde::Deserialize;

/// Some clients, by address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct IpFilter {
    /// Which address is meant.
    pub source: Option<IpSource>,
    /// An address, or a range of them.
    #[serde(default)]
    pub cidr: Box<str>,
}

open_enum! {
    /// Which address of a client is meant.
    IpSource {
        /// That at the other end of the connection.
        Peer = "Peer",
        /// That which trusted proxies tell.
        Remote = "Remote",
    }
}

/// Who is asked whether a request may pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizationServer {
    /// The server.
    pub extension_ref: Option<Box<ExtensionServiceReference>>,
    /// What it speaks.
    pub service_type: Option<Box<str>>,
    /// How it is asked over HTTP.
    pub http_settings: Option<Box<HttpAuthorization>>,
    /// What holds for routes that say nothing.
    pub auth_policy: Option<Box<AuthPolicy>>,
    /// How long it may take.
    pub response_timeout: Option<Box<str>>,
    /// Requests pass when it does not answer.
    #[serde(default)]
    pub fail_open: bool,
    /// It is sent the body.
    pub with_request_body: Option<Box<WithRequestBody>>,
}

/// An ExtensionService.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionServiceReference {
    /// Its group and version.
    pub api_version: Option<Box<str>>,
    /// Its namespace; the proxy's if absent.
    pub namespace: Option<Box<str>>,
    /// Its name.
    pub name: Option<Box<str>>,
}

/// How an authorization server is asked over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpAuthorization {
    /// What stands before the path.
    pub path_prefix: Option<Box<str>>,
    /// The headers that it is sent.
    #[serde(default)]
    pub allowed_authorization_headers: Box<[AllowedHeader]>,
    /// The headers of its answer that the backend is sent.
    #[serde(default)]
    pub allowed_upstream_headers: Box<[AllowedHeader]>,
}

/// Some headers: one of the four texts should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AllowedHeader {
    /// That of this name.
    pub exact: Option<Box<str>>,
    /// Those that begin so.
    pub prefix: Option<Box<str>>,
    /// Those that end so.
    pub suffix: Option<Box<str>>,
    /// Those that have it in their name.
    pub contains: Option<Box<str>>,
    /// Upper and lower case are the same.
    #[serde(default)]
    pub ignore_case: bool,
}

/// How the authorization server is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct AuthPolicy {
    /// Not at all.
    #[serde(default)]
    pub disabled: bool,
    /// What it is told besides.
    #[serde(default)]
    pub context: TextMap,
}

/// The body as the authorization server is sent it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WithRequestBody {
    /// At most so much of it; 1024 if absent.
    pub max_request_bytes: Option<i64>,
    /// A longer one is cut, not refused.
    #[serde(default)]
    pub allow_partial_message: bool,
    /// As bytes, not as text.
    #[serde(default)]
    pub pack_as_bytes: bool,
}

/// Who signs tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JwtProvider {
    /// The name that routes know it by.
    #[serde(default)]
    pub name: Box<str>,
    /// It is meant where a route names none.
    #[serde(default)]
    pub default: bool,
    /// The issuer that a token must name.
    pub issuer: Option<Box<str>>,
    /// The audiences of which it must name one.
    #[serde(default)]
    pub audiences: Box<[Box<str>]>,
    /// The backend is sent the token.
    #[serde(default, rename = "forwardJWT")]
    pub forward_jwt: bool,
    /// The keys, from a server.
    #[serde(rename = "remoteJWKS")]
    pub remote_jwks: Option<Box<RemoteJwks>>,
    /// The keys, from a Secret.
    #[serde(rename = "localJWKS")]
    pub local_jwks: Option<Box<LocalJwks>>,
}

/// Keys that a server has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteJwks {
    /// Where.
    #[serde(default)]
    pub uri: Box<str>,
    /// How long it may take.
    pub timeout: Option<Box<str>>,
    /// How long they are good.
    pub cache_duration: Option<Box<str>>,
    /// Which addresses its name is looked up for.
    pub dns_lookup_family: Option<Box<str>>,
    /// Whom to trust.
    pub validation: Option<Box<UpstreamValidation>>,
}

/// Keys that a Secret holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalJwks {
    /// The Secret.
    #[serde(default)]
    pub secret_name: Box<str>,
    /// Its entry.
    #[serde(default)]
    pub key: Box<str>,
}

/// Which token a route asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct JwtVerificationPolicy {
    /// One of this provider.
    pub require: Option<Box<str>>,
    /// None.
    #[serde(default)]
    pub disabled: bool,
}
