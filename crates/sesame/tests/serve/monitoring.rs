//! The series and labels that the dashboards and alerts in `deploy/monitoring` name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

/// Labels that Prometheus adds to what it scrapes. One that a series has already is called `exported_` and its name.
const SCRAPED: [&str; 6] = ["container", "endpoint", "instance", "job", "namespace", "pod"];

/// The names of the samples on pages, each with the names of its labels.
pub type Samples = BTreeMap<String, BTreeSet<String>>;

/// The queries of all panels, alerts and variables.
pub fn queries() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/monitoring");
    let mut exprs = Vec::new();
    for entry in std::fs::read_dir(folder.join("dashboards")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        collect(&serde_json::from_str(&text).unwrap(), &mut exprs);
    }
    let rules = std::fs::read_to_string(folder.join("sesame.rules.yaml")).unwrap();
    collect(&serde_saphyr::from_str(&rules).unwrap(), &mut exprs);
    assert!(exprs.len() > 50, "{exprs:?}");
    exprs
}

/// The series that a query names and no page has, and the labels that none of its series has.
pub fn missing(query: &str, samples: &Samples) -> Vec<String> {
    let (series, labels) = (series(query), labels(query));
    let mut known: BTreeSet<String> = SCRAPED.map(str::to_owned).into();
    for own in series.iter().filter_map(|name| samples.get(name)).flatten() {
        known.extend([own.clone(), format!("exported_{own}")]);
    }
    let series = series.into_iter().filter(|name| !samples.contains_key(name));
    let labels = labels.into_iter().filter(|label| !known.contains(label));
    series.chain(labels).map(|name| format!("{name} in {query}")).collect()
}

fn series(query: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let of_ours = |word: &&str| ["sesame_", "envoy_", "process_"].iter().any(|prefix| word.starts_with(prefix));
    // Some labels begin as metrics do.
    let labels = labels(query);
    let words = query.split(|c| !is_word(c)).filter(of_ours).map(str::to_owned);
    words.filter(|word| !labels.contains(word)).collect()
}

/// The labels in matchers, those that series are grouped by or joined on, and the one that a variable has the values of.
fn labels(query: &str) -> BTreeSet<String> {
    let until = |text: &str, end: char| text.split(end).next().unwrap_or_default().to_owned();
    let mut labels = BTreeSet::new();
    for matchers in query.split('{').skip(1).map(|rest| until(rest, '}')) {
        let matchers = matchers.split(',').filter_map(|matcher| matcher.split_once(['=', '!']));
        labels.extend(matchers.map(|(label, _)| label.trim().to_owned()));
    }
    for keyword in ["by (", "without (", "on ("] {
        for list in query.split(keyword).skip(1).map(|rest| until(rest, ')')) {
            labels.extend(list.split(',').map(|label| label.trim().to_owned()));
        }
    }
    let variable = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')')?.rsplit_once(','));
    labels.extend(variable.map(|(_, label)| label.trim().to_owned()));
    labels
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

/// The samples on a page.
pub fn samples(page: &str) -> Samples {
    let mut samples = Samples::new();
    for line in page.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        let own = samples.entry(name.to_owned()).or_default();
        let labels = line.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}')).map_or("", |(labels, _)| labels);
        // A label's name stands between the comma after the value before it and its own value.
        let pieces = labels.rsplit_once("=\"").map_or("", |(pieces, _)| pieces).split("=\"");
        own.extend(pieces.filter_map(|piece| piece.rsplit(',').next()).filter(|it| !it.is_empty()).map(str::to_owned));
    }
    samples
}

#[test]
fn a_series_and_a_label_that_nobody_shows_are_missing() {
    let page = "# HELP sesame_a A.\nsesame_a_total{kind=\"x, y\",namespace=\"z\"} 1\nsesame_b 2\n";
    let samples = samples(page);
    let missing = |query: &str| missing(query, &samples);
    for query in [
        "sum by (pod, kind) (rate(sesame_a_total{kind!=\"x\"}[5m])) and on (instance) sesame_b",
        "max without (exported_namespace) (sesame_a_total{namespace=~\".*\",kind=\"y\"})",
        "label_values(sesame_a_total, kind)",
        "prometheus",
    ] {
        assert_eq!(missing(query), [""; 0]);
    }
    for (query, expected) in [
        ("sesame_c > 0", "sesame_c"),
        ("sesame_a_total{kinds=\"x\"}", "kinds"),
        ("sum by (kind, king) (sesame_a_total)", "king"),
        ("sum by (kind) (sesame_b)", "kind"),
        ("label_values(sesame_a_total, name)", "name"),
    ] {
        assert_eq!(missing(query), [format!("{expected} in {query}")]);
    }
}
