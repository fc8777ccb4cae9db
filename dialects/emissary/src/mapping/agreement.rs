//! What Mappings for the same requests have to agree on, in Emissary: a newcomer that says something else is not served.

use kinds::{Checked, emissary::mapping::MappingSpec};
use model::route::{AgreedValue, Agreement};
use serde::Serialize;
use serde_json::Value;

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

fn set<T: Serialize>(value: &Checked<Option<T>>) -> Option<AgreedValue> {
    json(value.ok()?.as_ref()?)
}

/// A value as JSON, without what its author has not set.
fn json(value: &impl Serialize) -> Option<AgreedValue> {
    let mut value = serde_json::to_value(value).ok()?;
    remove_nulls(&mut value);
    Some(AgreedValue::new(&value.to_string()))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use kinds::{emissary::Mapping, kind};
    use serde_json::json;

    fn agreement(spec: &Value) -> Agreement {
        let object = json!({ "metadata": { "namespace": "ns", "name": "a" }, "spec": spec });
        let decoded = kinds::decode_json(kind::MAPPING, object.to_string().as_bytes()).unwrap();
        of(&decoded.object.get::<Mapping>().unwrap().spec)
    }

    /// Every route of every host is compared by them, so a large object must not make a large agreement.
    #[test]
    fn what_is_kept_of_large_values_is_bounded_and_still_tells_them_apart() {
        let spec = |last: &str| {
            let group =
                json!([{ "generic_key": { "value": "x".repeat(100_000) } }, { "generic_key": { "value": last } }]);
            let breakers = vec![json!({ "max_connections": 1 }); 1000];
            json!({ "labels": { "ambassador": [{ "group": group }] }, "circuit_breakers": breakers })
        };
        let one = agreement(&spec("one"));
        assert_eq!(one.iter().map(|(field, _)| *field).collect::<Vec<_>>(), ["circuit_breakers", "labels"]);
        let bytes: usize = one.iter().map(|(_, value)| value.as_str().len()).sum();
        assert!(bytes < 5000, "{bytes} bytes");
        assert_eq!(agreement(&spec("one")), one);
        assert_ne!(agreement(&spec("two")), one);
    }
}
