//! The alerts: what is asked, for how long it must be so, and what to do.

use serde_json::{Value, json};

/// One alert.
pub struct Alert {
    /// Its name.
    pub name: &'static str,
    /// What is asked of Prometheus.
    pub expr: &'static str,
    /// For how long.
    pub lasting: &'static str,
    /// `critical`: requests fail, or soon will; `warning`: somebody should look.
    pub severity: &'static str,
    /// What is wrong, in one line.
    pub summary: &'static str,
    /// What it means and what to do.
    pub description: &'static str,
}

macro_rules! alerts {
    ($($group:literal { $($name:ident $severity:ident $lasting:literal $expr:literal $summary:literal $description:literal;)* })*) => {
        /// All of them, by group.
        pub fn all() -> Vec<(&'static str, Vec<Alert>)> {
            vec![$(($group, vec![$(Alert {
                name: stringify!($name),
                expr: $expr,
                lasting: $lasting,
                severity: stringify!($severity),
                summary: $summary,
                description: $description,
            }),*])),*]
        }
    };
}

alerts! {
    "sesame-controller" {
        SesameDown critical "5m"
            "absent(sesame_build_info)"
            "No controller is scraped"
            "Proxies keep their configuration, and nothing changes any more: no endpoint, no certificate, no route. `kubectl get pods` shows why the pods do not run; if they do, Prometheus does not scrape them.";
        SesameNotReady warning "5m"
            "sesame_ready == 0"
            "Controller {{ $labels.pod }} is not ready"
            "It serves no proxies. `sesame status` says what it waits for: objects that cannot be listed, a watch that stalls, a certificate of the xDS server that has expired, a first build that is too large to be sent.";
        SesameApiServerUnreachable warning "5m"
            "sesame_apiserver_connected == 0"
            "Controller {{ $labels.pod }} cannot reach the API server"
            "Proxies keep their configuration, and nothing changes until the API server answers.";
        SesameNoLeader critical "5m"
            "sum by (namespace) (sesame_leader) == 0"
            "No controller is the leader"
            "Status, events and addresses are not written, and proxies of Gateways are not created. Traffic is not affected. Check the Lease and the permission to update it.";
        SesameTwoLeaders critical "5m"
            "sum by (namespace) (sesame_leader) > 1"
            "{{ $value }} controllers act as the leader"
            "They write the same status in turn. Check that all replicas use the same Lease (--leader-election-resource-name), and none --disable-leader-election.";
        SesameConfigurationRejected warning "5m"
            "sesame_configuration_valid == 0"
            "Controller {{ $labels.pod }} rejects its configuration"
            "The previous configuration stays in effect. The log names the key that is wrong (SES1027).";
        SesameBuildSlow warning "10m"
            "histogram_quantile(0.99, sum by (namespace, le) (rate(sesame_build_seconds_bucket[10m]))) > 1"
            "Changes take {{ $value | humanizeDuration }} to be published (p99)"
            "An edit usually takes milliseconds. `/debug/batches` shows which tables were recomputed; the CPU of the controller may be limited.";
        SesameStatusLag warning "15m"
            "histogram_quantile(0.99, sum by (namespace, le) (rate(sesame_status_lag_seconds_bucket[10m]))) > 60"
            "Status is written {{ $value | humanizeDuration }} late (p99)"
            "The API server is slow or limits the controller, or thousands of objects changed at once. Traffic is not affected.";
    }
    "sesame-proxies" {
        SesameProxyRejects critical "1m"
            "sum by (namespace, fleet) (sesame_proxies{state=\"rejected\"}) > 0"
            "{{ $value }} proxies of fleet {{ $labels.fleet }} reject resources"
            "They keep the last version that they accepted; the object that the resource comes from has an error in its status. `sesame status` shows Envoy's error message.";
        SesameNacks warning "0m"
            "sum by (namespace, type) (increase(sesame_xds_nacks_total[10m])) > 0"
            "Proxies rejected {{ $labels.type }} responses"
            "Sesame finds the resource that is the cause, withholds it and reports an error in the status of its object. The log and `sesame status` show Envoy's error message.";
        SesameProxyStuck critical "5m"
            "sum by (namespace, fleet) (sesame_proxies{state=\"stuck\"}) > 0"
            "{{ $value }} proxies of fleet {{ $labels.fleet }} do not acknowledge their configuration"
            "They serve an older one. `sesame status` says which, and what they wait for; a proxy without CPU or memory is the usual cause.";
        SesameProxyStale critical "5m"
            "envoy_control_plane_connected_state == 0"
            "Proxy {{ $labels.pod }} has no connection to a controller"
            "It serves what it had. Check its certificates (`sesame certs`), the NetworkPolicy, and that the Service of the controller has endpoints.";
    }
    "sesame-certificates" {
        SesameCertificateExpires warning "1h"
            "min without (pod, instance, endpoint, container) (sesame_certificate_expiry_timestamp_seconds) - time() < 7 * 86400"
            "The certificate in Secret {{ $labels.secret }} expires in {{ $value | humanizeDuration }}"
            "It has not been renewed. Check the issuer, such as cert-manager; `sesame certs` lists the hosts that use it.";
        SesameXdsCertificateExpires critical "1h"
            "min by (namespace, certificate) (sesame_xds_certificate_expiry_timestamp_seconds) - time() < 7 * 86400"
            "The {{ $labels.certificate }} certificate of xDS expires in {{ $value | humanizeDuration }}"
            "After that no proxy can connect, and nothing changes any more. docs/certificates.md says how to renew it.";
    }
    "sesame-upstreams" {
        SesameUpstreamErrors warning "10m"
            "sum by (envoy_cluster_name) (rate(envoy_cluster_upstream_rq_xx{envoy_response_code_class=\"5\"}[5m])) / sum by (envoy_cluster_name) (rate(envoy_cluster_upstream_rq_xx[5m])) > 0.05 and sum by (envoy_cluster_name) (rate(envoy_cluster_upstream_rq_xx[5m])) > 1"
            "{{ $value | humanizePercentage }} of the requests to {{ $labels.envoy_cluster_name }} fail"
            "The name is NAMESPACE_SERVICE_PORT: the Service that answers 5xx. The access log has the object whose route led there (origin_kind, origin_namespace, origin_name).";
    }
}

/// The groups of a rule file.
pub fn groups() -> Value {
    let rule = |alert: &Alert| {
        json!({
            "alert": alert.name,
            "expr": alert.expr,
            "for": alert.lasting,
            "labels": { "severity": alert.severity },
            "annotations": { "summary": alert.summary, "description": alert.description },
        })
    };
    let group = |(name, alerts): &(&str, Vec<Alert>)| json!({ "name": name, "rules": alerts.iter().map(rule).collect::<Vec<_>>() });
    Value::from(all().iter().map(group).collect::<Vec<_>>())
}

/// The page about them.
pub fn page() -> String {
    let mut out = "# Dashboards and alerts\n\n\
        Made by `cargo xtask deploy`; changes belong in xtask/src/deploy/monitoring. `sesame.rules.yaml` is a rule file of Prometheus, \
        `dashboards/` has dashboards of Grafana. `monitors.rules` and `monitors.dashboards` of the chart create both in the cluster.\n\n\
        | alert | severity | after | means |\n|---|---|---|---|\n"
        .to_owned();
    for alert in all().into_iter().flat_map(|(_, alerts)| alerts) {
        let Alert { name, lasting, severity, description, .. } = alert;
        out += &format!("| `{name}` | {severity} | {lasting} | {description} |\n");
    }
    out
}
