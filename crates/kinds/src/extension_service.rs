//! ExtensionService, `projectcontour.io/v1alpha1` and `projectsesame.io/v1alpha1`.

use crate::{
    Checked, List, Meta, Status,
    http_proxy::{
        route::{LoadBalancerPolicy, TimeoutPolicy},
        service::UpstreamValidation,
    },
};
use serde::Deserialize;

/// Services that proxies ask: for authorization, rate limits, traces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ExtensionService {
    /// Its names.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// What is asked for.
    #[serde(default)]
    pub spec: ExtensionServiceSpec,
    /// Its status.
    #[serde(default)]
    pub status: Status,
}

/// What an ExtensionService asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionServiceSpec {
    /// The Services and their shares.
    #[serde(default)]
    pub services: List<ExtensionTarget>,
    /// What is spoken; `h2` if absent.
    #[serde(default)]
    pub protocol: Checked<Option<Box<str>>>,
    /// The version of the API that they are asked in; `v3` if absent.
    #[serde(default)]
    pub protocol_version: Checked<Option<Box<str>>>,
    /// Whom to trust.
    #[serde(default)]
    pub validation: Checked<Option<Box<UpstreamValidation>>>,
    /// How an endpoint is chosen.
    #[serde(default)]
    pub load_balancer_policy: Checked<Option<Box<LoadBalancerPolicy>>>,
    /// How long things may take.
    #[serde(default)]
    pub timeout_policy: Checked<Option<Box<TimeoutPolicy>>>,
    /// How much is asked at once.
    #[serde(default)]
    pub circuit_breaker_policy: Checked<Option<Box<CircuitBreakerPolicy>>>,
}

/// A port of a Service in the object's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ExtensionTarget {
    /// The Service.
    pub name: Box<str>,
    /// The port.
    pub port: i64,
    /// Its share.
    pub weight: Option<i64>,
}

/// Circuit breakers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CircuitBreakerPolicy {
    /// Connections of one proxy.
    pub max_connections: Option<i64>,
    /// Requests that wait for a connection.
    pub max_pending_requests: Option<i64>,
    /// Requests in flight.
    pub max_requests: Option<i64>,
    /// Retries in flight.
    pub max_retries: Option<i64>,
    /// Connections to one endpoint.
    pub per_host_max_connections: Option<i64>,
}

/// The fields of the API that nothing reads.
pub(crate) const UNREAD: &[(&str, &[&str])] = &[crate::meta::UNREAD];
