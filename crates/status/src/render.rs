//! Facts as the JSON of a status.
//!
//! In: what a dialect states about an object or an entry of a list, and what the object says now. Out: JSON in the form of the
//! API. The time of a condition is carried over while its status stays the same; where the status is new the time is left
//! out, and whoever sends it puts it in. Text is never longer than an API server takes: for one message that is too long it
//! refuses all of a status, however often it is tried.

use model::status::{Address, Condition, Entry, Scope, StatusFacts, StatusValue, cut};
use serde_json::{Map, Value, json};

/// The longest message of a condition, by the CRDs, where it is in characters.
const LONGEST: usize = 32_768;

/// The status of an object that says nothing yet, without times.
pub fn status(facts: &StatusFacts, generation: i64) -> Value {
    over(facts, &Value::Null, generation)
}

/// The status of an object that says `current`, in the form of a server-side apply.
pub(crate) fn over(facts: &StatusFacts, current: &Value, generation: i64) -> Value {
    let mut fields = scope(&facts.object, current, generation);
    for (field, entries) in &facts.lists {
        let list = entries.iter().map(|entry| {
            let current =
                list(&current[*field]).iter().find(|current| is_about(entry, current)).unwrap_or(&Value::Null);
            Value::Object(self::entry(entry, current, generation))
        });
        fields.insert((*field).to_owned(), list.collect());
    }
    Value::Object(fields)
}

/// One entry of a list that says `current`.
pub(crate) fn entry(entry: &Entry, current: &Value, generation: i64) -> Map<String, Value> {
    let mut fields = scope(&entry.scope, current, generation);
    fields.extend(entry.identity.iter().map(|(field, of)| ((*field).to_owned(), value(of))));
    fields
}

/// The values and conditions of something that says `current`.
pub(crate) fn scope(scope: &Scope, current: &Value, generation: i64) -> Map<String, Value> {
    let values = scope.values.iter().map(|(field, of)| ((*field).to_owned(), value(of)));
    let mut fields: Map<String, Value> = values.collect();
    let kept = scope.kept.iter().filter_map(|kind| self::condition(current, kind));
    let kept = kept.filter(|before| before["observedGeneration"] == generation).cloned();
    let stated = scope.conditions.iter().map(|stated| condition_over(stated, current, generation));
    let initial = scope.initial.iter().map(|stated| match self::condition(current, stated.kind) {
        Some(before) if before["observedGeneration"] == generation && before["status"] == "True" => before.clone(),
        _ => condition_over(stated, current, generation),
    });
    let conditions: Vec<Value> = stated.chain(initial).chain(kept).collect();
    if !conditions.is_empty() {
        fields.insert("conditions".to_owned(), conditions.into());
    }
    fields
}

/// Whether an entry of a list is the one that these facts are about.
pub(crate) fn is_about(entry: &Entry, current: &Value) -> bool {
    entry.identity.iter().all(|(field, of)| current[*field] == value(of))
}

/// The condition of a type that something says.
pub(crate) fn condition<'c>(current: &'c Value, kind: &str) -> Option<&'c Value> {
    list(&current["conditions"]).iter().find(|condition| condition["type"] == kind)
}

/// The elements of a list; none of what is no list.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn condition_over(stated: &Condition, current: &Value, generation: i64) -> Value {
    let mut condition = json!({
        "type": stated.kind,
        "status": stated.status.word(),
        "reason": stated.reason,
        "message": cut(&stated.message, LONGEST),
        "observedGeneration": generation,
    });
    for (field, findings) in stated.findings.iter().filter(|(_, findings)| !findings.is_empty()) {
        let findings = findings.iter().map(|finding| {
            json!({
                "type": finding.kind,
                "status": "True",
                "reason": finding.reason,
                "message": cut(&finding.message, LONGEST),
            })
        });
        condition[*field] = findings.collect();
    }
    if let Some(before) = self::condition(current, stated.kind).filter(|before| before["status"] == condition["status"])
    {
        if before["lastTransitionTime"].is_string() {
            condition["lastTransitionTime"] = before["lastTransitionTime"].clone();
        }
        let is_same = ["reason", "observedGeneration"].iter().all(|field| before[*field] == condition[*field]);
        if !stated.message_matters && is_same {
            condition["message"] = before["message"].clone();
        }
    }
    condition
}

/// A value of a field.
pub(crate) fn value(of: &StatusValue) -> Value {
    match of {
        StatusValue::Text(text) => cut(text, LONGEST).into(),
        StatusValue::Integer(number) => (*number).into(),
        StatusValue::List(list) => list.iter().map(value).collect(),
        StatusValue::Record(fields) => record(fields),
        StatusValue::LoadBalancer(addresses) => {
            let addresses: Vec<Value> = addresses.iter().map(address).collect();
            json!({ "ingress": addresses })
        }
    }
}

fn record(fields: &[(&'static str, StatusValue)]) -> Value {
    fields.iter().map(|(field, of)| ((*field).to_owned(), value(of))).collect::<Map<_, _>>().into()
}

/// An address of a load balancer.
pub(crate) fn address(address: &Address) -> Value {
    let fields = [("ip", &address.ip), ("hostname", &address.hostname)];
    let fields = fields.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value.as_deref()?.into())));
    fields.collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests;
