//! The status of a route: the conditions of each parent that is ours, and of no other.

use super::{
    UNSUPPORTED_VALUE,
    attachment::{NotAttached, Parent},
};
use crate::status::conditions::{self, ACCEPTED, RESOLVED_REFS};
use kinds::gateway::reference::ParentReference;
use model::status::{
    Acknowledgement, AtomicList, Entry, ListLayout, Scope, StatusFacts, StatusKind, StatusLayout, StatusValue, Truth,
};
use std::time::Duration;

/// Whether parts of the route are left out; never False.
pub const PARTIALLY_INVALID: &str = "PartiallyInvalid";

/// The most entries of the list of parents.
const PARENTS: usize = 32;

/// How many findings a message lists.
const LISTED: usize = 5;

/// The status of routes.
pub const ROUTE: StatusKind = StatusKind {
    layout: StatusLayout {
        lists: &[ListLayout {
            field: "parents",
            fields: &[],
            conditions: &[ACCEPTED, RESOLVED_REFS, PARTIALLY_INVALID],
            atomic: Some(AtomicList { owner: "controllerName", limit: PARENTS }),
        }],
        ..StatusLayout::EMPTY
    },
    facts: |input| input.translated.cloned().unwrap_or_default(),
    acknowledgement: Acknowledgement::Awaited,
    interval: Duration::ZERO,
};

/// What became of a route at one parent.
pub(crate) struct ParentStatus<'r> {
    pub reference: &'r ParentReference,
    pub refused: Option<NotAttached>,
}

impl<'r> From<&Parent<'r>> for ParentStatus<'r> {
    fn from(parent: &Parent<'r>) -> Self {
        Self { reference: parent.reference, refused: parent.refused().cloned() }
    }
}

/// What the status says. References are judged whether the route is accepted or not.
pub(crate) fn facts(
    controller: &str,
    parents: Vec<ParentStatus<'_>>,
    unresolved: &[(&'static str, String)],
    dropped: &[String],
) -> StatusFacts {
    let resolved = match unresolved.first() {
        None => conditions::resolved(),
        Some((reason, _)) => {
            let message = listed(unresolved.iter().map(|(_, why)| why.as_str()));
            conditions::new(RESOLVED_REFS, Truth::False, reason, message)
        }
    };
    let partial = (!dropped.is_empty()).then(|| {
        let message = listed(dropped.iter().map(String::as_str));
        conditions::new(PARTIALLY_INVALID, Truth::True, UNSUPPORTED_VALUE, message)
    });
    let entries = parents.into_iter().map(|parent| {
        let is_attached = parent.refused.is_none();
        let accepted = match parent.refused {
            None => conditions::accepted("The route is attached."),
            Some(NotAttached { reason, code, why }) => conditions::refused(ACCEPTED, reason, code, why),
        };
        let partial = partial.clone().filter(|_| is_attached);
        let conditions = [accepted, resolved.clone()].into_iter().chain(partial).collect();
        Entry {
            identity: vec![
                ("parentRef", StatusValue::Record(reference(parent.reference))),
                ("controllerName", StatusValue::text(controller)),
            ],
            scope: Scope { conditions, ..Scope::default() },
        }
    });
    StatusFacts { object: Scope::default(), lists: vec![("parents", entries.take(PARENTS).collect())] }
}

/// A parentRef with the fields that it has.
fn reference(reference: &ParentReference) -> Vec<(&'static str, StatusValue)> {
    let ParentReference { group, kind, namespace, name, section_name, port } = reference;
    let text = |field, value: &Option<Box<str>>| value.as_deref().map(|value| (field, StatusValue::text(value)));
    let fields = [
        text("group", group),
        text("kind", kind),
        text("namespace", namespace),
        Some(("name", StatusValue::text(&**name))),
        text("sectionName", section_name),
        port.map(|port| ("port", StatusValue::Integer(port))),
    ];
    fields.into_iter().flatten().collect()
}

/// The first findings, and how many there are besides.
fn listed<'t>(findings: impl ExactSizeIterator<Item = &'t str>) -> String {
    let more = findings.len().saturating_sub(LISTED);
    let mut text = findings.take(LISTED).collect::<Vec<_>>().join("; ");
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    text
}
