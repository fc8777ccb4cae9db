//! Finding a field of a document by its path, as messages write it: `a.b[0]["c.d"]`.

use kinds::{Node, Position, Value};

/// The value at the end of a path, or the last one on the way, and where its key stands if it is in a map.
pub fn find<'n, 'a>(object: &'n Node<'a>, field: &str) -> (Option<Position>, &'n Node<'a>) {
    let mut found = (None, object);
    for step in steps(field) {
        match next(found.1, &step) {
            Some(next) => found = next,
            None => break,
        }
    }
    found
}

/// Whether there is such a field.
pub fn exists(object: &Node<'_>, field: &str) -> bool {
    let mut node = Some(object);
    for step in steps(field) {
        node = node.and_then(|node| next(node, &step)).map(|(_, node)| node);
    }
    node.is_some()
}

fn next<'n, 'a>(node: &'n Node<'a>, step: &Step<'_>) -> Option<(Option<Position>, &'n Node<'a>)> {
    match (&node.value, step) {
        (Value::Map(entries), Step::Name(name)) => {
            entries.iter().find(|(key, _)| key.text == *name).map(|(key, node)| (Some(key.position), node))
        }
        (Value::List(items), Step::Index(index)) => items.get(*index).map(|item| (None, item)),
        _ => None,
    }
}

enum Step<'f> {
    Name(&'f str),
    Index(usize),
}

fn steps(field: &str) -> impl Iterator<Item = Step<'_>> {
    let mut rest = field;
    std::iter::from_fn(move || {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if rest.is_empty() {
            return None;
        }
        if let Some(quoted) = rest.strip_prefix("[\"") {
            let (key, after) = quoted.split_once("\"]")?;
            rest = after;
            return Some(Step::Name(key));
        }
        if let Some(bracketed) = rest.strip_prefix('[') {
            let (index, after) = bracketed.split_once(']')?;
            rest = after;
            return index.parse().ok().map(Step::Index);
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        rest = after;
        Some(Step::Name(name))
    })
}
