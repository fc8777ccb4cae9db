//! Findings: the problems of files and the verdicts about objects as one list, each mistake once.
//!
//! In: what the source could not read, and what the pipeline said. Out: findings in the order of files and lines, with the place
//! of each, the place of the other object where there is one, and the name that was probably meant.
//!
//! A mistake is often seen twice: a value of the wrong type by the source and by the dialect, a misspelt field as unknown and as
//! missing. What names the place best is kept, with the severity of the worst.

use std::collections::HashMap;
use std::sync::Arc;

use model::{Code, ObjectRef, Origin, Severity, Verdict};
use source::{FieldPart, ObjectLocations, Problem, SourceLocation};

use super::suggestion::Names;

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The row of the table of codes.
    pub code: Code,
    /// How serious it is here.
    pub severity: Severity,
    /// What is wrong, without the name of the object.
    pub message: String,
    /// The object, where it is known.
    pub object: Option<ObjectRef>,
    /// The field; empty for the whole object.
    pub field: String,
    /// Where it stands.
    pub location: Option<SourceLocation>,
    /// The other object that the message speaks of, with its place.
    pub related: Option<(Origin, SourceLocation)>,
}

impl Finding {
    /// Something about all that was read.
    pub fn whole(code: Code, message: impl Into<String>) -> Self {
        let (object, field, location, related) = Default::default();
        Self { code, severity: code.severity(), message: message.into(), object, field, location, related }
    }

    /// What is wrong, with the name of the object.
    pub fn title(&self) -> String {
        match &self.object {
            Some(object) => format!("{object}: {}", self.message),
            None => self.message.clone(),
        }
    }

    fn of_problem(problem: &Problem) -> Self {
        Self {
            object: problem.object.clone(),
            field: problem.field.to_string(),
            location: problem.location.clone(),
            ..Self::whole(problem.code, &*problem.message)
        }
    }

    /// Where it comes in the list: what has no place at the end.
    fn order(&self) -> impl Ord + use<> {
        let place = self.location.as_ref().map(|location| (location.file.clone(), location.position));
        (place.is_none(), place, self.code, self.object.clone(), self.field.clone(), self.message.clone())
    }
}

/// All verdicts of a list by object.
pub fn verdicts(verdicts: &[(ObjectRef, Option<Arc<Vec<Verdict>>>)]) -> impl Iterator<Item = &Verdict> {
    verdicts.iter().filter_map(|(_, verdicts)| verdicts.as_deref()).flatten()
}

/// The findings of what was read and what was said about it.
pub fn gather(problems: &[&Problem], verdicts: &[&Verdict], origins: &ObjectLocations) -> Vec<Finding> {
    let mut findings: Vec<Finding> = problems.iter().map(|problem| Finding::of_problem(problem)).collect();
    let mut own = Vec::new();
    let mut of_objects: HashMap<&ObjectRef, Vec<usize>> = HashMap::new();
    for (at, problem) in problems.iter().enumerate() {
        problem.object.iter().for_each(|object| of_objects.entry(object).or_default().push(at));
    }
    for verdict in verdicts {
        let of_object = of_objects.get(&verdict.origin.object).into_iter().flatten();
        match of_object.copied().find(|&at| explains(problems[at], verdict)) {
            Some(at) => findings[at].severity = findings[at].severity.min(verdict.severity()),
            None => own.push(*verdict),
        }
    }
    let related: Vec<_> = own.iter().map(|verdict| verdict.related.as_deref()).collect();
    let places = own.iter().map(|verdict| (&verdict.origin, FieldPart::of(verdict.code)));
    let others = related.iter().flatten().map(|origin| (*origin, FieldPart::Value));
    let mut located = origins.locations(&places.chain(others).collect::<Vec<_>>()).into_iter();
    let places: Vec<_> = located.by_ref().take(own.len()).collect();
    let mut names = Names::new(origins);
    for ((verdict, location), other) in own.into_iter().zip(places).zip(related) {
        let there = other.and_then(|_| located.next().flatten());
        let mut message = verdict.message.to_string();
        if let Some(absent) = other.filter(|_| there.is_none())
            && let Some(suggestion) = names.near(&absent.object)
        {
            message = format!("{message}; {suggestion}");
        }
        findings.push(Finding {
            object: Some(verdict.origin.object.clone()),
            field: verdict.origin.field.to_string(),
            location,
            related: other.cloned().zip(there),
            ..Finding::whole(verdict.code, message)
        });
    }
    findings.sort_by_cached_key(Finding::order);
    findings.dedup();
    findings
}

/// Whether a verdict about the same object only says again what the source has said about the field, or follows from a field that was
/// misspelt.
fn explains(problem: &Problem, verdict: &Verdict) -> bool {
    let field = verdict.origin.field.as_str();
    if problem.code != Code::UnknownField {
        return *problem.field == *field;
    }
    let Some((meant, (parent, _))) = problem.meant.zip(problem.field.rsplit_once('.')) else { return false };
    let is_meant = |rest: &str| rest.strip_prefix('.') == Some(meant);
    verdict.severity() == Severity::Error
        && field.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || is_meant(rest))
}
