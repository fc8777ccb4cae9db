//! As much of SARIF 2.1.0 as `sesame lint` uses: which properties its objects have and must have, and how they refer to each other;
//! and what GitHub requires beyond it, a file for each result.

use serde_json::Value;

/// An object: its name, the properties that it may have, those that it must have, and the properties that are objects, or lists of
/// them, in turn.
type Object = (&'static str, Names, Names, &'static [(&'static str, &'static str)]);
type Names = &'static [&'static str];

/// The objects of a log.
const OBJECTS: &[Object] = &[
    ("log", &["$schema", "version", "runs"], &["version", "runs"], &[("runs", "run")]),
    (
        "run",
        &["tool", "invocations", "columnKind", "results"],
        &["tool"],
        &[("tool", "tool"), ("invocations", "invocation"), ("results", "result")],
    ),
    ("tool", &["driver"], &["driver"], &[("driver", "toolComponent")]),
    (
        "toolComponent",
        &["name", "semanticVersion", "rules", "notifications"],
        &["name"],
        &[("rules", "reportingDescriptor"), ("notifications", "reportingDescriptor")],
    ),
    (
        "reportingDescriptor",
        &["id", "name", "shortDescription", "help", "defaultConfiguration"],
        &["id"],
        &[("shortDescription", "message"), ("help", "message"), ("defaultConfiguration", "reportingConfiguration")],
    ),
    ("reportingConfiguration", &["level"], &[], &[]),
    (
        "invocation",
        &["executionSuccessful", "toolExecutionNotifications"],
        &["executionSuccessful"],
        &[("toolExecutionNotifications", "notification")],
    ),
    (
        "notification",
        &["descriptor", "level", "message", "locations"],
        &["message"],
        &[("message", "message"), ("descriptor", "reportingDescriptorReference"), ("locations", "location")],
    ),
    ("reportingDescriptorReference", &["id", "index"], &[], &[]),
    (
        "result",
        &["ruleId", "ruleIndex", "level", "message", "locations", "relatedLocations"],
        &["message"],
        &[("message", "message"), ("locations", "location"), ("relatedLocations", "location")],
    ),
    ("message", &["text"], &["text"], &[]),
    (
        "location",
        &["id", "message", "physicalLocation", "logicalLocations"],
        &[],
        &[("message", "message"), ("physicalLocation", "physicalLocation"), ("logicalLocations", "logicalLocation")],
    ),
    ("logicalLocation", &["fullyQualifiedName"], &[], &[]),
    (
        "physicalLocation",
        &["artifactLocation", "region"],
        &["artifactLocation"],
        &[("artifactLocation", "artifactLocation"), ("region", "region")],
    ),
    ("artifactLocation", &["uri"], &["uri"], &[]),
    ("region", &["startLine", "startColumn", "endColumn"], &["startLine"], &[]),
];

/// Everything in a log that is not by the rules.
pub fn violations(log: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check("log", log, "$", &mut found);
    if log["version"] != "2.1.0" {
        found.push(format!("the version is {}", log["version"]));
    }
    for run in list(&log["runs"]) {
        let driver = &run["tool"]["driver"];
        if run["columnKind"] != "unicodeCodePoints" {
            found.push(format!("columns are counted as {}", run["columnKind"]));
        }
        for result in list(&run["results"]) {
            refers(&driver["rules"], &result["ruleIndex"], &result["ruleId"], &mut found);
            let in_file = |location: &Value| location["physicalLocation"]["artifactLocation"]["uri"].is_string();
            if !list(&result["locations"]).first().is_some_and(in_file) {
                found.push(format!("{} is in no file", result["ruleId"]));
            }
        }
        for notification in list(&run["invocations"]).iter().flat_map(|it| list(&it["toolExecutionNotifications"])) {
            let descriptor = &notification["descriptor"];
            refers(&driver["notifications"], &descriptor["index"], &descriptor["id"], &mut found);
        }
    }
    found
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Notes unless the descriptor at that index has that id.
fn refers(descriptors: &Value, index: &Value, id: &Value, found: &mut Vec<String>) {
    let descriptor = index.as_u64().and_then(|index| list(descriptors).get(usize::try_from(index).ok()?));
    if descriptor.is_none_or(|descriptor| descriptor["id"] != *id) {
        found.push(format!("{id} is not the descriptor at {index}"));
    }
}

fn check(object: &str, value: &Value, at: &str, found: &mut Vec<String>) {
    let (_, allowed, required, inner) = OBJECTS.iter().find(|(name, ..)| *name == object).expect("it is in the table");
    let Some(fields) = value.as_object() else { return found.push(format!("{at} is no object")) };
    found.extend(
        required.iter().filter(|name| !fields.contains_key(**name)).map(|name| format!("{at}.{name} is missing")),
    );
    for (name, value) in fields {
        let at = format!("{at}.{name}");
        if !allowed.contains(&&**name) {
            found.push(format!("{at} is no property of {object}"));
        }
        match (inner.iter().find(|(of, _)| of == name), value) {
            (Some((_, object)), Value::Array(list)) => {
                list.iter().enumerate().for_each(|(index, one)| check(object, one, &format!("{at}[{index}]"), found));
            }
            (Some((_, object)), one) => check(object, one, &at, found),
            (None, Value::Number(number)) => {
                // Lines and columns count from one, indexes from zero.
                let least = if ["index", "ruleIndex"].contains(&&**name) { 0 } else { 1 };
                if number.as_u64().is_none_or(|number| number < least) {
                    found.push(format!("{at} is {number}"));
                }
            }
            (None, Value::String(text)) => {
                let is_level = ["none", "note", "warning", "error"].contains(&&**text);
                if text.is_empty() || name == "level" && !is_level {
                    found.push(format!("{at} is {text:?}"));
                }
            }
            (None, Value::Bool(_)) => {}
            (None, other) => found.push(format!("{at} is {other}")),
        }
    }
    if fields.get("endColumn").is_some_and(|end| end.as_u64() < fields.get("startColumn").and_then(Value::as_u64)) {
        found.push(format!("{at} ends before it starts"));
    }
}
