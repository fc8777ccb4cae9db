//! What Prometheus and Grafana are given: alerts and dashboards, from one description.
//!
//! In: the tables of [`alerts`] and [`dashboards`]. Out: `deploy/monitoring`, with a rule file, a dashboard in each JSON file and a page
//! about the alerts; and, on request, a PrometheusRule and ConfigMaps of the chart. Tests let `promtool` check and try the rules; a
//! test of the program compares every series that is named here with what running parts show.

mod alerts;
mod dashboards;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use manifest::{Document, Field, Piece, When, field, map, text};
use serde_json::json;

use super::HEAD;

/// Every file below `deploy/monitoring`, with its text.
pub fn files() -> BTreeMap<String, String> {
    let mut rules = HEAD.to_owned();
    manifest::value(&json!({ "groups": alerts::groups() }), 0, &mut rules);
    let mut files = BTreeMap::from([
        ("monitoring/sesame.rules.yaml".to_owned(), rules),
        ("monitoring/README.md".to_owned(), alerts::page()),
    ]);
    for (name, dashboard) in dashboards::all() {
        files.insert(format!("monitoring/dashboards/{name}.json"), format!("{dashboard:#}\n"));
    }
    files
}

/// The same as objects: a PrometheusRule, and a ConfigMap for each dashboard.
pub fn documents() -> Vec<Document> {
    let metadata = |name: String, labels: &'static str| {
        map(vec![
            field("name", name),
            field("namespace", text(vec![Piece::Namespace])),
            field("labels", map(vec![field("app", "sesame"), Field::entries("commonLabels"), Field::entries(labels)])),
        ])
    };
    let rules = Document::new(
        "",
        vec![
            field("apiVersion", "monitoring.coreos.com/v1"),
            field("kind", "PrometheusRule"),
            field("metadata", metadata("sesame".to_owned(), "monitors.labels")),
            field("spec", json!({ "groups": alerts::groups() })),
        ],
    );
    let mut documents = vec![rules.when(When::Set("monitors.rules"))];
    for (name, dashboard) in dashboards::all() {
        let document = Document::new(
            "",
            vec![
                field("apiVersion", "v1"),
                field("kind", "ConfigMap"),
                field("metadata", metadata(format!("{name}-dashboard"), "monitors.dashboardLabels")),
                field("data", json!({ format!("{name}.json"): dashboard.to_string() })),
            ],
        );
        documents.push(document.when(When::Set("monitors.dashboards")));
    }
    documents
}
