//! Who reaches the controller, and who scrapes what.

use manifest::{Document, Field, Node, Piece, When, field, list, map, setting, text};
use serde_json::json;

use super::controller::{METRICS_PORT, XDS_PORT};
use super::pods::metadata;

/// NetworkPolicy, ServiceMonitor, PodMonitor.
pub fn documents() -> Vec<Document> {
    let monitor = |kind, name: &str, app: &str, endpoints, path| {
        monitor(kind, name, app, endpoints, path).when(When::Set("monitors.enabled"))
    };
    let envoys = monitor("PodMonitor", "envoy", "envoy", "podMetricsEndpoints", "/stats/prometheus");
    vec![
        policy(),
        monitor("ServiceMonitor", "sesame", "sesame", "endpoints", "/metrics"),
        Document {
            when: Some(When::All(vec![When::Set("monitors.enabled"), When::Differs("envoy.kind", "none")])),
            ..envoys
        },
    ]
}

fn policy() -> Document {
    let pods = |app: &str| Node::from(json!({ "podSelector": { "matchLabels": { "app": app } } }));
    let of_gateways = map(vec![
        field("namespaceSelector", json!({})),
        field(
            "podSelector",
            map(vec![field(
                "matchLabels",
                map(vec![
                    field("app.kubernetes.io/managed-by", "sesame"),
                    field("projectsesame.io/installation", text(vec![Piece::Namespace])),
                ]),
            )]),
        ),
    ]);
    let port = |port: u32| json!([{ "port": port, "protocol": "TCP" }]);
    let xds = map(vec![
        field("from", list(vec![pods("envoy").into(), pods("sesame").into(), of_gateways.into()])),
        field("ports", port(XDS_PORT)),
    ]);
    let metrics = map(vec![field("ports", port(METRICS_PORT)).about("Metrics and probes.")]);
    let spec: Vec<Field> = vec![
        field("podSelector", json!({ "matchLabels": { "app": "sesame" } })),
        field("policyTypes", json!(["Ingress"])),
        field("ingress", list(vec![xds.into(), metrics.into()])),
    ];
    Document::new(
        "Only proxies and the other replicas reach the xDS server; those of Gateways are in any namespace. Whoever else does must\n\
         still show a certificate of our CA or a token of a Gateway's ServiceAccount, but need not be let near.",
        vec![
            field("apiVersion", "networking.k8s.io/v1"),
            field("kind", "NetworkPolicy"),
            field("metadata", metadata("sesame".into(), None)),
            field("spec", map(spec)),
        ],
    )
    .when(When::Set("networkPolicy.enabled"))
}

fn monitor(kind: &str, name: &str, app: &str, endpoints: &str, path: &str) -> Document {
    let metadata = map(vec![
        field("name", name),
        field("namespace", text(vec![Piece::Namespace])),
        field(
            "labels",
            map(vec![field("app", app), Field::entries("commonLabels"), Field::entries("monitors.labels")]),
        ),
    ]);
    let endpoint =
        map(vec![field("port", "metrics"), field("path", path), field("interval", setting("monitors.interval"))]);
    Document::new(
        "",
        vec![
            field("apiVersion", "monitoring.coreos.com/v1"),
            field("kind", kind),
            field("metadata", metadata),
            field(
                "spec",
                map(vec![
                    field("selector", json!({ "matchLabels": { "app": app } })),
                    field(endpoints, list(vec![endpoint.into()])),
                ]),
            ),
        ],
    )
}
