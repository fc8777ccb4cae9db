//! RateLimitService: who is asked whether there are too many requests.

use super::{AmbassadorId, auth_service::ProtocolVersion};
use crate::{Checked, Meta};
use serde::Deserialize;

/// Who is asked whether there are too many requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct RateLimitService {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: RateLimitServiceSpec,
}

/// The specification of a RateLimitService.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RateLimitServiceSpec {
    /// The instances it is for.
    pub ambassador_id: Checked<AmbassadorId>,
    /// The service; required.
    pub service: Checked<Option<Box<str>>>,
    /// The domain of its limits; the Module decides if absent.
    pub domain: Checked<Option<Box<str>>>,
    /// The TLSContext of connections to the service.
    pub tls: Checked<Option<Box<str>>>,
    /// The version of its protocol.
    pub protocol_version: Checked<Option<ProtocolVersion>>,
    /// Milliseconds that an answer may take; 20 if absent.
    pub timeout_ms: Checked<Option<i64>>,
    /// Requests are refused where it cannot be asked.
    pub failure_mode_deny: Checked<Option<bool>>,
    /// Settings for gRPC requests.
    pub grpc: Checked<Option<Box<GrpcSettings>>>,
    /// The name of the cluster in statistics.
    pub stats_name: Checked<Option<Box<str>>>,
}

/// Settings for gRPC requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GrpcSettings {
    /// A refused request is answered `RESOURCE_EXHAUSTED` rather than `UNAVAILABLE`.
    pub use_resource_exhausted_code: Option<bool>,
}
