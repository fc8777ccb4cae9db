//! Rate limit labels: what is written as plain text or by the key of a header becomes an object that says what it is.

use super::fields::{each_entry, field, map, rename, take};
use crate::{Node, Value};

/// The parts that have a name of their own.
const NAMED: [&str; 3] = ["source_cluster", "destination_cluster", "remote_address"];

/// The labels of one domain: a list of maps of lists of parts.
pub fn domain(domain: &mut Node<'_>) {
    let Value::List(groups) = &mut domain.value else { return };
    for group in groups {
        each_entry(group, |parts| {
            if let Value::List(parts) = &mut parts.value {
                parts.iter_mut().for_each(specifier);
            }
        });
    }
}

/// One part of a label.
pub fn specifier(node: &mut Node<'_>) {
    let position = node.position;
    match &mut node.value {
        Value::Text(text) => {
            let key = NAMED.into_iter().find(|name| text == name);
            let text = Node { value: std::mem::replace(&mut node.value, Value::Null), position };
            node.value = match key {
                Some(name) => map([(name, map([("key", text)]))]).value,
                None => map([("generic_key", map([("value", text)]))]).value,
            };
        }
        Value::Map(entries) => {
            if let Some(generic) = field(entries, "generic_key")
                && matches!(generic.value, Value::Text(_))
            {
                let mut parts = vec![("value".into(), generic.clone())];
                parts.extend(take(entries, "v3Key").map(|(_, key)| ("key".into(), key)));
                if let Some(generic) = field(entries, "generic_key") {
                    generic.value = Value::Map(parts);
                }
            } else if let [(key, value)] = &mut entries[..]
                && let Value::Map(header) = &mut value.value
                && header.iter().any(|(key, _)| key.text == "header")
            {
                rename(header, "header", "header_name");
                let label = Node { value: Value::Text(key.text.clone()), position: key.position };
                header.push(("key".into(), label));
                key.written = Some(std::mem::replace(&mut key.text, "request_headers".into()));
            }
        }
        _ => {}
    }
}
