//! Connections that are passed on without being read.

use super::{Service, route::LoadBalancerPolicy};
use crate::{Checked, List};
use serde::Deserialize;

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
