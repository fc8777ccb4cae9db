//! The dashboards: each a list of panels, two beside each other.

use serde_json::{Value, json};

/// One panel.
struct Panel {
    title: &'static str,
    /// `short`, `s`, `bytes`, `reqps`, `percentunit`, `cores`.
    unit: &'static str,
    /// `timeseries` or `stat`.
    form: &'static str,
    /// What is asked, and how each series is called.
    queries: &'static [(&'static str, &'static str)],
}

const fn graph(title: &'static str, unit: &'static str, queries: &'static [(&'static str, &'static str)]) -> Panel {
    Panel { title, unit, form: "timeseries", queries }
}

const fn stat(title: &'static str, unit: &'static str, queries: &'static [(&'static str, &'static str)]) -> Panel {
    Panel { title, unit, form: "stat", queries }
}

const TIME_TO_PUBLISH: Panel = graph(
    "Time to publish a change",
    "s",
    &[
        ("histogram_quantile(0.5, sum by (le) (rate(sesame_build_seconds_bucket[$__rate_interval])))", "p50"),
        ("histogram_quantile(0.99, sum by (le) (rate(sesame_build_seconds_bucket[$__rate_interval])))", "p99"),
    ],
);

const OVERVIEW: &[Panel] = &[
    stat("Controllers ready", "short", &[("sum(sesame_ready)", "ready")]),
    stat("Leaders", "short", &[("sum(sesame_leader)", "leaders")]),
    stat("Proxies", "short", &[("sum by (state) (sesame_proxies)", "{{state}}")]),
    stat("Verdicts on objects", "short", &[("max by (severity) (sesame_verdicts)", "{{severity}}")]),
    graph(
        "Requests by class",
        "reqps",
        &[(
            "sum by (envoy_response_code_class) (rate(envoy_http_downstream_rq_xx{envoy_http_conn_manager_prefix=~\"ingress_.*\"}[$__rate_interval]))",
            "{{envoy_response_code_class}}xx",
        )],
    ),
    graph(
        "Share of requests that fail (5xx)",
        "percentunit",
        &[(
            "sum(rate(envoy_http_downstream_rq_xx{envoy_http_conn_manager_prefix=~\"ingress_.*\",envoy_response_code_class=\"5\"}[$__rate_interval])) / sum(rate(envoy_http_downstream_rq_xx{envoy_http_conn_manager_prefix=~\"ingress_.*\"}[$__rate_interval]))",
            "5xx",
        )],
    ),
    graph(
        "Time of requests",
        "ms",
        &[
            (
                "histogram_quantile(0.5, sum by (le) (rate(envoy_http_downstream_rq_time_bucket{envoy_http_conn_manager_prefix=~\"ingress_.*\"}[$__rate_interval])))",
                "p50",
            ),
            (
                "histogram_quantile(0.99, sum by (le) (rate(envoy_http_downstream_rq_time_bucket{envoy_http_conn_manager_prefix=~\"ingress_.*\"}[$__rate_interval])))",
                "p99",
            ),
        ],
    ),
    graph(
        "Open connections",
        "short",
        &[(
            "sum by (envoy_http_conn_manager_prefix) (envoy_http_downstream_cx_active{envoy_http_conn_manager_prefix=~\"ingress_.*\"})",
            "{{envoy_http_conn_manager_prefix}}",
        )],
    ),
    TIME_TO_PUBLISH,
    graph(
        "Time to the first certificate that expires",
        "s",
        &[
            ("min(sesame_certificate_expiry_timestamp_seconds) - time()", "hosts"),
            ("min(sesame_xds_certificate_expiry_timestamp_seconds) - time()", "xDS"),
        ],
    ),
];

const CONTROLLER: &[Panel] = &[
    graph("Objects", "short", &[("max by (kind) (sesame_objects)", "{{kind}}")]),
    graph("Batches", "ops", &[("sum by (pod) (rate(sesame_batches_total[$__rate_interval]))", "{{pod}}")]),
    TIME_TO_PUBLISH,
    graph(
        "Recomputed keys",
        "ops",
        &[("topk(10, sum by (table) (rate(sesame_recomputed_keys_total[$__rate_interval])))", "{{table}}")],
    ),
    graph("Rows that could not be computed", "short", &[("max by (pod) (sesame_table_failed_rows) > 0", "{{pod}}")]),
    graph(
        "Verdicts by namespace and code",
        "short",
        &[(
            "topk(15, max by (exported_namespace, kind, code) (sesame_object_verdicts))",
            "{{exported_namespace}} {{kind}} {{code}}",
        )],
    ),
    graph(
        "Status writes",
        "ops",
        &[("sum by (kind, result) (rate(sesame_status_writes_total[$__rate_interval]))", "{{kind}} {{result}}")],
    ),
    graph(
        "Status lag and backlog",
        "s",
        &[
            (
                "histogram_quantile(0.99, sum by (le) (rate(sesame_status_lag_seconds_bucket[$__rate_interval])))",
                "lag p99",
            ),
            ("max(sesame_status_behind)", "objects behind"),
        ],
    ),
    graph(
        "Age of the last watch event",
        "s",
        &[("time() - min by (kind) (sesame_source_last_event_timestamp_seconds)", "{{kind}}")],
    ),
    graph("API server", "short", &[("sesame_apiserver_connected", "{{pod}}")]),
    graph(
        "CPU",
        "cores",
        &[("rate(process_cpu_seconds_total[$__rate_interval]) and on (instance) sesame_build_info", "{{pod}}")],
    ),
    graph("Memory", "bytes", &[("process_resident_memory_bytes and on (instance) sesame_build_info", "{{pod}}")]),
    graph(
        "Disk cache",
        "bytes",
        &[("sesame_disk_cache_size_bytes", "{{pod}} size"), ("sesame_disk_cache_enabled", "{{pod}} on")],
    ),
    graph(
        "Key sets (JWKS)",
        "short",
        &[
            ("sum by (result) (rate(sesame_jwks_fetches_total[$__rate_interval]))", "{{result}}"),
            ("max(sesame_jwks_servers_without_keys)", "servers without keys"),
        ],
    ),
];

const FLEETS: &[Panel] = &[
    graph("Proxies by fleet and state", "short", &[("sum by (fleet, state) (sesame_proxies)", "{{fleet}} {{state}}")]),
    graph(
        "Proxies that are not in step",
        "short",
        &[("sum by (fleet, state) (sesame_proxies{state!=\"in_step\"}) > 0", "{{fleet}} {{state}}")],
    ),
    graph("NACKs", "ops", &[("sum by (type) (rate(sesame_xds_nacks_total[$__rate_interval]))", "{{type}}")]),
    graph(
        "Resources found to be the cause",
        "ops",
        &[("sum by (type) (rate(sesame_xds_rejections_total[$__rate_interval]))", "{{type}}")],
    ),
    graph("Resources not acknowledged", "short", &[("sum by (type) (sesame_xds_pending)", "{{type}}")]),
    graph(
        "Time to an ACK (p99)",
        "s",
        &[(
            "histogram_quantile(0.99, sum by (type, le) (rate(sesame_xds_ack_seconds_bucket[$__rate_interval])))",
            "{{type}}",
        )],
    ),
    graph(
        "Bytes sent",
        "Bps",
        &[("sum by (type) (rate(sesame_xds_response_bytes_total[$__rate_interval]))", "{{type}}")],
    ),
    graph(
        "Responses sent",
        "ops",
        &[("sum by (type) (rate(sesame_xds_responses_total[$__rate_interval]))", "{{type}}")],
    ),
    graph("Streams", "short", &[("sum by (pod, variant) (sesame_xds_streams)", "{{pod}} {{variant}}")]),
    graph(
        "Connections",
        "short",
        &[("sesame_xds_connections", "{{pod}}"), ("sesame_xds_handshakes", "{{pod}} not authenticated")],
    ),
    graph("Connected to a controller, as proxies say", "short", &[("envoy_control_plane_connected_state", "{{pod}}")]),
    graph("Listeners of proxies", "short", &[("envoy_listener_manager_total_listeners_active", "{{pod}}")]),
    graph("Memory of proxies", "bytes", &[("envoy_server_memory_allocated", "{{pod}}")]),
    graph("Uptime of proxies", "s", &[("envoy_server_uptime", "{{pod}}")]),
];

const UPSTREAMS: &[Panel] = &[
    graph(
        "Requests (top 15)",
        "reqps",
        &[(
            "topk(15, sum by (envoy_cluster_name) (rate(envoy_cluster_upstream_rq_xx{envoy_cluster_name=~\"$upstream\"}[$__rate_interval])))",
            "{{envoy_cluster_name}}",
        )],
    ),
    graph(
        "Share of 5xx (top 15)",
        "percentunit",
        &[(
            "topk(15, sum by (envoy_cluster_name) (rate(envoy_cluster_upstream_rq_xx{envoy_cluster_name=~\"$upstream\",envoy_response_code_class=\"5\"}[$__rate_interval])) / sum by (envoy_cluster_name) (rate(envoy_cluster_upstream_rq_xx{envoy_cluster_name=~\"$upstream\"}[$__rate_interval])))",
            "{{envoy_cluster_name}}",
        )],
    ),
    graph(
        "Time of requests, p99 (top 15)",
        "ms",
        &[(
            "topk(15, histogram_quantile(0.99, sum by (envoy_cluster_name, le) (rate(envoy_cluster_upstream_rq_time_bucket{envoy_cluster_name=~\"$upstream\"}[$__rate_interval]))))",
            "{{envoy_cluster_name}}",
        )],
    ),
    graph(
        "Requests under way",
        "short",
        &[(
            "topk(15, sum by (envoy_cluster_name) (envoy_cluster_upstream_rq_active{envoy_cluster_name=~\"$upstream\"}))",
            "{{envoy_cluster_name}}",
        )],
    ),
    graph(
        "Connections",
        "short",
        &[(
            "topk(15, sum by (envoy_cluster_name) (envoy_cluster_upstream_cx_active{envoy_cluster_name=~\"$upstream\"}))",
            "{{envoy_cluster_name}}",
        )],
    ),
    graph(
        "Connections that failed",
        "ops",
        &[(
            "topk(15, sum by (envoy_cluster_name) (rate(envoy_cluster_upstream_cx_connect_fail{envoy_cluster_name=~\"$upstream\"}[$__rate_interval])))",
            "{{envoy_cluster_name}}",
        )],
    ),
    graph(
        "Timeouts",
        "ops",
        &[(
            "topk(15, sum by (envoy_cluster_name) (rate(envoy_cluster_upstream_rq_timeout{envoy_cluster_name=~\"$upstream\"}[$__rate_interval])))",
            "{{envoy_cluster_name}}",
        )],
    ),
    graph(
        "Retries, and requests refused by a circuit breaker",
        "ops",
        &[
            (
                "topk(15, sum by (envoy_cluster_name) (rate(envoy_cluster_upstream_rq_retry{envoy_cluster_name=~\"$upstream\"}[$__rate_interval])))",
                "{{envoy_cluster_name}} retries",
            ),
            (
                "topk(15, sum by (envoy_cluster_name) (rate(envoy_cluster_upstream_rq_pending_overflow{envoy_cluster_name=~\"$upstream\"}[$__rate_interval])))",
                "{{envoy_cluster_name}} refused",
            ),
        ],
    ),
];

/// Every dashboard, by its name as a file.
pub fn all() -> [(&'static str, Value); 4] {
    let upstream = json!({
        "name": "upstream", "label": "Service", "type": "query", "includeAll": true, "allValue": ".*", "multi": true, "refresh": 2,
        "current": { "text": "All", "value": "$__all" }, "datasource": source(),
        "query": "label_values(envoy_cluster_upstream_rq_xx, envoy_cluster_name)",
    });
    [
        ("sesame-overview", dashboard("sesame-overview", "Sesame: overview", OVERVIEW, None)),
        ("sesame-controller", dashboard("sesame-controller", "Sesame: controller", CONTROLLER, None)),
        ("sesame-fleets", dashboard("sesame-fleets", "Sesame: fleets and NACKs", FLEETS, None)),
        ("sesame-upstreams", dashboard("sesame-upstreams", "Sesame: upstreams", UPSTREAMS, Some(upstream))),
    ]
}

fn source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

fn dashboard(uid: &str, title: &str, panels: &[Panel], variable: Option<Value>) -> Value {
    let datasource = json!({ "name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": {} });
    let variables: Vec<Value> = [Some(datasource), variable].into_iter().flatten().collect();
    let (mut placed, mut x, mut y) = (Vec::new(), 0, 0);
    for (index, panel) in panels.iter().enumerate() {
        let (width, height) = if panel.form == "stat" { (6, 5) } else { (12, 8) };
        placed.push(of_panel(index + 1, panel, json!({ "x": x, "y": y, "w": width, "h": height })));
        x += width;
        if x == 24 {
            (x, y) = (0, y + height);
        }
    }
    json!({
        "uid": uid,
        "title": title,
        "tags": ["sesame"],
        "schemaVersion": 39,
        "editable": true,
        "refresh": "30s",
        "time": { "from": "now-1h", "to": "now" },
        "templating": { "list": variables },
        "links": [{ "title": "Sesame", "type": "dashboards", "tags": ["sesame"], "asDropdown": true, "includeVars": true, "keepTime": true }],
        "panels": placed,
    })
}

fn of_panel(id: usize, panel: &Panel, place: Value) -> Value {
    let targets = panel.queries.iter().enumerate().map(|(index, (expr, legend))| {
        json!({ "refId": format!("Q{index}"), "datasource": source(), "expr": expr, "legendFormat": legend })
    });
    json!({
        "id": id,
        "title": panel.title,
        "type": panel.form,
        "gridPos": place,
        "datasource": source(),
        "fieldConfig": { "defaults": { "unit": panel.unit, "min": 0 }, "overrides": [] },
        "targets": targets.collect::<Vec<_>>(),
    })
}
