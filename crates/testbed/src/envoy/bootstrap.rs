//! The bootstrap as a test gives it, and what the bed adds.
//!
//! In: JSON, or YAML text. Out: JSON with an admin interface. A bootstrap that has one keeps it, whatever its form; where
//! it listens in the end Envoy tells by itself.

use serde_json::{Value, json};

use super::Error;
use crate::net::Net;

/// A bootstrap.
#[derive(Clone, Debug)]
pub enum Bootstrap {
    /// As JSON.
    Value(Value),
    /// As YAML or JSON text.
    Text(String),
}

impl From<Value> for Bootstrap {
    fn from(value: Value) -> Bootstrap {
        Bootstrap::Value(value)
    }
}

impl From<&Value> for Bootstrap {
    fn from(value: &Value) -> Bootstrap {
        Bootstrap::Value(value.clone())
    }
}

impl From<String> for Bootstrap {
    fn from(text: String) -> Bootstrap {
        Bootstrap::Text(text)
    }
}

impl From<&str> for Bootstrap {
    fn from(text: &str) -> Bootstrap {
        Bootstrap::Text(text.to_owned())
    }
}

impl Bootstrap {
    /// With an admin interface and a node, which Envoy wants once anything comes by xDS.
    pub(super) fn complete(self, name: &str) -> Result<Value, Error> {
        let mut value = match self {
            Bootstrap::Value(value) => value,
            Bootstrap::Text(text) => {
                serde_saphyr::from_str(&text).map_err(|error| Error::Bootstrap(error.to_string()))?
            }
        };
        let fields = value.as_object_mut().ok_or_else(|| Error::Bootstrap("not an object".to_owned()))?;
        if !fields.contains_key("admin") {
            let address = Net::here()?.address();
            let socket = json!({ "address": address, "port_value": 9901 });
            fields.insert("admin".to_owned(), json!({ "address": { "socket_address": socket } }));
        }
        fields.entry("node").or_insert_with(|| json!({ "id": name, "cluster": "testbed" }));
        Ok(value)
    }
}
