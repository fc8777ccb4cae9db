//! What a key may be given: a value of the file in, a typed one out, or what is wrong with it and where.

use kinds::{Node, Value};
use model::Timeout;
use model::timeout::parse_duration;
use std::fmt::Display;
use std::net::IpAddr;
use std::time::Duration;

/// How yes and no are written.
pub const BOOLEAN: &str = "`true` or `false`";
/// How time limits are written.
pub const TIMEOUT: &str = "a duration such as `1m30s`, or `infinity`";

/// Why a value cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Which part of the value, as a path from it: `[2]`; empty for the whole.
    pub part: String,
    /// What is wrong with it.
    pub why: String,
}

impl Wrong {
    /// The whole value is wrong.
    pub fn new(why: impl Into<String>) -> Self {
        Self { part: String::new(), why: why.into() }
    }

    fn expected(what: &str, node: &Node<'_>) -> Self {
        Self::new(format!("expected {what}, found {}", node.describe()))
    }

    /// It is about an entry of a map.
    #[must_use]
    pub fn entry(self, key: &str) -> Self {
        Self { part: format!("[\"{key}\"]{}", self.part), ..self }
    }

    /// It is about a field of a map.
    #[must_use]
    pub fn field(self, path: &str) -> Self {
        let part = if path.is_empty() { self.part } else { format!(".{path}{}", self.part) };
        Self { part, ..self }
    }

    /// It is about an item of a list.
    #[must_use]
    pub fn item(self, index: usize) -> Self {
        Self { part: format!("[{index}]{}", self.part), ..self }
    }
}

/// Yes or no.
pub fn boolean(node: &Node<'_>) -> Result<bool, Wrong> {
    match node.value {
        Value::Bool(value) => Ok(value),
        _ => Err(Wrong::expected("true or false", node)),
    }
}

/// A whole number of a type, from `least` on.
pub fn whole<T: TryFrom<i64> + PartialOrd + Display + Copy>(node: &Node<'_>, least: T, most: T) -> Result<T, Wrong> {
    let Value::Int(value) = node.value else { return Err(Wrong::expected("a whole number", node)) };
    let value = T::try_from(value).ok().filter(|value| (least..=most).contains(value));
    value.ok_or_else(|| Wrong::new(format!("expected a number from {least} to {most}, found {}", node.describe())))
}

/// A limit: a number from one on.
pub fn limit(node: &Node<'_>) -> Result<Option<u32>, Wrong> {
    whole(node, 1, u32::MAX).map(Some)
}

/// A limit for which nothing and zero say the same: none.
pub fn limit_or_none(node: &Node<'_>) -> Result<Option<u32>, Wrong> {
    whole(node, 0, u32::MAX).map(|limit| Some(limit).filter(|&limit| limit != 0))
}

/// A port.
pub fn port(node: &Node<'_>) -> Result<u16, Wrong> {
    whole(node, 1, u16::MAX)
}

/// An address to listen on.
pub fn address(node: &Node<'_>) -> Result<IpAddr, Wrong> {
    let text = text(node)?;
    text.parse().map_err(|_| Wrong::new(format!("`{text}` is not an IP address")))
}

/// Text. A number is taken for what was written: `1.2` needs no quotes.
pub fn text(node: &Node<'_>) -> Result<String, Wrong> {
    match &node.value {
        Value::Text(text) => Ok(text.to_string()),
        Value::Int(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Bool(_) => Err(Wrong::new(format!("expected text, found {}: put it in quotes", node.describe()))),
        Value::Null | Value::List(_) | Value::Map(_) => Err(Wrong::expected("text", node)),
    }
}

/// Text that is not empty.
pub fn name(node: &Node<'_>) -> Result<String, Wrong> {
    let text = text(node)?;
    if text.is_empty() { Err(Wrong::new("expected a name, found an empty string")) } else { Ok(text) }
}

/// One of a few words.
pub fn word<T: Copy>(node: &Node<'_>, words: &[(&str, T)]) -> Result<T, Wrong> {
    let text = text(node)?;
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        Wrong::new(format!("`{text}` is not one of {}", words.join(", ")))
    })
}

/// A time limit in Contour's form.
pub fn timeout(node: &Node<'_>) -> Result<Timeout, Wrong> {
    Timeout::parse(&text(node)?).map_err(|error| Wrong::new(error.to_string()))
}

/// A span of time that has an end.
pub fn duration(node: &Node<'_>) -> Result<Duration, Wrong> {
    let text = text(node)?;
    let span = parse_duration(&text).map_err(|error| Wrong::new(error.to_string()))?;
    if span.is_zero() { Err(Wrong::new(format!("`{text}` must be greater than zero"))) } else { Ok(span) }
}

/// A list, each item read by `read`.
pub fn list<T>(node: &Node<'_>, read: impl Fn(&Node<'_>) -> Result<T, Wrong>) -> Result<Vec<T>, Wrong> {
    let Value::List(items) = &node.value else { return Err(Wrong::expected("a list", node)) };
    items.iter().enumerate().map(|(index, item)| read(item).map_err(|wrong| wrong.item(index))).collect()
}

/// A map of names to values, in the order in which it was written.
pub fn map<T>(node: &Node<'_>, read: impl Fn(&str, &Node<'_>) -> Result<T, Wrong>) -> Result<Vec<T>, Wrong> {
    let Value::Map(entries) = &node.value else { return Err(Wrong::expected("a map", node)) };
    entries.iter().map(|(key, value)| read(&key.text, value).map_err(|wrong| wrong.entry(&key.text))).collect()
}

/// `namespace/name`, or a map of both, as an object has it; nothing where the text is empty.
pub fn namespaced(node: &Node<'_>) -> Result<Option<(String, String)>, Wrong> {
    if let Value::Map(entries) = &node.value {
        let of = |key: &str| match node.get(key) {
            Some(value) => name(value).map_err(|wrong| wrong.entry(key)),
            None => Err(Wrong::new("both namespace and name are required")),
        };
        if let Some((key, _)) = entries.iter().find(|(key, _)| !["namespace", "name"].contains(&&*key.text)) {
            return Err(Wrong::new(format!("unknown key {}", key.text)));
        }
        return Ok(Some((of("namespace")?, of("name")?)));
    }
    let text = text(node)?;
    match text.split_once('/') {
        None if text.is_empty() => Ok(None),
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(Some((namespace.to_owned(), name.to_owned())))
        }
        _ => Err(Wrong::new(format!("expected `namespace/name`, found `{text}`"))),
    }
}

/// A value that objects have as well.
pub fn part<T: serde::de::DeserializeOwned>(node: &Node<'_>) -> Result<T, Wrong> {
    kinds::decode_part(node).map_err(|fault| Wrong::new(fault.why).field(&fault.path))
}
