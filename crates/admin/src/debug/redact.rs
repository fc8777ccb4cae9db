//! Takes secrets out of what people see.
//!
//! By the names of fields, wherever they stand: a key is a key in a Secret, in a TLS context and in whatever is packed
//! inside a filter.

use serde_json::Value;

/// The fields whose contents nobody may see.
const SECRET: [&str; 6] =
    ["private_key", "private_key_provider", "password", "pkcs12", "session_ticket_keys", "generic_secret"];

/// What stands in their place.
const REDACTED: &str = "[redacted]";

/// Takes secrets out.
pub(super) fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if SECRET.contains(&name.as_str()) {
                    *value = REDACTED.into();
                } else {
                    redact(value);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(redact),
        _ => {}
    }
}
