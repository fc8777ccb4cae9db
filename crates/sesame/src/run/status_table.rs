//! The status of an object as a table, where there is no API server to write it to.
//!
//! In: the facts. Out: a line for the object, and one for each entry of a list in its status (a listener, a parent): its conditions,
//! and what is counted.

use model::ObjectRef;
use model::status::{Condition, Scope, StatusFacts, StatusValue};
use std::fmt::Write as _;

/// Appends the lines of an object.
pub fn write(text: &mut String, object: &ObjectRef, facts: &StatusFacts) {
    line(text, "  ", &format!("status of {object}"), &facts.object);
    for (field, entries) in &facts.lists {
        for entry in entries {
            let identity: Vec<String> = entry.identity.iter().map(|(_, value)| shown(value)).collect();
            line(text, "    ", &format!("{field} {}", identity.join(" ")), &entry.scope);
        }
    }
}

fn line(text: &mut String, indent: &str, name: &str, scope: &Scope) {
    let counts = scope.values.iter().filter_map(|(field, value)| match value {
        StatusValue::Integer(number) => Some(format!("{field}={number}")),
        _ => None,
    });
    let cells: Vec<String> = scope.conditions.iter().map(condition).chain(counts).collect();
    let width = 50 - indent.len();
    let _infallible = writeln!(text, "{indent}{name:<width$} {}", cells.join(" "));
}

/// The type and status, and the reason where it says more.
fn condition(condition: &Condition) -> String {
    let Condition { kind, status, reason, .. } = condition;
    match reason {
        reason if reason == kind || *reason == "NoConflicts" => format!("{kind}={}", status.word()),
        reason => format!("{kind}={} ({reason})", status.word()),
    }
}

fn shown(value: &StatusValue) -> String {
    match value {
        StatusValue::Text(text) => text.clone(),
        StatusValue::Integer(number) => number.to_string(),
        StatusValue::List(list) => list.iter().map(shown).collect::<Vec<_>>().join(","),
        StatusValue::Record(fields) => fields.iter().map(|(_, value)| shown(value)).collect::<Vec<_>>().join("/"),
        StatusValue::LoadBalancer(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::kind;
    use model::status::{Entry, Truth};

    #[test]
    fn a_gateway_and_its_listeners() {
        let scope = |routes: i64, accepted: Truth, reason: &'static str| Scope {
            values: vec![("attachedRoutes", StatusValue::Integer(routes))],
            conditions: vec![Condition::new("Accepted", accepted, reason, "")],
            ..Scope::default()
        };
        let entry = |name: &str, scope| Entry { identity: vec![("name", StatusValue::text(name))], scope };
        let listeners = vec![
            entry("http", scope(2, Truth::True, "Accepted")),
            entry("https", scope(0, Truth::False, "HostnameConflict")),
        ];
        let object = Scope { values: Vec::new(), ..scope(0, Truth::True, "ListenersNotValid") };
        let facts = StatusFacts { object, lists: vec![("listeners", listeners)] };
        let mut text = String::new();
        write(&mut text, &ObjectRef::new(kind::GATEWAY, "default", "web"), &facts);
        let expected = "  status of Gateway default/web                    Accepted=True (ListenersNotValid)\n    \
                        listeners http                                 Accepted=True attachedRoutes=2\n    \
                        listeners https                                Accepted=False (HostnameConflict) attachedRoutes=0\n";
        assert_eq!(text, expected);
    }
}
