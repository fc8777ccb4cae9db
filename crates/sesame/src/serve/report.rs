//! Reports the results of each batch to the status writer, the debug pages and the log.

use std::{collections::BTreeMap, time::Instant};

use admin::{Note, Recorder, Task};
use model::Verdict;
use resolve::Rejection;
use source::outage::Outage;
use source::{Problem, Subject, cluster::Connection};
use status::{Report, Reporter};
use tokio::sync::watch;
use tracing::{info, warn};

use super::programmed::Programmed;
use crate::control::BatchReport;

/// Reports the results of batches.
pub struct BatchReporter {
    reporter: Reporter,
    programmed: Programmed,
    recorder: Recorder,
    /// Done with the first report after all objects were listed.
    first_build: Option<Task>,
    /// While the first build is blocked: every batch reports it again.
    blocked: Outage,
    /// What is wrong with sources until the first build is complete.
    sources: BTreeMap<Subject, String>,
    /// Why no spans are sent.
    tracing_problem: watch::Sender<Option<Rejection>>,
}

impl BatchReporter {
    /// A reporter before the first batch.
    pub fn new(reporter: Reporter, programmed: Programmed, recorder: Recorder, first_build: Task) -> Self {
        let (blocked, sources, tracing_problem) = Default::default();
        Self { reporter, programmed, recorder, first_build: Some(first_build), blocked, sources, tracing_problem }
    }

    /// Why no spans are sent, as it changes.
    pub fn tracing_problem(&self) -> watch::Receiver<Option<Rejection>> {
        self.tracing_problem.subscribe()
    }

    /// Says why the replica is not ready: what does not fit, else what is wrong with sources.
    fn wait(&mut self, batch: &BatchReport<'_>) {
        for (subject, problems) in batch.problems {
            match (subject, problems.as_slice()) {
                (Subject::Source(_), []) => self.sources.remove(subject),
                (Subject::Source(name), [problem, ..]) => {
                    self.sources.insert(subject.clone(), format!("{name}: {problem}"))
                }
                (Subject::File(_) | Subject::Object(_), _) => None,
            };
        }
        let Some(task) = &self.first_build else { return };
        if let Some(why) = &batch.blocked {
            if self.blocked.failed(Instant::now()).is_some() {
                warn!("not ready: {why}");
            }
            task.waits(Some(why.clone()));
        } else if batch.is_complete {
            info!(took = ?batch.took, "first build complete");
            self.sources.clear();
            if let Some(task) = self.first_build.take() {
                task.done();
            }
        } else {
            let all: Vec<&str> = self.sources.values().map(String::as_str).chain(batch.awaited.as_deref()).collect();
            task.waits((!all.is_empty()).then(|| all.join("; ")));
        }
    }

    /// Reports the results of a batch.
    pub fn report(&mut self, batch: BatchReport<'_>) {
        for (subject, problems) in batch.problems {
            log(subject, problems);
        }
        if self.first_build.is_some() {
            self.wait(&batch);
        }
        if batch.is_complete {
            let problem = batch.pipeline.tracing_problem();
            self.tracing_problem.send_if_modified(|known| {
                let is_other = known.as_ref() != problem;
                if is_other {
                    *known = problem.cloned();
                }
                is_other
            });
        }
        self.recorder.note(note(&batch));
        let problems = batch.problems.iter().filter_map(|(subject, problems)| match subject {
            Subject::Object(key) => {
                let verdict =
                    |problem: &Problem| Verdict::new(problem.code, key.at(&*problem.field), problem.message.clone());
                Some((key.clone(), problems.iter().map(verdict).collect()))
            }
            Subject::Source(_) | Subject::File(_) => None,
        });
        self.reporter.report(Report {
            problems: problems.collect(),
            objects: batch.objects,
            verdicts: batch.verdicts.to_vec(),
            facts: batch.facts.to_vec(),
            programmed: self.programmed.take(batch.object_resources, batch.gone),
            synced: batch.is_complete,
        });
    }
}

/// What a batch did, for the debug pages.
pub fn note<'a>(batch: &BatchReport<'a>) -> Note<'a> {
    let engine = batch.pipeline.engine();
    Note {
        tables: engine.counters(),
        objects: batch.pipeline.objects(),
        batch: engine.last_batch(),
        verdicts: batch.verdicts,
        expiries: batch.pipeline.soonest_expiries(admin::MOST_CERTIFICATES),
        took: batch.took,
        published: batch.published,
    }
}

fn log(subject: &Subject, problems: &[Problem]) {
    if *subject == Connection::subject() {
        // The connection logs its own outages.
        return;
    }
    for problem in problems {
        match subject {
            Subject::Source(name) => warn!(code = %problem.code, "{name}: {problem} ({})", problem.code.help()),
            Subject::File(_) | Subject::Object(_) => warn!(code = %problem.code, "{problem} ({})", problem.code.help()),
        }
    }
}
