//! What must be written so that an object says what it should.
//!
//! In: the facts of a dialect, the layout of the kind, and the status as it is. Out: a [`Change`], or nothing where the object
//! says it already. There is no clock and no API server in here.
//!
//! Where the API server merges lists by their keys, our part is sent as a server-side apply: it knows who owns which field, so
//! foreign conditions stay, and what we no longer state goes. A list that is atomic would be replaced as a whole by that, so
//! our entries in it are patched one by one ([`json_patch`]).

mod json_patch;

use crate::{observed::hash_of, render};
use model::status::{Address, Entry, ListLayout, Mark, Scope, StatusFacts, StatusLayout};
use serde_json::Value;

/// What must be written to an object.
#[derive(Clone, Debug, PartialEq, Hash)]
pub(crate) enum Change {
    /// A server-side apply of our part of the status.
    Apply(Value),
    /// A server-side apply of nothing: what we own goes. What is left of an entry of which another controller has applied a part may not
    /// be valid in itself: then these operations are sent, which leave such an entry what it needs.
    Withdraw(Vec<Value>),
    /// A JSON patch of our entries, on exactly the version of the object that we know.
    Patch(Vec<Value>),
}

impl Change {
    /// What tells it from another.
    pub fn digest(&self) -> u64 {
        hash_of(self)
    }
}

/// An object as the decision needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Current<'a> {
    /// Where facts stand.
    pub layout: &'a StatusLayout,
    /// Its status.
    pub status: &'a Value,
    /// Its generation.
    pub generation: i64,
    /// The name under which our entries stand in lists that controllers share.
    pub controller: &'a str,
}

impl<'a> Current<'a> {
    /// The entries of a list that are ours, each with its position.
    fn own(&self, list: &ListLayout) -> impl Iterator<Item = (usize, &'a Value)> {
        let (owner, controller) = (list.atomic.map(|atomic| atomic.owner), self.controller);
        let is_own = move |entry: &Value| owner.is_none_or(|owner| entry[owner] == controller);
        render::list(&self.status[list.field]).iter().enumerate().filter(move |(_, entry)| is_own(entry))
    }
}

/// What must be written so that the object says these facts, if anything.
pub(crate) fn to(facts: &StatusFacts, current: Current<'_>) -> Option<Change> {
    if is_newer(facts, current) {
        return None;
    }
    if current.layout.is_atomic() {
        return json_patch::operations(facts, current).map(Change::Patch);
    }
    let wanted = render::over(facts, current.status, current.generation);
    if says(current.status, &wanted, facts, current.layout) {
        return None;
    }
    Some(if is_empty(&wanted) { withdrawal(current) } else { Change::Apply(wanted) })
}

/// What must be written to an object that is not ours, if it says something that may be ours. Where it is not known whether anything of
/// it is, the marks tell; and always of a kind without conditions, for which another controller may have written the same fields since.
pub(crate) fn to_withdraw(addresses: &[Address], has_ours: Option<bool>, current: Current<'_>) -> Option<Change> {
    let layout = current.layout;
    if layout.is_atomic() {
        return json_patch::operations_to_withdraw(current).map(Change::Patch);
    }
    let is_marked = || layout.marks.iter().any(|mark| has(mark, addresses, current.status));
    let has_ours = has_ours.filter(|_| !layout.conditions.is_empty()).unwrap_or_else(is_marked);
    (has_ours && says_anything(current)).then(|| withdrawal(current))
}

fn withdrawal(current: Current<'_>) -> Change {
    Change::Withdraw(json_patch::operations_to_withdraw(current).unwrap_or_default())
}

/// Whether a status shows by this mark that we wrote it.
fn has(mark: &Mark, addresses: &[Address], status: &Value) -> bool {
    match mark {
        Mark::TextPrefix(field, prefix) => status[*field].as_str().is_some_and(|text| text.starts_with(prefix)),
        Mark::LoadBalancer(field) => {
            let ours: Vec<Value> = addresses.iter().map(render::address).collect();
            let served = render::list(&status[*field]["ingress"]);
            !served.is_empty() && served.iter().all(|address| ours.contains(address))
        }
        Mark::Condition(kind, prefixes) => {
            let message = render::condition(status, kind).and_then(|condition| condition["message"].as_str());
            message.is_some_and(|message| prefixes.iter().any(|prefix| message.starts_with(prefix)))
        }
    }
}

/// Whether a status says anything where the facts of its kind stand, whoever said it.
fn says_anything(Current { layout, status, .. }: Current<'_>) -> bool {
    layout.fields.iter().any(|field| !is_empty(&status[*field]))
        || layout.conditions.iter().any(|kind| render::condition(status, kind).is_some())
        || layout.lists.iter().any(|list| !render::list(&status[list.field]).is_empty())
}

/// Whether the object says something about a later generation than we have seen: that stands.
fn is_newer(facts: &StatusFacts, current: Current<'_>) -> bool {
    let scope = |scope: &Scope, status: &Value| {
        let stated = scope.conditions.iter().chain(&scope.initial).map(|condition| condition.kind);
        let kinds = stated.chain(scope.kept.iter().copied());
        let mut stated = kinds.filter_map(|kind| render::condition(status, kind));
        stated.any(|condition| condition["observedGeneration"].as_i64().is_some_and(|seen| seen > current.generation))
    };
    let list = |list: &ListLayout| {
        stated(facts, list).iter().any(|entry| {
            let written = current.own(list).find(|(_, written)| render::is_about(entry, written));
            written.is_some_and(|(_, written)| scope(&entry.scope, written))
        })
    };
    scope(&facts.object, current.status) || current.layout.lists.iter().any(list)
}

/// The entries of a list that the facts state.
fn stated<'f>(facts: &'f StatusFacts, list: &ListLayout) -> &'f [Entry] {
    facts.lists.iter().find(|(field, _)| *field == list.field).map_or(&[], |(_, entries)| entries)
}

/// Whether the object says that already, whatever else it says.
fn says(current: &Value, wanted: &Value, facts: &StatusFacts, layout: &StatusLayout) -> bool {
    let list = |list: &ListLayout| {
        let (current, wanted) = (render::list(&current[list.field]), render::list(&wanted[list.field]));
        // The list is ours alone: an entry that we do not state was ours.
        current.len() == wanted.len()
            && stated(facts, list).iter().zip(wanted).all(|(entry, wanted)| {
                let written = current.iter().find(|written| render::is_about(entry, written));
                written.is_some_and(|written| scope_says(written, wanted, list.fields, list.conditions))
            })
    };
    scope_says(current, wanted, layout.fields, layout.conditions) && layout.lists.iter().all(list)
}

fn scope_says(current: &Value, wanted: &Value, fields: &[&str], conditions: &[&str]) -> bool {
    let same = |one: &Value, other: &Value| one == other || is_empty(one) && is_empty(other);
    fields.iter().all(|field| same(&current[*field], &wanted[*field]))
        && conditions.iter().all(|kind| render::condition(current, kind) == render::condition(wanted, kind))
}

/// Whether a value says nothing: an API server shows some fields that nobody wrote.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
