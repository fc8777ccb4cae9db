//! What a person sees: one line for each object whose state changed, and every finding as a compiler shows it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use model::{ObjectRef, Severity, Verdict};
use source::snippet::{self, Style};
use source::{Origins, Problem, Subject};

use super::status_table;
use crate::control::BatchReport;

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
        let style = if std::io::stdout().is_terminal() { Style::Colour } else { Style::Plain };
        Self { style, states: BTreeMap::new(), problems: BTreeMap::new() }
    }

    /// How many errors there are now, of objects and of files.
    pub fn errors(&self) -> usize {
        let of_objects: usize = self.states.values().map(|state| state.errors).sum();
        let problems = self.problems.values().flatten();
        of_objects + problems.filter(|problem| problem.severity() == Severity::Error).count()
    }

    /// Says what a batch brought.
    pub fn tell(&mut self, news: &BatchReport<'_>) {
        let mut text = String::new();
        for (subject, problems) in news.problems {
            self.problems(&mut text, subject, problems);
        }
        let mut rows = String::new();
        for (object, verdicts) in news.verdicts {
            match verdicts {
                Some(verdicts) => {
                    findings(&mut text, verdicts, news.origins, self.style);
                    let state = State::of(verdicts);
                    self.states.insert(object.clone(), state);
                    let _infallible = writeln!(rows, "  {:<48} {}", object.to_string(), state.words());
                }
                None => {
                    self.states.remove(object);
                    let _infallible = writeln!(rows, "  {:<48} gone", object.to_string());
                }
            }
        }
        for (object, facts) in news.facts.iter().filter_map(|(object, facts)| Some((object, facts.as_ref()?))) {
            status_table::write(&mut rows, object, facts);
        }
        text.push_str(&rows);
        if !text.is_empty() || news.published {
            let sent = if news.published { "sent to Envoy" } else { "nothing to send" };
            let _infallible = writeln!(
                text,
                "{} objects, {} errors; {sent} after {:.1} ms",
                self.states.len(),
                self.errors(),
                news.took.as_secs_f64() * 1000.0,
            );
        }
        say(&text);
    }

    fn problems(&mut self, text: &mut String, subject: &Subject, problems: &[Problem]) {
        if problems.is_empty() {
            self.problems.remove(subject);
            return;
        }
        for problem in problems.iter().filter(|problem| problem.severity() != Severity::Note) {
            let _infallible = writeln!(text, "{}\n", snippet::problem(problem, self.style));
        }
        self.problems.insert(subject.clone(), problems.to_vec());
    }
}

fn findings(text: &mut String, verdicts: &[Verdict], origins: &Origins, style: Style) {
    for verdict in verdicts {
        let location = origins.location(&verdict.origin);
        let _infallible = writeln!(text, "{}\n", snippet::verdict(verdict, location.as_ref(), style));
    }
}

/// Writes to standard output; that nobody reads it any more is no error of ours.
pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _closed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
