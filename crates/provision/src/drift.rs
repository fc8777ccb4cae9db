//! Whether an object has what we apply.
//!
//! The API server fills in defaults, and other people may set other fields, so an object is never equal to what was applied. It
//! has drifted if a field of ours is gone or has another value; what was ours and is not any more shows in the hash
//! ([`crate::objects::HASH_ANNOTATION`]).

use serde_json::Value;

/// Whether every field of `applied` is in `object` with its value. An element of a list may stand anywhere in it.
pub fn has(object: &Value, applied: &Value) -> bool {
    match (object, applied) {
        (Value::Object(object), Value::Object(applied)) => applied.iter().all(|(key, value)| match object.get(key) {
            Some(there) => has(there, value),
            // An empty list, object or text is not stored.
            None => is_empty(value),
        }),
        (Value::Array(object), Value::Array(applied)) => {
            applied.iter().all(|value| object.iter().any(|there| has(there, value)))
        }
        (object, applied) => object == applied,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_and_other_peoples_fields_are_no_drift() {
        let applied = json!({ "a": 1, "list": [{ "port": 80 }], "none": [], "map": {} });
        assert!(has(&json!({ "a": 1, "b": 2, "list": [{ "port": 443 }, { "port": 80, "nodePort": 3 }] }), &applied));
        for drifted in [
            json!({ "a": 2, "list": [{ "port": 80 }] }),
            json!({ "list": [{ "port": 80 }] }),
            json!({ "a": 1, "list": [{ "port": 81 }] }),
            json!({ "a": 1, "list": [] }),
        ] {
            assert!(!has(&drifted, &applied), "{drifted}");
        }
    }
}
