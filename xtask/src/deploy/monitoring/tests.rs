//! The rules and the queries of panels, as Prometheus' own tool sees them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use serde_json::{Value, json};

use super::{alerts, dashboards};

/// A series and its values, one a minute.
type Series = (&'static str, &'static str);

/// What fires an alert, when, with which labels and which summary; and what does not.
struct Trial {
    alert: &'static str,
    firing: &'static [Series],
    after: &'static str,
    labels: &'static [(&'static str, &'static str)],
    summary: &'static str,
    quiet: &'static [Series],
}

const TRIALS: &[Trial] = &[
    Trial {
        alert: "SesameDown",
        firing: &[("up", "1x20")],
        after: "10m",
        labels: &[],
        summary: "No controller is scraped",
        quiet: &[("sesame_build_info{version=\"1\"}", "1x20")],
    },
    Trial {
        alert: "SesameNotReady",
        firing: &[("sesame_ready{pod=\"a\"}", "0x20"), ("sesame_ready{pod=\"b\"}", "1x20")],
        after: "10m",
        labels: &[("pod", "a")],
        summary: "Controller a is not ready",
        quiet: &[("sesame_ready{pod=\"a\"}", "0x3 1x20")],
    },
    Trial {
        alert: "SesameApiServerUnreachable",
        firing: &[("sesame_apiserver_connected{pod=\"a\"}", "0x20")],
        after: "10m",
        labels: &[("pod", "a")],
        summary: "Controller a cannot reach the API server",
        quiet: &[("sesame_apiserver_connected{pod=\"a\"}", "1x20")],
    },
    Trial {
        alert: "SesameNoLeader",
        firing: &[
            ("sesame_leader{namespace=\"n\",pod=\"a\"}", "0x20"),
            ("sesame_leader{namespace=\"n\",pod=\"b\"}", "0x20"),
        ],
        after: "10m",
        labels: &[("namespace", "n")],
        summary: "No controller is the leader",
        quiet: &[
            ("sesame_leader{namespace=\"n\",pod=\"a\"}", "0x20"),
            ("sesame_leader{namespace=\"n\",pod=\"b\"}", "1x20"),
        ],
    },
    Trial {
        alert: "SesameTwoLeaders",
        firing: &[
            ("sesame_leader{namespace=\"n\",pod=\"a\"}", "1x20"),
            ("sesame_leader{namespace=\"n\",pod=\"b\"}", "1x20"),
        ],
        after: "10m",
        labels: &[("namespace", "n")],
        summary: "2 controllers act as the leader",
        // Two installations.
        quiet: &[
            ("sesame_leader{namespace=\"n\",pod=\"a\"}", "1x20"),
            ("sesame_leader{namespace=\"m\",pod=\"b\"}", "1x20"),
        ],
    },
    Trial {
        alert: "SesameConfigurationRejected",
        firing: &[("sesame_configuration_valid{pod=\"a\"}", "0x20")],
        after: "10m",
        labels: &[("pod", "a")],
        summary: "Controller a rejects its configuration",
        quiet: &[("sesame_configuration_valid{pod=\"a\"}", "1x20")],
    },
    Trial {
        alert: "SesameBuildSlow",
        firing: &[
            ("sesame_build_seconds_bucket{le=\"0.5\"}", "0x40"),
            ("sesame_build_seconds_bucket{le=\"2.5\"}", "0+60x40"),
            ("sesame_build_seconds_bucket{le=\"+Inf\"}", "0+60x40"),
        ],
        after: "30m",
        labels: &[],
        summary: "Changes take 2.48s to be published (p99)",
        quiet: &[
            ("sesame_build_seconds_bucket{le=\"0.5\"}", "0+60x40"),
            ("sesame_build_seconds_bucket{le=\"+Inf\"}", "0+60x40"),
        ],
    },
    Trial {
        alert: "SesameStatusLag",
        firing: &[
            ("sesame_status_lag_seconds_bucket{le=\"60\"}", "0x60"),
            ("sesame_status_lag_seconds_bucket{le=\"180\"}", "0+60x60"),
            ("sesame_status_lag_seconds_bucket{le=\"+Inf\"}", "0+60x60"),
        ],
        after: "40m",
        labels: &[],
        summary: "Status is written 2m 58s late (p99)",
        quiet: &[
            ("sesame_status_lag_seconds_bucket{le=\"1\"}", "0+60x60"),
            ("sesame_status_lag_seconds_bucket{le=\"+Inf\"}", "0+60x60"),
        ],
    },
    Trial {
        alert: "SesameProxyRejects",
        firing: &[
            ("sesame_proxies{fleet=\"shared\",state=\"rejected\",pod=\"a\"}", "1x20"),
            ("sesame_proxies{fleet=\"shared\",state=\"rejected\",pod=\"b\"}", "2x20"),
        ],
        after: "5m",
        labels: &[("fleet", "shared")],
        summary: "3 proxies of fleet shared reject resources",
        quiet: &[
            ("sesame_proxies{fleet=\"shared\",state=\"rejected\"}", "0x20"),
            ("sesame_proxies{fleet=\"shared\",state=\"in_step\"}", "5x20"),
        ],
    },
    Trial {
        alert: "SesameNacks",
        firing: &[("sesame_xds_nacks_total{type=\"cds\"}", "0x5 1x20")],
        after: "8m",
        labels: &[("type", "cds")],
        summary: "Proxies rejected cds responses",
        quiet: &[("sesame_xds_nacks_total{type=\"cds\"}", "7x20")],
    },
    Trial {
        alert: "SesameProxyStuck",
        firing: &[("sesame_proxies{fleet=\"shared\",state=\"stuck\"}", "1x20")],
        after: "10m",
        labels: &[("fleet", "shared")],
        summary: "1 proxies of fleet shared do not acknowledge their configuration",
        quiet: &[
            ("sesame_proxies{fleet=\"shared\",state=\"stuck\"}", "1x2 0x20"),
            ("sesame_proxies{fleet=\"shared\",state=\"behind\"}", "1x20"),
        ],
    },
    Trial {
        alert: "SesameProxyStale",
        firing: &[("envoy_control_plane_connected_state{pod=\"envoy-1\"}", "0x20")],
        after: "10m",
        labels: &[("pod", "envoy-1")],
        summary: "Proxy envoy-1 has no connection to a controller",
        quiet: &[("envoy_control_plane_connected_state{pod=\"envoy-1\"}", "1x20")],
    },
    Trial {
        alert: "SesameCertificateExpires",
        // Two replicas show the same one: three days are left when two hours have passed.
        firing: &[
            ("sesame_certificate_expiry_timestamp_seconds{pod=\"a\",secret=\"cert\"}", "266400x150"),
            ("sesame_certificate_expiry_timestamp_seconds{pod=\"b\",secret=\"cert\"}", "266400x150"),
        ],
        after: "120m",
        labels: &[("secret", "cert")],
        summary: "The certificate in Secret cert expires in 3d 0h 0m 0s",
        quiet: &[("sesame_certificate_expiry_timestamp_seconds{pod=\"a\",secret=\"cert\"}", "866400x150")],
    },
    Trial {
        alert: "SesameXdsCertificateExpires",
        firing: &[("sesame_xds_certificate_expiry_timestamp_seconds{certificate=\"server\",pod=\"a\"}", "266400x150")],
        after: "120m",
        labels: &[("certificate", "server")],
        summary: "The server certificate of xDS expires in 3d 0h 0m 0s",
        quiet: &[("sesame_xds_certificate_expiry_timestamp_seconds{certificate=\"server\",pod=\"a\"}", "866400x150")],
    },
    Trial {
        alert: "SesameUpstreamErrors",
        firing: &[
            (
                "envoy_cluster_upstream_rq_xx{envoy_cluster_name=\"shop_web_80\",envoy_response_code_class=\"5\"}",
                "0+60x40",
            ),
            (
                "envoy_cluster_upstream_rq_xx{envoy_cluster_name=\"shop_web_80\",envoy_response_code_class=\"2\"}",
                "0+60x40",
            ),
        ],
        after: "30m",
        labels: &[("envoy_cluster_name", "shop_web_80")],
        summary: "50% of the requests to shop_web_80 fail",
        // Half of one request a minute.
        quiet: &[
            (
                "envoy_cluster_upstream_rq_xx{envoy_cluster_name=\"shop_web_80\",envoy_response_code_class=\"5\"}",
                "0+1x40",
            ),
            (
                "envoy_cluster_upstream_rq_xx{envoy_cluster_name=\"shop_web_80\",envoy_response_code_class=\"2\"}",
                "0+1x40",
            ),
        ],
    },
];

fn promtool(words: &[&str]) {
    let output = Command::new(parts::program("promtool").unwrap()).args(words).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "promtool {words:?}: {said}");
}

fn rules() -> String {
    crate::root().join("deploy/monitoring/sesame.rules.yaml").to_str().unwrap().to_owned()
}

#[test]
fn prometheus_accepts_the_rules_and_the_queries_of_all_panels() {
    promtool(&["check", "rules", "--lint=all", "--lint-fatal", &rules()]);
    let mut recorded = Vec::new();
    for (name, dashboard) in dashboards::all() {
        for panel in dashboard["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().unwrap() {
                let expr =
                    target["expr"].as_str().unwrap().replace("$__rate_interval", "5m").replace("$upstream", ".*");
                let record = format!("panel:{}:{}", name.replace('-', "_"), recorded.len());
                recorded.push(json!({ "record": record, "expr": expr }));
            }
        }
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let groups = json!({ "groups": [{ "name": "panels", "rules": recorded }] });
    std::fs::write(file.path(), groups.to_string()).unwrap();
    promtool(&["check", "rules", file.path().to_str().unwrap()]);
}

#[test]
fn every_alert_fires_when_it_should_and_not_otherwise() {
    let all: Vec<alerts::Alert> = alerts::all().into_iter().flat_map(|(_, alerts)| alerts).collect();
    let mut tests = Vec::new();
    for alert in &all {
        let trial = TRIALS.iter().find(|trial| trial.alert == alert.name);
        let trial = trial.unwrap_or_else(|| panic!("{} is not tried", alert.name));
        let mut labels = json!({ "severity": alert.severity });
        for (name, value) in trial.labels {
            labels[*name] = (*value).into();
        }
        let annotations = json!({ "summary": trial.summary, "description": alert.description });
        let fired = json!([{ "exp_labels": labels, "exp_annotations": annotations }]);
        for (series, expected) in [(trial.firing, fired), (trial.quiet, json!([]))] {
            let series: Vec<Value> =
                series.iter().map(|(series, values)| json!({ "series": series, "values": values })).collect();
            let asked = json!([{ "eval_time": trial.after, "alertname": alert.name, "exp_alerts": expected }]);
            tests.push(json!({ "interval": "1m", "input_series": series, "alert_rule_test": asked }));
        }
    }
    assert_eq!(all.len(), TRIALS.len());
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    let text = json!({ "rule_files": [rules()], "evaluation_interval": "1m", "tests": tests });
    std::fs::write(file.path(), text.to_string()).unwrap();
    promtool(&["test", "rules", file.path().to_str().unwrap()]);
}
