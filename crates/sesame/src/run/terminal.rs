//! What a person sees: one line for each object whose state changed, and every finding as a compiler shows it. With
//! `--log-format json` findings are lines of JSON, and the rest goes to the log.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::sync::Arc;

use model::status::StatusFacts;
use model::{ObjectRef, Severity, Verdict};
use source::snippet::Style;
use source::{Problem, Subject};
use tracing::info;

use super::status_table;
use crate::control::BatchReport;
use crate::lint::{Report, counted, finding, json, text};
use crate::{logging, output};

/// What has been said so far, and where it is said.
pub struct Terminal {
    style: Style,
    states: BTreeMap<ObjectRef, State>,
    problems: BTreeMap<Subject, Vec<Problem>>,
}

/// How an object stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    errors: usize,
    warnings: usize,
}

impl State {
    fn of(verdicts: &[Verdict]) -> Self {
        let count = |severity| verdicts.iter().filter(|verdict| verdict.severity() == severity).count();
        Self { errors: count(Severity::Error), warnings: count(Severity::Warning) }
    }

    fn words(self) -> String {
        let some = |count: usize, word: &str| match count {
            0 => None,
            1 => Some(format!("1 {word}")),
            many => Some(format!("{many} {word}s")),
        };
        let found: Vec<String> =
            [some(self.errors, "error"), some(self.warnings, "warning")].into_iter().flatten().collect();
        if found.is_empty() { "ok".to_owned() } else { found.join(", ") }
    }
}

impl Terminal {
    /// Writes to standard output, in colours if that is a terminal.
    pub fn new() -> Self {
        let style = output::style(std::io::stdout().is_terminal());
        Self { style, states: BTreeMap::new(), problems: BTreeMap::new() }
    }

    /// How many errors there are now, of objects and of files.
    fn errors(&self) -> usize {
        let of_objects: usize = self.states.values().map(|state| state.errors).sum();
        let problems = self.problems.values().flatten();
        of_objects + problems.filter(|problem| problem.severity() == Severity::Error).count()
    }

    /// Says what a batch brought.
    pub fn batch(&mut self, news: &BatchReport<'_>) {
        let problems: Vec<&Problem> = news.problems.values().flatten().collect();
        let verdicts: Vec<&Verdict> = finding::verdicts(news.verdicts).collect();
        let found = finding::gather(&problems, &verdicts, news.origins);
        let mut text = if logging::is_json() { json::lines(&found) } else { text::findings(&found, self.style) };
        say(&text);
        for (subject, problems) in news.problems {
            self.problems(subject, problems);
        }
        text.clear();
        self.rows(&mut text, news.verdicts, news.facts);
        if logging::is_json() {
            let (objects, errors) = (self.states.len(), self.errors());
            if !text.is_empty() || news.published {
                info!(objects, errors, published = news.published, took = ?news.took, "applied the files");
            }
            return;
        }
        if !text.is_empty() || news.published {
            let sent = if news.published { "sent to Envoy" } else { "nothing to send" };
            let _infallible = writeln!(
                text,
                "{}, {}; {sent} after {:.1} ms",
                counted(self.states.len(), "object"),
                counted(self.errors(), "error"),
                news.took.as_secs_f64() * 1000.0,
            );
        }
        say(&text);
    }

    /// Says what a check found: the findings, how each object stands, and the sum.
    pub fn report(&mut self, report: &Report) {
        if logging::is_json() {
            return say(&json::lines(&report.findings));
        }
        let mut text = text::findings(&report.findings, self.style);
        self.rows(&mut text, &report.verdicts, &report.facts);
        let _infallible = writeln!(text, "{}", text::summary(report));
        say(&text);
    }

    /// A line for each object whose state changed, and its status.
    fn rows(
        &mut self,
        text: &mut String,
        verdicts: &[(ObjectRef, Option<Arc<Vec<Verdict>>>)],
        facts: &[(ObjectRef, Option<Arc<StatusFacts>>)],
    ) {
        for (object, verdicts) in verdicts {
            match verdicts {
                Some(verdicts) => {
                    let state = State::of(verdicts);
                    self.states.insert(object.clone(), state);
                    let _infallible = writeln!(text, "  {:<48} {}", object.to_string(), state.words());
                }
                None => {
                    self.states.remove(object);
                    let _infallible = writeln!(text, "  {:<48} gone", object.to_string());
                }
            }
        }
        for (object, facts) in facts.iter().filter_map(|(object, facts)| Some((object, facts.as_ref()?))) {
            status_table::write(text, object, facts);
        }
    }

    /// Remembers what is wrong with a file, and says when nothing is any more.
    fn problems(&mut self, subject: &Subject, problems: &[Problem]) {
        if !problems.is_empty() {
            self.problems.insert(subject.clone(), problems.to_vec());
            return;
        }
        let before = self.problems.remove(subject).unwrap_or_default();
        if before.iter().any(|problem| problem.severity() != Severity::Note) {
            let (what, is_there) = match subject {
                Subject::Source(name) => (name.to_string(), true),
                Subject::File(path) => (path.display().to_string(), path.exists()),
                Subject::Object(object) => (object.to_string(), true),
            };
            let now = if is_there { "is valid again" } else { "is gone, and its problems with it" };
            announce(&format!("{what} {now}"));
        }
    }
}

/// Says a line: to standard output, or as a line of the log where everything is to be JSON.
pub fn announce(line: &str) {
    if logging::is_json() {
        info!("{line}");
    } else {
        say(&format!("{line}\n"));
    }
}

/// Writes to standard output; that nobody reads it any more is no error of ours.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _closed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
