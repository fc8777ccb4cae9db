//! The series that the dashboards and alerts in `deploy/monitoring` name.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

/// Labels that begin as metrics do.
const LABELS: [&str; 3] = ["envoy_cluster_name", "envoy_http_conn_manager_prefix", "envoy_response_code_class"];

/// All of them.
pub fn series() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/monitoring");
    let mut exprs = Vec::new();
    for entry in std::fs::read_dir(folder.join("dashboards")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        collect(&serde_json::from_str(&text).unwrap(), &mut exprs);
    }
    let rules = std::fs::read_to_string(folder.join("sesame.rules.yaml")).unwrap();
    collect(&serde_saphyr::from_str(&rules).unwrap(), &mut exprs);
    assert!(exprs.len() > 50, "{exprs:?}");
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = exprs.iter().flat_map(|expr| expr.split(|c| !is_word(c)));
    let of_ours = |word: &&str| ["sesame_", "envoy_", "process_"].iter().any(|prefix| word.starts_with(prefix));
    words.filter(of_ours).filter(|word| !LABELS.contains(word)).map(str::to_owned).collect()
}

/// The queries in a document, wherever they stand.
fn collect(value: &Value, exprs: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str() {
                    Some(text) if ["expr", "query"].contains(&key.as_str()) => exprs.push(text.to_owned()),
                    _ => collect(value, exprs),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, exprs)),
        _ => {}
    }
}

/// The names of the samples on a page.
pub fn samples(page: &str) -> BTreeSet<String> {
    let lines = page.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.filter_map(|line| line.split(['{', ' ']).next().map(str::to_owned)).collect()
}
