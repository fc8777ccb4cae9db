//! AuthService: who is asked whether a request may pass.

use super::{AmbassadorId, Map, mapping::CircuitBreaker};
use crate::{Checked, Meta, open_enum::open_enum};
use serde::Deserialize;

/// Who is asked whether a request may pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct AuthService {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: AuthServiceSpec,
}

/// The specification of an AuthService.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AuthServiceSpec {
    /// The instances it is for.
    pub ambassador_id: Checked<AmbassadorId>,
    /// The service; required.
    pub auth_service: Checked<Option<Box<str>>>,
    /// What is put before the path of a request.
    pub path_prefix: Checked<Option<Box<str>>>,
    /// The TLSContext of connections to the service.
    pub tls: Checked<Option<Box<str>>>,
    /// How it is asked; `http` if absent.
    pub proto: Checked<Option<AuthProtocol>>,
    /// The version of the protocol of gRPC.
    pub protocol_version: Checked<Option<ProtocolVersion>>,
    /// Milliseconds that an answer may take; 5000 if absent.
    pub timeout_ms: Checked<Option<i64>>,
    /// Request headers that it is sent.
    pub allowed_request_headers: Checked<Option<Box<[Box<str>]>>>,
    /// Headers of its answer that are passed on.
    pub allowed_authorization_headers: Checked<Option<Box<[Box<str>]>>>,
    /// Headers added to what it is sent.
    pub add_auth_headers: Checked<Map<Box<str>>>,
    /// It is sent the first 4096 bytes of the body.
    pub allow_request_body: Checked<Option<bool>>,
    /// How much of the body it is sent.
    pub include_body: Checked<Option<Box<IncludeBody>>>,
    /// The status where it cannot be asked.
    pub status_on_error: Checked<Option<Box<StatusOnError>>>,
    /// Requests pass where it cannot be asked.
    pub failure_mode_allow: Checked<Option<bool>>,
    /// Requests to it carry `l5d-dst-override`.
    pub add_linkerd_headers: Checked<Option<bool>>,
    /// Limits of connections and requests.
    pub circuit_breakers: Checked<Option<Box<[CircuitBreaker]>>>,
    /// The name of the cluster in statistics.
    pub stats_name: Checked<Option<Box<str>>>,
}

open_enum! {
    /// How an AuthService is asked.
    AuthProtocol {
        /// Over HTTP.
        Http = "http",
        /// Over gRPC.
        Grpc = "grpc",
    }
}

open_enum! {
    /// The version of Envoy's protocol that a service speaks.
    ProtocolVersion {
        /// The second, which Envoy has no more.
        V2 = "v2",
        /// The third.
        V3 = "v3",
    }
}

/// How much of the body is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct IncludeBody {
    /// Bytes at most; required.
    pub max_bytes: Option<i64>,
    /// A longer body is sent in part; otherwise the request is answered 413. Required.
    pub allow_partial: Option<bool>,
}

/// The status where a service cannot be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StatusOnError {
    /// The status; 403 if absent.
    pub code: Option<i64>,
}
