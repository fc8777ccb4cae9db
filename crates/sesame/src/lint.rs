//! Manifests checked without a cluster: what `sesame lint` and `sesame run --check --once` have in common.
//!
//! In: files, folders and texts, and the settings. Out: a [`Report`] with one [`Finding`] for each mistake, in the order of the
//! files. The objects go through the same pipeline that serves them, so nothing passes here that is refused there, and a new
//! dialect is checked as soon as the pipeline has it.
//!
//! Nothing is good that is not served: an input that holds nothing for Sesame is a finding, too ([`Code::NothingServed`]).

pub mod finding;
pub mod github;
pub mod json;
pub mod sarif;
mod suggestion;
pub mod text;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anyhow::Result;
use kinds::kind;
use model::status::StatusFacts;
use model::{Code, ObjectRef, Severity, Verdict};
use pipeline::{Dialects, Output, Pipeline, Settings};
use source::folder::{Input, Limits};
use source::{Batch, ObjectLocations, Problem};

use crate::control;
use crate::problem::Coded;
use finding::Finding;

/// What was found.
#[derive(Debug, Default)]
pub struct Report {
    /// The findings, in the order of files and lines.
    pub findings: Vec<Finding>,
    /// How much was looked at.
    pub summary: Summary,
    /// The kinds that nothing reads, as people write them.
    pub unread: Vec<String>,
    /// What is to be said about each object that the pipeline knows.
    pub verdicts: Vec<(ObjectRef, Option<Arc<Vec<Verdict>>>)>,
    /// What the status of objects says.
    pub facts: Vec<(ObjectRef, Option<Arc<StatusFacts>>)>,
}

/// How much was looked at, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The objects that were read.
    pub objects: usize,
    /// Those of them that Sesame serves or that say how it serves others.
    pub claimed: usize,
    /// The errors.
    pub errors: usize,
    /// The warnings.
    pub warnings: usize,
    /// The notes.
    pub notes: usize,
}

/// Codes about what only a running cluster can tell.
const LATER: [Code; 2] = [Code::ProxyJwksPending, Code::ProxyJwksNotFetched];

/// Codes of objects that are not served although they are of a kind that is.
const NOT_CLAIMED: [Code; 2] = [Code::OtherClass, Code::GatewayParentNotServed];

/// Whether the objects say which endpoints Services have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoints {
    /// They do: nobody else will.
    Known,
    /// The cluster makes them; where there are none among the objects, that says nothing.
    MadeByCluster,
}

/// Checks what the inputs hold.
pub fn check(inputs: &[Input], settings: &Settings, endpoints: Endpoints) -> Result<Report> {
    let batch = source::folder::read(inputs, Limits::default());
    let batch = batch.coded(Code::FileNotReadable, || "cannot read the manifests".to_owned())?;
    Ok(of(batch, settings, endpoints))
}

fn of(batch: Batch, settings: &Settings, endpoints: Endpoints) -> Report {
    let mut origins = ObjectLocations::default();
    origins.apply(&batch);
    let Batch { changes, problems, .. } = batch;
    let keys: Vec<ObjectRef> = changes.iter().map(|change| change.key.clone()).collect();
    let mut pipeline = Pipeline::new(settings);
    for change in changes {
        pipeline.put(&change.key, change.object);
    }
    let Output { verdicts, facts, .. } = pipeline.settle_at(control::now());
    let has_endpoints = endpoints == Endpoints::Known || keys.iter().any(|key| key.kind == kind::ENDPOINT_SLICE);
    let is_reported = |code: Code| !LATER.contains(&code) && (has_endpoints || code != Code::NoEndpoints);
    let reported = finding::verdicts(&verdicts).filter(|verdict| is_reported(verdict.code));
    let problems: Vec<&Problem> = problems.values().flatten().collect();
    let mut findings = finding::gather(&problems, &reported.collect::<Vec<_>>(), &origins);
    let claimed = claimed(&keys, &verdicts);
    if claimed == 0 && !findings.iter().any(|finding| finding.severity == Severity::Error) {
        findings.push(Finding::whole(Code::NothingServed, nothing_served(&keys, &findings)));
    }
    let unread = problems.iter().filter(|problem| problem.code == Code::UnknownKind);
    let unread: BTreeSet<String> = unread.map(|problem| problem.message.to_string()).collect();
    let unread = unread.iter().map(|message| message.split(" is not read").next().unwrap_or(message).to_owned());
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let summary = Summary {
        objects: keys.len(),
        claimed,
        errors: count(Severity::Error),
        warnings: count(Severity::Warning),
        notes: count(Severity::Note),
    };
    Report { summary, unread: unread.collect(), findings, verdicts, facts }
}

/// How many objects are of kinds that dialects translate, and served or judged by them.
fn claimed(keys: &[ObjectRef], verdicts: &[(ObjectRef, Option<Arc<Vec<Verdict>>>)]) -> usize {
    let dialects = Dialects::all();
    let reported: HashMap<_, _> =
        verdicts.iter().filter_map(|(key, reported)| Some((key, reported.as_deref()?))).collect();
    let is_claimed = |key: &ObjectRef| {
        let reported = reported.get(key);
        reported.is_some_and(|reported| !reported.iter().any(|verdict| NOT_CLAIMED.contains(&verdict.code)))
    };
    keys.iter().filter(|key| dialects.of(key.kind).is_some() && is_claimed(key)).count()
}

/// Why nothing is served.
fn nothing_served(keys: &[ObjectRef], findings: &[Finding]) -> String {
    if keys.is_empty() && findings.is_empty() {
        return "there is no object in it: folders are searched for *.yaml, *.yml and *.json".to_owned();
    }
    let dialects = Dialects::all();
    let of_other_classes = keys.iter().filter(|key| dialects.of(key.kind).is_some()).count();
    if of_other_classes > 0 {
        return match of_other_classes {
            1 => "1 object is of a kind that Sesame serves, and it is not served".to_owned(),
            many => format!("{many} objects are of kinds that Sesame serves, and none of them is served"),
        };
    }
    let mut served: Vec<&str> =
        dialects.iter().flat_map(|dialect| dialect.translates()).map(|kind| kind.name()).collect();
    served.dedup();
    format!("no object is of a kind that Sesame serves: {}", served.join(", "))
}

/// `1 error`, `2 errors`.
pub fn counted(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        many => format!("{many} {word}s"),
    }
}
