//! Connections to a service: limits, load balancing, keepalive.

use crate::open_enum::open_enum;
use serde::{Deserialize, Serialize};

/// Limits of connections and requests of one priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct CircuitBreaker {
    /// The priority; `default` if absent.
    pub priority: Option<Priority>,
    /// Connections; 1024 if absent.
    pub max_connections: Option<i64>,
    /// Requests that wait for a connection; 1024 if absent.
    pub max_pending_requests: Option<i64>,
    /// Requests at a time; 1024 if absent.
    pub max_requests: Option<i64>,
    /// Retries at a time; 3 if absent.
    pub max_retries: Option<i64>,
}

open_enum! {
    /// The priority of requests.
    Priority {
        /// The usual one.
        Default = "default",
        /// A higher one.
        High = "high",
    }
}

/// How an endpoint is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct LoadBalancer {
    /// The policy; required.
    pub policy: Option<LoadBalancerPolicy>,
    /// The cookie that is hashed.
    pub cookie: Option<LoadBalancerCookie>,
    /// The header that is hashed.
    pub header: Option<Box<str>>,
    /// The client's address is hashed.
    pub source_ip: Option<bool>,
}

open_enum! {
    /// How an endpoint is chosen.
    LoadBalancerPolicy {
        /// In turn.
        RoundRobin = "round_robin",
        /// The one with the fewest requests, of two at random.
        LeastRequest = "least_request",
        /// By hash, on a ring.
        RingHash = "ring_hash",
        /// By hash, in a Maglev table.
        Maglev = "maglev",
    }
}

/// A cookie that is hashed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct LoadBalancerCookie {
    /// Its name.
    pub name: Box<str>,
    /// Its path.
    pub path: Option<Box<str>>,
    /// How long it is kept; with this one it is set where it is missing.
    pub ttl: Option<Box<str>>,
}

/// TCP keepalive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Keepalive {
    /// Unanswered probes before a connection is dead.
    pub probes: Option<i64>,
    /// Seconds without traffic before the first probe.
    pub idle_time: Option<i64>,
    /// Seconds between probes.
    pub interval: Option<i64>,
}
