//! The status of an HTTPProxy: whether it is valid, what is wrong with it, where it is served, and whether proxies have
//! acknowledged it.
//!
//! In: the verdicts about the object, the addresses and the acknowledgements. Out: facts. `currentStatus`, the condition
//! `Valid`, and the types and reasons of its errors and warnings ([`reason`]) are Contour's, because tools read them; messages
//! are ours and begin with the code. `Programmed` is ours: Contour has no such condition.

pub mod reason;

use model::status::{
    Acknowledgement, Condition, Finding, Mark, ProxyState, Scope, StatusFacts, StatusInput, StatusKind, StatusLayout,
    StatusValue, Truth, cut,
};
use model::{Code, Severity, Verdict};
use std::{collections::BTreeMap, time::Duration};

/// The condition that says whether the object is accepted.
pub const VALID: &str = "Valid";
/// The condition that says whether proxies have acknowledged it.
pub const PROGRAMMED: &str = "Programmed";
/// The longest message of one type and reason: all of them together must fit into an object.
const LONGEST: usize = 8 * 1024;

/// The status of HTTPProxies.
pub const STATUS: StatusKind = StatusKind {
    layout: StatusLayout {
        fields: &["currentStatus", "description", "loadBalancer"],
        conditions: &[VALID, PROGRAMMED],
        lists: &[],
        // Contour says the same of a valid object, so there the address tells.
        marks: &[Mark::TextPrefix("description", "SES"), Mark::LoadBalancer("loadBalancer")],
    },
    facts,
    acknowledgement: Acknowledgement::Reported,
    interval: Duration::ZERO,
};

/// The status of a kind of which nothing is said but whether it is valid.
pub(crate) const fn valid_only(facts: fn(&StatusInput<'_>) -> StatusFacts) -> StatusKind {
    StatusKind {
        layout: StatusLayout { fields: &[], conditions: &[VALID], lists: &[], marks: &[] },
        facts,
        acknowledgement: Acknowledgement::Ignored,
        interval: Duration::ZERO,
    }
}

/// What that must say about an object of a kind.
pub(crate) fn valid_facts(kind: &str, input: &StatusInput<'_>) -> StatusFacts {
    let message = errors(input.verdicts).unwrap_or_else(|| format!("Valid {kind}"));
    let valid = valid(input.verdicts, &message);
    StatusFacts { object: Scope { conditions: vec![valid], ..Scope::default() }, lists: Vec::new() }
}

/// What the status must say.
pub fn facts(input: &StatusInput<'_>) -> StatusFacts {
    let orphaned = input.verdicts.iter().find(|verdict| verdict.code == Code::ProxyOrphaned);
    let (current, description) = match (errors(input.verdicts), orphaned) {
        (None, _) => ("valid", "Valid HTTPProxy".to_owned()),
        (_, Some(orphaned)) => ("orphaned", line(orphaned)),
        (Some(errors), None) => ("invalid", errors),
    };
    let valid = valid(input.verdicts, &description);
    let mut object = Scope {
        values: vec![("currentStatus", StatusValue::text(current)), ("description", StatusValue::Text(description))],
        conditions: vec![valid],
        ..Scope::default()
    };
    if !input.addresses.is_empty() {
        object.values.push(("loadBalancer", StatusValue::LoadBalancer(input.addresses.to_vec())));
    }
    match input.proxies {
        Some(proxies) => program(&mut object, proxies),
        None => object.kept.push(PROGRAMMED),
    }
    StatusFacts { object, lists: Vec::new() }
}

/// The first error, and how many there are besides; nothing where there is none.
pub(crate) fn errors(verdicts: &[Verdict]) -> Option<String> {
    let mut errors = verdicts.iter().filter(|verdict| verdict.severity() == Severity::Error);
    let (first, more) = (errors.next()?, errors.count());
    Some(if more == 0 { line(first) } else { format!("{} (and {more} more, see errors)", line(first)) })
}

/// The condition `Valid`, with all errors and warnings.
pub(crate) fn valid(verdicts: &[Verdict], message: &str) -> Condition {
    let is_valid = errors(verdicts).is_none();
    let reason = if is_valid { "Valid" } else { "ErrorPresent" };
    let findings =
        [("errors", Severity::Error), ("warnings", Severity::Warning)].map(|(name, of)| (name, findings(verdicts, of)));
    Condition { findings: findings.into(), ..Condition::new(VALID, is_valid.into(), reason, message) }
}

/// Says whether proxies have it. A proxy that joins takes nothing back, nor does a restart of ours: only that no proxy has been
/// connected for a while stands over what was acknowledged.
fn program(object: &mut Scope, proxies: &ProxyState) {
    let new = |status, reason| Condition::new(PROGRAMMED, status, reason, proxies.message());
    match proxies {
        ProxyState::Pending | ProxyState::Waiting => object.initial.push(new(Truth::Unknown, "Pending")),
        ProxyState::NoProxies { is_lasting: false } => object.initial.push(new(Truth::False, "NoProxies")),
        ProxyState::NoProxies { is_lasting: true } => object.conditions.push(new(Truth::False, "NoProxies")),
        ProxyState::Acknowledged { refusal: Some(_), .. } => {
            object.conditions.push(new(Truth::True, "PartiallyProgrammed"))
        }
        ProxyState::Acknowledged { refusal: None, .. } => {
            object.conditions.push(Condition { message_matters: false, ..new(Truth::True, "Programmed") })
        }
    }
}

fn line(verdict: &Verdict) -> String {
    match verdict.origin.field.as_str() {
        "" => format!("{}: {}", verdict.code, verdict.message),
        field => format!("{}: {field}: {}", verdict.code, verdict.message),
    }
}

/// The verdicts of a severity: one finding for each type and reason, with all its messages.
fn findings(verdicts: &[Verdict], severity: Severity) -> Vec<Finding> {
    let mut texts: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for verdict in verdicts.iter().filter(|verdict| verdict.severity() == severity) {
        texts.entry(reason::of(verdict)).or_default().push(line(verdict));
    }
    let findings = texts.into_iter().map(|(words, lines)| Finding {
        kind: words.kind,
        reason: words.reason,
        message: joined(&lines),
    });
    findings.collect()
}

/// All lines, or as many as there is room for.
fn joined(lines: &[String]) -> String {
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        let (rest, line) = (lines.len() - index, cut(line, LONGEST));
        if text.is_empty() {
            text.push_str(&line);
        } else if text.len() + line.len() > LONGEST {
            return text + &format!("; and {rest} more");
        } else {
            text.push_str("; ");
            text.push_str(&line);
        }
    }
    text
}

#[cfg(test)]
mod tests;
