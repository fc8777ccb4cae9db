//! Our entries in lists that several controllers write, as a JSON patch of the version that we know.
//!
//! In: the facts and the status as it is. Out: operations that add, change and remove what is ours. Nothing of another
//! controller is in them, so it stays as it is, byte for byte: its entries, conditions of other types in our entries, fields
//! that we do not know, and the order of all of them. Positions in a list are only right for one version of the object, so
//! whoever sends the patch puts a test of that version in front of it.

use super::{Current, is_empty, stated};
use crate::render;
use model::status::{AtomicList, ListLayout, StatusFacts};
use serde_json::{Map, Value, json};

/// The operations that make an object say these facts; none if it says them already.
pub(super) fn operations(facts: &StatusFacts, current: Current<'_>) -> Option<Vec<Value>> {
    let mut operations = Operations::default();
    let layout = current.layout;
    let wanted = render::scope(&facts.object, current.status, current.generation);
    operations.scope("/status", current.status, &wanted, layout.fields, layout.conditions);
    for list in layout.lists {
        operations.list(list, Some(facts), current);
    }
    operations.done(current.status)
}

/// The operations that remove everything of ours; none if there is none. Of a kind whose lists others share only entries are ours.
pub(super) fn operations_to_withdraw(current: Current<'_>) -> Option<Vec<Value>> {
    let mut operations = Operations::default();
    let layout = current.layout;
    if !layout.is_atomic() {
        operations.scope("/status", current.status, &Map::new(), layout.fields, layout.conditions);
    }
    for list in layout.lists {
        match list.atomic {
            Some(_) => operations.list(list, None, current),
            None => operations.merged_list(list, current.status),
        }
    }
    operations.done(current.status)
}

#[derive(Default)]
struct Operations(Vec<Value>);

impl Operations {
    fn done(mut self, status: &Value) -> Option<Vec<Value>> {
        if self.0.is_empty() {
            return None;
        }
        if status.is_null() {
            self.0.insert(0, json!({ "op": "add", "path": "/status", "value": {} }));
        }
        Some(self.0)
    }

    /// Adds a field or an element; a field that is there is replaced.
    fn add(&mut self, path: String, value: Value) {
        self.0.push(json!({ "op": "add", "path": path, "value": value }));
    }

    fn replace(&mut self, path: String, value: Value) {
        self.0.push(json!({ "op": "replace", "path": path, "value": value }));
    }

    fn remove(&mut self, path: String) {
        self.0.push(json!({ "op": "remove", "path": path }));
    }

    fn list(&mut self, list: &ListLayout, facts: Option<&StatusFacts>, current: Current<'_>) {
        let path = format!("/status/{}", list.field);
        let there = &current.status[list.field];
        let entries = render::list(there);
        let stated = facts.map_or(&[][..], |facts| stated(facts, list));

        // Positions hold until something is removed, so what changes in place comes first.
        let (mut known, mut new) = (vec![false; entries.len()], Vec::new());
        for entry in stated {
            let mut found =
                current.own(list).filter(|(index, written)| !known[*index] && render::is_about(entry, written));
            match found.next().map(|(index, _)| index) {
                Some(index) => {
                    known[index] = true;
                    let wanted = render::scope(&entry.scope, &entries[index], current.generation);
                    let path = format!("{path}/{index}");
                    self.scope(&path, &entries[index], &wanted, list.fields, list.conditions);
                }
                None => {
                    let mut wanted = render::entry(entry, &Value::Null, current.generation);
                    if let Some(AtomicList { owner, .. }) = list.atomic {
                        wanted.insert(owner.to_owned(), current.controller.into());
                    }
                    new.push(Value::Object(wanted));
                }
            }
        }
        let stale: Vec<usize> = current.own(list).map(|(index, _)| index).filter(|index| !known[*index]).collect();
        // From the end: what is before stays where it is.
        for index in stale.iter().rev() {
            self.remove(format!("{path}/{index}"));
        }
        let limit = list.atomic.map_or(usize::MAX, |atomic| atomic.limit);
        new.truncate(limit.saturating_sub(entries.len() - stale.len()));
        if there.is_array() {
            new.into_iter().for_each(|entry| self.add(format!("{path}/-"), entry));
        } else if !new.is_empty() {
            self.add(path, new.into());
        }
    }

    /// Removes our conditions from the entries of a list whose entries controllers share, and the entries that have no others. What else is
    /// in an entry of others stays: it is not valid without.
    fn merged_list(&mut self, list: &ListLayout, status: &Value) {
        let is_own = |condition: &Value| list.conditions.iter().any(|kind| condition["type"] == *kind);
        // From the end: what is before stays where it is.
        for (index, entry) in render::list(&status[list.field]).iter().enumerate().rev() {
            let (path, conditions) = (format!("/status/{}/{index}", list.field), render::list(&entry["conditions"]));
            if conditions.iter().all(is_own) {
                self.remove(path);
                continue;
            }
            for (at, _) in conditions.iter().enumerate().rev().filter(|(_, condition)| is_own(condition)) {
                self.remove(format!("{path}/conditions/{at}"));
            }
        }
    }

    /// Brings the fields and conditions that are ours in line, of the object or of an entry.
    fn scope(
        &mut self,
        path: &str,
        current: &Value,
        wanted: &Map<String, Value>,
        fields: &[&str],
        conditions: &[&str],
    ) {
        for field in fields {
            match (current.get(*field), wanted.get(*field)) {
                (Some(there), Some(wanted)) if there == wanted => {}
                (_, Some(wanted)) => self.add(format!("{path}/{field}"), wanted.clone()),
                (Some(there), None) if !is_empty(there) => self.remove(format!("{path}/{field}")),
                (_, None) => {}
            }
        }
        let wanted = wanted.get("conditions").map_or(&[][..], render::list);
        let Some(there) = current["conditions"].as_array() else {
            if !wanted.is_empty() {
                self.add(format!("{path}/conditions"), wanted.into());
            }
            return;
        };
        let of = |kind: &Value| wanted.iter().find(|condition| condition["type"] == *kind);
        let mut stale = Vec::new();
        for (index, there) in there.iter().enumerate() {
            match of(&there["type"]) {
                Some(wanted) if wanted == there => {}
                Some(wanted) => self.replace(format!("{path}/conditions/{index}"), wanted.clone()),
                None if conditions.iter().any(|kind| there["type"] == *kind) => stale.push(index),
                None => {}
            }
        }
        for index in stale.into_iter().rev() {
            self.remove(format!("{path}/conditions/{index}"));
        }
        let is_new = |condition: &&Value| !there.iter().any(|there| there["type"] == condition["type"]);
        wanted.iter().filter(is_new).for_each(|condition| self.add(format!("{path}/conditions/-"), condition.clone()));
    }
}
