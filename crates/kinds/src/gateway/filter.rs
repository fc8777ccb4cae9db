//! Filters of HTTPRoutes and GRPCRoutes.

use super::reference::{BackendReference, LocalReference};
use crate::{List, open_enum::open_enum};
use serde::Deserialize;

/// A filter of a rule or of a backend: a type, and the field of that type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Filter {
    /// Its type.
    pub r#type: Option<FilterType>,
    /// Changes of request headers.
    pub request_header_modifier: Option<Box<HeaderModifier>>,
    /// Changes of response headers.
    pub response_header_modifier: Option<Box<HeaderModifier>>,
    /// A copy of requests.
    pub request_mirror: Option<Box<RequestMirror>>,
    /// A redirect.
    pub request_redirect: Option<Box<RequestRedirect>>,
    /// Another path or host towards the backend.
    pub url_rewrite: Option<Box<UrlRewrite>>,
    /// Cross-origin requests.
    pub cors: Option<Box<Cors>>,
    /// Authorization by a service (experimental).
    pub external_auth: Option<Box<ExternalAuth>>,
    /// A filter of an implementation.
    pub extension_ref: Option<Box<LocalReference>>,
}

open_enum! {
    /// The type of a filter.
    FilterType {
        /// Changes of request headers.
        RequestHeaderModifier = "RequestHeaderModifier",
        /// Changes of response headers.
        ResponseHeaderModifier = "ResponseHeaderModifier",
        /// A copy of requests.
        RequestMirror = "RequestMirror",
        /// A redirect.
        RequestRedirect = "RequestRedirect",
        /// Another path or host towards the backend.
        UrlRewrite = "URLRewrite",
        /// Cross-origin requests.
        Cors = "CORS",
        /// Authorization by a service.
        ExternalAuth = "ExternalAuth",
        /// A filter of an implementation.
        ExtensionRef = "ExtensionRef",
    }
}

/// Changes of headers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct HeaderModifier {
    /// Headers that are set, whatever value they have.
    #[serde(default)]
    pub set: List<HttpHeader>,
    /// Headers that are added.
    #[serde(default)]
    pub add: List<HttpHeader>,
    /// Headers that are removed.
    #[serde(default)]
    pub remove: List<Box<str>>,
}

/// A header with its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct HttpHeader {
    /// The name.
    pub name: Box<str>,
    /// The value.
    pub value: Box<str>,
}

/// A copy of requests; its responses are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestMirror {
    /// Where copies are sent.
    #[serde(default)]
    pub backend_ref: BackendReference,
    /// The share of requests that are copied, in percent; all if neither is given.
    pub percent: Option<i64>,
    /// The share of requests that are copied.
    pub fraction: Option<Fraction>,
}

/// A share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Fraction {
    /// The numerator.
    pub numerator: i64,
    /// The denominator; 100 if absent.
    pub denominator: Option<i64>,
}

/// A redirect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestRedirect {
    /// The scheme; that of the request if absent.
    pub scheme: Option<Box<str>>,
    /// The host; that of the request if absent.
    pub hostname: Option<Box<str>>,
    /// The path; that of the request if absent.
    pub path: Option<PathModifier>,
    /// The port.
    pub port: Option<i64>,
    /// The status code; 302 if absent.
    pub status_code: Option<i64>,
}

/// Another path or host towards the backend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct UrlRewrite {
    /// The host.
    pub hostname: Option<Box<str>>,
    /// The path.
    pub path: Option<PathModifier>,
}

/// A change of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PathModifier {
    /// Its type.
    pub r#type: Option<PathModifierType>,
    /// The whole path.
    pub replace_full_path: Option<Box<str>>,
    /// The prefix that takes the place of the one that matched.
    pub replace_prefix_match: Option<Box<str>>,
}

open_enum! {
    /// The type of a change of a path.
    PathModifierType {
        /// The whole path is replaced.
        ReplaceFullPath = "ReplaceFullPath",
        /// The prefix that matched is replaced.
        ReplacePrefixMatch = "ReplacePrefixMatch",
    }
}

/// Cross-origin requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cors {
    /// The origins that may.
    #[serde(default)]
    pub allow_origins: Box<[Box<str>]>,
    /// Whether credentials are allowed.
    pub allow_credentials: Option<bool>,
    /// The methods that may be used.
    #[serde(default)]
    pub allow_methods: Box<[Box<str>]>,
    /// The headers that may be sent.
    #[serde(default)]
    pub allow_headers: Box<[Box<str>]>,
    /// The headers that may be read.
    #[serde(default)]
    pub expose_headers: Box<[Box<str>]>,
    /// For how many seconds the answer holds; 5 if absent.
    pub max_age: Option<i64>,
}

/// Authorization by a service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalAuth {
    /// The protocol of the service.
    pub protocol: Option<ExternalAuthProtocol>,
    /// The service.
    #[serde(default)]
    pub backend_ref: BackendReference,
    /// Settings for gRPC.
    pub grpc: Option<GrpcAuth>,
    /// Settings for HTTP.
    pub http: Option<HttpAuth>,
    /// Whether the body is sent.
    pub forward_body: Option<ForwardBody>,
}

open_enum! {
    /// The protocol of an authorization service.
    ExternalAuthProtocol {
        /// HTTP.
        Http = "HTTP",
        /// Envoy's gRPC service.
        Grpc = "GRPC",
    }
}

/// Authorization over gRPC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrpcAuth {
    /// The headers that are sent; all if empty.
    #[serde(default)]
    pub allowed_headers: Box<[Box<str>]>,
}

/// Authorization over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpAuth {
    /// A prefix of the path.
    pub path: Option<Box<str>>,
    /// The headers that are sent besides those that always are.
    #[serde(default)]
    pub allowed_headers: Box<[Box<str>]>,
    /// The headers of its response that go on to the backend; all if empty.
    #[serde(default)]
    pub allowed_response_headers: Box<[Box<str>]>,
}

/// How much of the body an authorization service is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForwardBody {
    /// At most so many bytes.
    pub max_size: Option<i64>,
}
