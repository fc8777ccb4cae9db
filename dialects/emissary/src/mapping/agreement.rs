//! What Mappings for the same requests have to agree on, in Emissary: a newcomer that says something else is not served.

use kinds::{Checked, emissary::mapping::MappingSpec};
use model::route::Agreement;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// The fields that an author set, each as JSON with the names that the CRD has.
pub(super) fn of(spec: &MappingSpec) -> Agreement {
    let labels = spec.labels.ok().filter(|labels| !labels.is_empty());
    let fields = [
        ("bypass_auth", set(&spec.bypass_auth)),
        ("circuit_breakers", set(&spec.circuit_breakers)),
        ("cluster_idle_timeout_ms", set(&spec.cluster_idle_timeout_ms)),
        ("cluster_max_connection_lifetime_ms", set(&spec.cluster_max_connection_lifetime_ms)),
        ("connect_timeout_ms", set(&spec.connect_timeout_ms)),
        ("keepalive", set(&spec.keepalive)),
        ("labels", labels.and_then(json)),
        ("load_balancer", set(&spec.load_balancer)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn set<T: Serialize>(value: &Checked<Option<T>>) -> Option<Arc<str>> {
    json(value.ok()?.as_ref()?)
}

/// A value as JSON, without what its author has not set.
fn json(value: &impl Serialize) -> Option<Arc<str>> {
    let mut value = serde_json::to_value(value).ok()?;
    remove_nulls(&mut value);
    Some(value.to_string().into())
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
