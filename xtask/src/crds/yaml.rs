//! JSON values as YAML that people read: blocks, sorted keys, quotes only where they are needed.

use serde_json::Value;

/// A document, with a first line that says where it comes from.
pub fn document(value: &Value) -> String {
    let mut out = String::from("# Made by `cargo xtask crds`; changes belong in xtask/src/crds.\n");
    block(value, 0, &mut out);
    out
}

/// A map or a list that begins on a line of its own.
fn block(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            for key in keys {
                indent(depth, out);
                entry(key, &map[key], depth, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                indent(depth, out);
                out.push_str("- ");
                match item {
                    Value::Object(map) if !map.is_empty() => {
                        let mut inner = String::new();
                        block(item, depth + 1, &mut inner);
                        out.push_str(inner.trim_start());
                    }
                    scalar => {
                        out.push_str(&flow(scalar));
                        out.push('\n');
                    }
                }
            }
        }
        scalar => {
            indent(depth, out);
            out.push_str(&flow(scalar));
            out.push('\n');
        }
    }
}

fn entry(key: &str, value: &Value, depth: usize, out: &mut String) {
    out.push_str(&word(key));
    out.push(':');
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            block(value, depth + 1, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            block(value, depth, out);
        }
        scalar => {
            out.push(' ');
            out.push_str(&flow(scalar));
            out.push('\n');
        }
    }
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => word(text),
        other => other.to_string(),
    }
}

/// A text as it is where YAML reads it so, else in quotes.
fn word(text: &str) -> String {
    let first = text.chars().next();
    let plain = first.is_some_and(|c| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || " -_./,()[]'`;+%".contains(c))
        && !text.ends_with(' ')
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if plain { text.to_owned() } else { Value::from(text).to_string() }
}
