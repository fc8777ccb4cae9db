//! Known values as YAML: scalars in one line, maps and lists as blocks.

use serde_json::Value;

/// A scalar, or an empty map or list: plain where YAML reads it so, else in double quotes.
pub fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A value as a block of lines, each with a line break; keys in order.
pub fn value(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                out.push_str(&format!("{indent}{}:", scalar(&Value::from(key.as_str()))));
                below(value, depth, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let mut text = String::new();
                self::value(item, depth + 1, &mut text);
                out.push_str(&format!("{indent}- {}", text.trim_start()));
            }
        }
        one => out.push_str(&format!("{indent}{}\n", scalar(one))),
    }
}

/// A value after its key: in the same line if it is a scalar. The items of a list stand as far left as their key.
pub fn below(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            self::value(value, depth + 1, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            self::value(value, depth, out);
        }
        one => out.push_str(&format!(" {}\n", scalar(one))),
    }
}

/// Whether YAML reads an unquoted text as this string, and nobody could take it for anything else.
fn is_plain(text: &str) -> bool {
    let first = text.chars().next();
    let is_word = first.is_some_and(|c| c.is_ascii_alphanumeric() || "/$(_".contains(c)) || text.starts_with("--");
    let is_number = text.chars().all(|c| c.is_ascii_digit() || "xeE+-._:".contains(c));
    let keywords = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    is_word
        && !is_number
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=$()+,:@".contains(c))
        && !text.ends_with(':')
        && !keywords.contains(&text.to_ascii_lowercase().as_str())
}
