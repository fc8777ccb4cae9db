//! Health checks of endpoints.

use super::AddedHeader;
use crate::{Checked, emissary::Map};
use serde::Deserialize;

/// A health check of endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct HealthCheck {
    /// What is asked; required.
    pub health_check: Checked<Option<Box<HealthCheckRequest>>>,
    /// How long an answer may take, such as `3s`.
    pub timeout: Option<Box<str>>,
    /// The time between checks, such as `5s`.
    pub interval: Option<Box<str>>,
    /// Failures after which an endpoint is not used; 2 if absent.
    pub unhealthy_threshold: Option<i64>,
    /// Successes after which it is used again; 1 if absent.
    pub healthy_threshold: Option<i64>,
}

/// What an endpoint is asked: exactly one of the two should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct HealthCheckRequest {
    /// Over HTTP.
    pub http: Option<HttpHealthCheck>,
    /// Over gRPC.
    pub grpc: Option<GrpcHealthCheck>,
}

/// A health check over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct HttpHealthCheck {
    /// The path; required.
    pub path: Option<Box<str>>,
    /// The host; the name of the cluster if absent.
    pub hostname: Option<Box<str>>,
    /// Headers added to the request.
    pub add_request_headers: Map<AddedHeader>,
    /// Headers removed from the request.
    pub remove_request_headers: Box<[Box<str>]>,
    /// The statuses of a healthy endpoint; 200 if there are none.
    pub expected_statuses: Box<[StatusRange]>,
}

/// Statuses from `min` to `max`, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct StatusRange {
    /// The lowest.
    pub min: i64,
    /// The highest.
    pub max: i64,
}

/// A health check over gRPC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GrpcHealthCheck {
    /// The service that is asked about; required.
    pub upstream_name: Option<Box<str>>,
    /// The `:authority` of the request.
    pub authority: Option<Box<str>>,
}
