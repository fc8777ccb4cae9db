//! JSON values as YAML for people: maps and lists in blocks as deep as the caller wants, the rest on one line.

use serde_json::Value;

/// A value on one line.
pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{}: {}", word(key), flow(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::String(text) => word(text),
        other => other.to_string(),
    }
}

/// A value in blocks to its leaves, each line this far in.
pub(super) fn block(value: &Value, indent: usize) -> String {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().map(|(key, value)| format!("{pad}{}:{}", word(key), below(value, indent))).collect()
        }
        Value::Array(items) if !items.is_empty() => items
            .iter()
            .map(|item| {
                let text = block(item, indent + 2);
                format!("{pad}- {}", text.trim_start())
            })
            .collect(),
        leaf => format!("{pad}{}\n", flow(leaf)),
    }
}

/// What stands behind a key that is this far in.
pub(super) fn below(value: &Value, indent: usize) -> String {
    match value {
        Value::Object(map) if !map.is_empty() => format!("\n{}", block(value, indent + 2)),
        Value::Array(items) if !items.is_empty() => format!("\n{}", block(value, indent)),
        leaf => format!(" {}\n", flow(leaf)),
    }
}

/// A text as a scalar: as it is where no reader of YAML could take it for anything else, else in quotes.
pub(super) fn word(text: &str) -> String {
    let first = text.chars().next();
    let plain = first.is_some_and(|c| c.is_ascii_alphabetic() || c == '/' || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_./-@".contains(c))
        && !matches!(text, "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n");
    if plain { text.to_owned() } else { Value::from(text).to_string() }
}

/// A text as a key in a block: spaces and brackets inside do not matter there.
pub(super) fn key(text: &str) -> String {
    let words = text.split([' ', '[', ']']).filter(|part| !part.is_empty());
    let first = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '/');
    let plain = first
        && !text.ends_with(' ')
        && words.into_iter().all(|part| part.chars().all(|c| c.is_ascii_alphanumeric() || "_./-".contains(c)));
    if plain { text.to_owned() } else { Value::from(text).to_string() }
}
