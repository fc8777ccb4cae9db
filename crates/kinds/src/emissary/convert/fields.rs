//! Edits of a tree: fields that move, and values that are written in another way.

use crate::{Node, Value, node::Key};
use std::collections::HashSet;

/// The fields of a map.
pub type Entries<'a> = Vec<(Key<'a>, Node<'a>)>;

/// The fields of a map, if it is one.
pub fn entries<'n, 'a>(node: &'n mut Node<'a>) -> Option<&'n mut Entries<'a>> {
    match &mut node.value {
        Value::Map(entries) => Some(entries),
        _ => None,
    }
}

/// A field by its name.
pub fn field<'n, 'a>(entries: &'n mut Entries<'a>, name: &str) -> Option<&'n mut Node<'a>> {
    entries.iter_mut().find(|(key, _)| key.text == name).map(|(_, node)| node)
}

/// Removes a field.
pub fn take<'a>(entries: &mut Entries<'a>, name: &str) -> Option<(Key<'a>, Node<'a>)> {
    let found = entries.iter().position(|(key, _)| key.text == name)?;
    Some(entries.remove(found))
}

/// Gives a field another name, unless there is one of that name.
pub fn rename<'a>(entries: &mut Entries<'a>, from: &str, to: &'static str) {
    if entries.iter().any(|(key, _)| key.text == to) {
        return;
    }
    if let Some((key, _)) = entries.iter_mut().find(|(key, _)| key.text == from) {
        let written = std::mem::replace(&mut key.text, to.into());
        key.written.get_or_insert(written);
    }
}

/// A map of these fields.
pub fn map<'a, const N: usize>(fields: [(&'static str, Node<'a>); N]) -> Node<'a> {
    Value::Map(fields.into_iter().map(|(name, node)| (Key::from(name), node)).collect()).into()
}

/// Edits the value of every entry of a map.
pub fn each_entry<'a>(node: &mut Node<'a>, edit: impl Fn(&mut Node<'a>)) {
    for (_, node) in entries(node).into_iter().flatten() {
        edit(node);
    }
}

/// One text is a list of one.
pub fn listed(node: &mut Node<'_>) {
    if matches!(node.value, Value::Text(_)) {
        let only = Node { value: std::mem::replace(&mut node.value, Value::Null), ..*node };
        node.value = Value::List(vec![only]);
    }
}

/// A text with commas is a list of its parts.
pub fn comma_separated(node: &mut Node<'_>) {
    if let Value::Text(text) = &node.value {
        let part = |part: &str| Node { value: Value::Text(part.trim().to_owned().into()), position: node.position };
        node.value = Value::List(text.split(',').map(part).collect());
    }
}

/// A header that is added: a text is its value, and nothing is an empty value.
pub fn added_header(node: &mut Node<'_>) {
    match &mut node.value {
        Value::Text(_) => {
            let value = Node { value: std::mem::replace(&mut node.value, Value::Null), ..*node };
            node.value = map([("value", value)]).value;
        }
        Value::Null => node.value = Value::Map(Vec::new()),
        _ => {}
    }
}

/// Entries of the map `exact` that are `true` stand for any value: they become entries of the map `regex`. Entries that are
/// `false` or nothing are dropped, as Emissary does.
pub fn present<'a>(spec: &mut Entries<'a>, exact: &str, regex: &'static str) {
    let Some(values) = field(spec, exact).and_then(entries) else { return };
    let (kept, moved): (Vec<_>, Vec<_>) =
        std::mem::take(values).into_iter().partition(|(_, node)| !matches!(node.value, Value::Bool(_) | Value::Null));
    *values = kept;
    let any: Vec<_> = moved.into_iter().filter(|(_, node)| node.value == Value::Bool(true)).collect();
    if any.is_empty() {
        return;
    }
    if field(spec, regex).is_none_or(|patterns| patterns.value == Value::Null) {
        drop(take(spec, regex));
        spec.push((Key::from(regex), Value::Map(Vec::new()).into()));
    }
    let Some(patterns) = field(spec, regex).and_then(entries) else { return };
    let mut known: HashSet<String> = patterns.iter().map(|(key, _)| key.text.to_string()).collect();
    for (key, node) in any {
        if known.insert(key.text.to_string()) {
            patterns.push((key, Node { value: Value::Text(".*".into()), ..node }));
        }
    }
}
