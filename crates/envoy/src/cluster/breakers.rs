//! How much a backend may be given at once.

use envoy_api::envoy::config::cluster::v3::{CircuitBreakers, circuit_breakers::Thresholds};

/// The thresholds, where any was set; what is left unset keeps Envoy's default.
pub fn thresholds(limits: &model::cluster::CircuitBreakers) -> Option<CircuitBreakers> {
    if *limits == model::cluster::CircuitBreakers::default() {
        return None;
    }
    let all = Thresholds {
        max_connections: limits.max_connections.map(Into::into),
        max_pending_requests: limits.max_pending_requests.map(Into::into),
        max_requests: limits.max_requests.map(Into::into),
        max_retries: limits.max_retries.map(Into::into),
        track_remaining: true,
        ..Default::default()
    };
    let each = limits.per_host_max_connections.map(|most| Thresholds {
        max_connections: Some(most.into()),
        track_remaining: true,
        ..Default::default()
    });
    Some(CircuitBreakers { thresholds: vec![all], per_host_thresholds: each.into_iter().collect() })
}
