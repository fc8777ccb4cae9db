//! Settings of HTTP filters and of the built-in Mappings in a Module.

use super::{Ignored, Map};
use crate::{List, open_enum::open_enum};
use serde::Deserialize;

/// Limits of the body of a request that is buffered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Buffer {
    /// Bytes at most; required.
    pub max_request_bytes: Option<i64>,
    /// No effect.
    pub max_request_time: Ignored,
}

/// Statistics of gRPC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GrpcStats {
    /// Of all methods.
    pub all_methods: Option<bool>,
    /// Of these methods.
    pub services: Option<Box<[GrpcStatsService]>>,
    /// The time that services take, too.
    pub upstream_stats: Option<bool>,
}

/// Methods of a gRPC service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GrpcStatsService {
    /// The service.
    pub name: Box<str>,
    /// The methods.
    pub method_names: Box<[Box<str>]>,
}

/// Compression of responses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Gzip {
    /// Memory, from 1 to 9.
    pub memory_level: Option<i64>,
    /// Bytes that a response must have.
    pub min_content_length: Option<i64>,
    /// `DEFAULT`, `BEST` or `SPEED`.
    pub compression_level: Option<Box<str>>,
    /// `DEFAULT`, `FILTERED`, `HUFFMAN` or `RLE`.
    pub compression_strategy: Option<Box<str>>,
    /// The size of the window, from 9 to 15.
    pub window_bits: Option<i64>,
    /// The content types that are compressed.
    pub content_type: Option<Box<[Box<str>]>>,
    /// Responses with an `etag` are not compressed.
    pub disable_on_etag_header: Option<bool>,
    /// Services do not see `accept-encoding`.
    pub remove_accept_encoding_header: Option<bool>,
}

/// An address, of the client or of the peer: exactly one of the two should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Principal {
    /// The client's address, which a proxy in front may have told.
    pub remote: Option<Box<str>>,
    /// The address of the connection.
    pub peer: Option<Box<str>>,
}

/// A list of addresses.
pub type Principals = List<Principal>;

/// A Mapping that is built in: diagnostics, liveness, readiness.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct BuiltInMapping {
    /// Whether it is there; true if absent.
    pub enabled: Option<bool>,
    /// Whether others than the pod itself may ask for diagnostics.
    pub allow_non_local: Option<bool>,
    /// The prefix of its paths.
    pub prefix: Option<Box<str>>,
    /// What the prefix is replaced with.
    pub rewrite: Option<Box<str>>,
    /// Who answers.
    pub service: Option<Box<str>>,
}

open_enum! {
    /// What becomes of `x-forwarded-client-cert`.
    ForwardClientCert {
        /// It is removed.
        Sanitize = "SANITIZE",
        /// It is passed on if the connection has a client certificate.
        ForwardOnly = "FORWARD_ONLY",
        /// The certificate of the client is added.
        AppendForward = "APPEND_FORWARD",
        /// The certificate of the client replaces it.
        SanitizeSet = "SANITIZE_SET",
        /// It is passed on.
        AlwaysForwardOnly = "ALWAYS_FORWARD_ONLY",
    }
}

/// What `x-forwarded-client-cert` says about the certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClientCertDetails {
    /// Its subject.
    pub subject: Option<bool>,
    /// The certificate itself.
    pub cert: Option<bool>,
    /// Its chain.
    pub chain: Option<bool>,
    /// Its DNS names.
    pub dns: Option<bool>,
    /// Its URIs.
    pub uri: Option<bool>,
}

open_enum! {
    /// What happens to headers with underscores in their name.
    UnderscoresAction {
        /// They are passed on.
        Allow = "ALLOW",
        /// The request is refused.
        RejectRequest = "REJECT_REQUEST",
        /// They are removed.
        DropHeader = "DROP_HEADER",
    }
}

open_enum! {
    /// The form of the access log.
    AccessLogType {
        /// Lines of text.
        Text = "text",
        /// JSON whose values are text.
        Json = "json",
        /// JSON whose values have types.
        TypedJson = "typed_json",
    }
}

/// Labels that every request has, by domain.
pub type DefaultLabels = Map<DomainLabels>;

/// The labels of a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DomainLabels {
    /// Labels that stand before those of a Mapping.
    pub defaults: Box<[crate::emissary::mapping::labels::LabelSpecifier]>,
}
