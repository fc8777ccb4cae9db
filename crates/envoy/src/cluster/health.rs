//! How backends are probed, and how new ones are eased in.

use envoy_api::envoy::{
    config::{
        cluster::v3::cluster::{LbConfig, LeastRequestLbConfig, RoundRobinLbConfig, SlowStartConfig},
        core::v3::{
            HealthCheck, RuntimeDouble,
            health_check::{HealthChecker, HttpHealthCheck, TcpHealthCheck},
        },
    },
    r#type::v3::{CodecClientType, Int64Range, Percent},
};
use model::cluster::{Balance, Probe, SlowStart};

/// The probes of a cluster.
pub fn checks(cluster: &model::Cluster) -> Vec<HealthCheck> {
    let checks = cluster.health.iter().map(|check| HealthCheck {
        timeout: Some(check.timeout.into()),
        interval: Some(check.interval.into()),
        unhealthy_threshold: Some(check.unhealthy.into()),
        healthy_threshold: Some(check.healthy.into()),
        health_checker: Some(probe(&check.probe, cluster.protocol.is_h2())),
        ..Default::default()
    });
    checks.collect()
}

fn probe(probe: &Probe, h2: bool) -> HealthChecker {
    let Probe::Http { path, host, statuses } = probe else {
        return HealthChecker::TcpHealthCheck(TcpHealthCheck::default());
    };
    let codec = if h2 { CodecClientType::Http2 } else { CodecClientType::Http1 };
    let ranges = statuses.iter().map(|&(start, end)| Int64Range { start: start.into(), end: end.into() });
    HealthChecker::HttpHealthCheck(HttpHealthCheck {
        host: host.as_str().to_owned(),
        path: path.to_string(),
        expected_statuses: ranges.collect(),
        codec_client_type: codec.into(),
        ..Default::default()
    })
}

/// How new endpoints are eased in.
pub fn slow_start(cluster: &model::Cluster) -> Option<LbConfig> {
    let slow_start_config = Some(config(cluster.slow_start.as_ref()?));
    match cluster.balance {
        Balance::RoundRobin => Some(LbConfig::RoundRobinLbConfig(RoundRobinLbConfig { slow_start_config })),
        Balance::LeastRequest => {
            Some(LbConfig::LeastRequestLbConfig(LeastRequestLbConfig { slow_start_config, ..Default::default() }))
        }
        Balance::Random | Balance::RingHash => None,
    }
}

fn config(slow: &SlowStart) -> SlowStartConfig {
    SlowStartConfig {
        slow_start_window: Some(slow.window.into()),
        aggression: Some(RuntimeDouble {
            default_value: slow.aggression.value(),
            runtime_key: "sesame.slow_start.aggression".to_owned(),
        }),
        min_weight_percent: Some(Percent { value: slow.least_percent.into() }),
    }
}
