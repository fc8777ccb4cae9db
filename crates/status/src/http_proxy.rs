//! What the status of an HTTPProxy is to say: whether it is valid, what is wrong with it, and where it is served.
//!
//! Pure: the object, the verdicts about it and the addresses in; what must be written out. The condition `Valid`, the types
//! and reasons of its errors and warnings, and `currentStatus` are Contour's; the messages are ours, and begin with the
//! code. All of it is one write. Conditions of others are not ours to say, so they are neither here nor touched.
//!
//! The time of a condition is left out where its status is new: whoever sends it puts the time in.

use crate::{
    address,
    statuses::Change,
    text::{bounded, cut},
};
use kinds::{
    HttpProxy,
    http_proxy::{DetailedCondition, HttpProxyStatus},
    ingress::LoadBalancerAddress,
};
use model::{Code, Severity, Verdict};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The condition that says whether the object is accepted.
pub const VALID: &str = "Valid";
/// The condition that says whether proxies have it.
pub const PROGRAMMED: &str = "Programmed";
/// The longest message of one type and reason: all of them together must fit into an object.
const LONGEST: usize = 8 * 1024;

/// What must be written so that the object says what it should, if anything. `programmed` is whether proxies have all of
/// it; nothing where that is not known, and then nothing new is said about it.
pub(crate) fn change(
    object: &HttpProxy,
    verdicts: Option<&[Verdict]>,
    addresses: &[LoadBalancerAddress],
    programmed: Option<bool>,
) -> Option<Change> {
    let nothing = HttpProxyStatus::default();
    let said = object.status.ok().unwrap_or(&nothing);
    let Some(verdicts) = verdicts else {
        return once_ours(said, addresses).then_some(Change::Withdraw);
    };
    let generation = object.meta.generation;
    let newer = |condition: &DetailedCondition| condition.observed_generation.is_some_and(|seen| seen > generation);
    if condition(said, VALID).is_some_and(newer) {
        // It was said about a later form of the object than we have seen.
        return None;
    }
    let wanted = status(object, verdicts, addresses, programmed);
    (!says(said, &wanted)).then_some(Change::Say(wanted))
}

/// Whether the object says something that only we say. Contour says the same of what is valid, so there it is the address.
fn once_ours(said: &HttpProxyStatus, addresses: &[LoadBalancerAddress]) -> bool {
    let coded = said.description.as_deref().is_some_and(|text| text.starts_with("SES"));
    let mut served = address::said(&said.load_balancer).peekable();
    coded || (served.peek().is_some() && served.all(|address| addresses.contains(address)))
}

fn condition<'s>(said: &'s HttpProxyStatus, name: &str) -> Option<&'s DetailedCondition> {
    said.conditions.good().map(|(_, condition)| condition).find(|condition| *condition.r#type == *name)
}

/// The status of an object as it should be, in the form of the API.
pub fn status(
    object: &HttpProxy,
    verdicts: &[Verdict],
    addresses: &[LoadBalancerAddress],
    programmed: Option<bool>,
) -> Value {
    let nothing = HttpProxyStatus::default();
    let said = object.status.ok().unwrap_or(&nothing);
    let generation = object.meta.generation;
    // What was true of this very form of the object stays said: a proxy that joins takes nothing back, nor does a restart.
    let so_far = condition(said, PROGRAMMED).filter(|condition| condition.observed_generation == Some(generation));
    let programmed = programmed.or_else(|| so_far.map(|condition| &*condition.status == "True"));
    let errors = findings(verdicts, Severity::Error);
    let warnings = findings(verdicts, Severity::Warning);
    let count = verdicts.iter().filter(|verdict| verdict.severity() == Severity::Error).count();
    let first = verdicts.iter().find(|verdict| verdict.severity() == Severity::Error);
    let orphaned = verdicts.iter().find(|verdict| verdict.code == Code::ProxyOrphaned);
    let (current, description) = match (first, orphaned) {
        (None, _) => ("valid", "Valid HTTPProxy".to_owned()),
        (_, Some(orphaned)) => ("orphaned", line(orphaned)),
        (Some(first), None) if count == 1 => ("invalid", line(first)),
        (Some(first), None) => ("invalid", format!("{} (and {} more, see errors)", line(first), count - 1)),
    };
    let is_valid = first.is_none();
    let mut valid = json!({
        "type": VALID,
        "status": word(is_valid),
        "reason": if is_valid { "Valid" } else { "ErrorPresent" },
        "message": &description,
        "observedGeneration": generation,
    });
    for (name, list) in [("errors", errors), ("warnings", warnings)] {
        if !list.is_empty() {
            valid[name] = list.into();
        }
    }
    let mut conditions = vec![valid];
    conditions.extend(programmed.map(|programmed| {
        let (reason, message) = if programmed {
            ("Programmed", "the proxies have all of it")
        } else {
            ("Pending", "not all proxies have all of it yet")
        };
        json!({
            "type": PROGRAMMED,
            "status": word(programmed),
            "reason": reason,
            "message": message,
            "observedGeneration": generation,
        })
    }));
    for entry in &mut conditions {
        let before = condition(said, entry["type"].as_str().unwrap_or_default());
        let unmoved = before.filter(|before| *before.status == *entry["status"].as_str().unwrap_or_default());
        if let Some(time) = unmoved.and_then(|before| before.last_transition_time.as_deref()) {
            entry["lastTransitionTime"] = time.into();
        }
    }
    let mut status = json!({ "currentStatus": current, "description": description, "conditions": conditions });
    if !addresses.is_empty() {
        let addresses: Vec<Value> = addresses.iter().map(address::written).collect();
        status["loadBalancer"] = json!({ "ingress": addresses });
    }
    bounded(status)
}

fn word(holds: bool) -> &'static str {
    if holds { "True" } else { "False" }
}

fn line(verdict: &Verdict) -> String {
    match verdict.origin.field.as_str() {
        "" => format!("{}: {}", verdict.code, verdict.message),
        field => format!("{}: {field}: {}", verdict.code, verdict.message),
    }
}

/// What is wrong, or to be known: one entry for each type and reason, with all its messages.
fn findings(verdicts: &[Verdict], severity: Severity) -> Vec<Value> {
    let mut texts: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for verdict in verdicts.iter().filter(|verdict| verdict.severity() == severity) {
        texts.entry(verdict.condition()).or_default().push(line(verdict));
    }
    let findings = texts.into_iter().map(|(condition, lines)| {
        json!({
            "type": condition.kind,
            "status": "True",
            "reason": condition.reason,
            "message": joined(&lines),
        })
    });
    findings.collect()
}

/// All of them, or as many as there is room for.
fn joined(lines: &[String]) -> String {
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        let (rest, line) = (lines.len() - index, cut(line, LONGEST));
        if text.is_empty() {
            text.push_str(&line);
        } else if text.len() + line.len() > LONGEST {
            return text + &format!("; and {rest} more");
        } else {
            text.push_str("; ");
            text.push_str(&line);
        }
    }
    text
}

/// Whether the object says that already, whatever else it says.
fn says(said: &HttpProxyStatus, wanted: &Value) -> bool {
    let text = |value: &Option<Box<str>>| value.as_deref().map(Value::from).unwrap_or_default();
    let addresses: Vec<Value> = address::said(&said.load_balancer).map(address::written).collect();
    let balanced = wanted["loadBalancer"]["ingress"].as_array().map_or(&[][..], Vec::as_slice) == addresses;
    let conditions = wanted["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let same = |wanted: &Value| {
        let name = wanted["type"].as_str().unwrap_or_default();
        condition(said, name).is_some_and(|condition| written(condition) == *wanted)
    };
    text(&said.current_status) == wanted["currentStatus"]
        && text(&said.description) == wanted["description"]
        && balanced
        && conditions.iter().all(same)
}

/// A condition in the form in which it is written.
fn written(condition: &DetailedCondition) -> Value {
    let mut value = json!({
        "type": condition.r#type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    });
    if let Some(generation) = condition.observed_generation {
        value["observedGeneration"] = generation.into();
    }
    if let Some(time) = &condition.last_transition_time {
        value["lastTransitionTime"] = (**time).into();
    }
    for (name, list) in [("errors", &condition.errors), ("warnings", &condition.warnings)] {
        let list: Vec<Value> = list
            .iter()
            .map(|finding| {
                json!({
                    "type": finding.r#type,
                    "status": finding.status,
                    "reason": finding.reason,
                    "message": finding.message,
                })
            })
            .collect();
        if !list.is_empty() {
            value[name] = list.into();
        }
    }
    value
}

#[cfg(test)]
mod tests;
