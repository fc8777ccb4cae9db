//! The status of an object, as JSON.
//!
//! A status is written by whoever serves the object, and several controllers may share it. Nothing here says what it means:
//! the text is kept as it arrived, so that what a controller must write can be compared with all of it, including the
//! entries of others. It is parsed only when somebody asks.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The status of an object; without text if it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Status(Option<Box<str>>);

impl Status {
    /// The status as a JSON value; null if there is none.
    pub fn to_json(&self) -> Value {
        self.0.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl<'de> Deserialize<'de> for Status {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::Object(fields) if !fields.is_empty() => Self(Some(Value::Object(fields).to_string().into())),
            _ => Self(None),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use crate::{decode_json, kind};
    use serde_json::{Value, json};

    fn read(status: &Value) -> (Value, usize) {
        let object = json!({ "metadata": { "name": "a" }, "status": status });
        let decoded = decode_json(kind::CONTOUR_HTTP_PROXY, object.to_string().as_bytes()).unwrap();
        (decoded.object.status().unwrap().to_json(), decoded.faults.len() + decoded.unknown.len())
    }

    #[test]
    fn a_status_is_kept_as_it_is_whatever_it_says() {
        let foreign = json!({ "parents": [{ "controllerName": "example.com/a", "x": [1, 2.5, null, true, "é"] }] });
        assert_eq!(read(&foreign), (foreign, 0));
        for none in [Value::Null, json!({}), json!(7), json!("text")] {
            assert_eq!(read(&none), (Value::Null, 0));
        }
    }
}
