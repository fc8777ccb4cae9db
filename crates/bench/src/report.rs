//! What was measured: as JSON for machines, as tables for people.
//!
//! In: figures as the steps find them. Out: a [`Report`] that is written to a file and can be read again, so that tables
//! can be made of an earlier run.

mod hostile;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::hostile::{Fleet, Outcome};
use crate::machine::Machine;
use crate::usage::Usage;
use crate::world::{Wording, World};

/// One run of the whole benchmark.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// When it started.
    pub at: String,
    /// The arguments that made it.
    pub arguments: Vec<String>,
    /// The machine it ran on.
    pub machine: Machine,
    /// Every implementation in every world.
    pub runs: Vec<Run>,
    /// Every attack.
    #[serde(default)]
    pub hostile: Vec<Outcome>,
    /// Two replicas with many hosts.
    #[serde(default)]
    pub fleet: Option<Fleet>,
}

/// One implementation in one world.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    /// Who.
    pub implementation: String,
    /// At which version.
    pub version: String,
    /// With how many hosts.
    pub size: usize,
    /// Written how.
    pub wording: Wording,
    /// The figures by the names of [`ROWS`](crate::row::ROWS).
    pub rows: BTreeMap<String, f64>,
    /// What was used, after each step.
    pub usage: Vec<Used>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Why the rows after a certain one are missing.
    pub failed: Option<String>,
    /// All values that percentiles and medians are of.
    pub samples: BTreeMap<String, Vec<f64>>,
}

/// What controller and Envoy had used after a step.
#[derive(Debug, Serialize, Deserialize)]
pub struct Used {
    /// After which.
    pub step: Step,
    /// By the controller.
    pub controller: Usage,
    /// By Envoy.
    pub envoy: Usage,
}

/// The steps of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// From nothing to everything.
    Cold,
    /// Hosts that come.
    NewHost,
    /// Routes that change.
    RouteEdit,
    /// Endpoints that change.
    Endpoints,
    /// Providers of tokens that change.
    Provider,
    /// Many writes at once.
    Storm,
    /// A changed configuration file.
    Settings,
    /// A new controller process.
    Restart,
    /// Many clients.
    Clients,
}

impl Step {
    /// What the names of its rows begin with.
    pub fn key(self) -> &'static str {
        match self {
            Step::Cold => "cold",
            Step::NewHost => "new-host",
            Step::RouteEdit => "route-edit",
            Step::Endpoints => "endpoints",
            Step::Provider => "provider",
            Step::Storm => "storm",
            Step::Settings => "settings",
            Step::Restart => "restart",
            Step::Clients => "clients",
        }
    }

    /// Its name for people.
    fn label(self) -> &'static str {
        match self {
            Step::Cold => "cold start",
            Step::NewHost => "new hosts",
            Step::RouteEdit => "route edits",
            Step::Endpoints => "endpoint changes",
            Step::Provider => "provider edits",
            Step::Storm => "many writes",
            Step::Settings => "changed timeouts",
            Step::Restart => "restart",
            Step::Clients => "many clients",
        }
    }
}

impl Run {
    /// A run with nothing in it yet.
    pub fn new(implementation: &str, version: String, world: World) -> Run {
        Run {
            implementation: implementation.to_owned(),
            version,
            size: world.size,
            wording: world.wording,
            rows: BTreeMap::new(),
            usage: Vec::new(),
            notes: Vec::new(),
            failed: None,
            samples: BTreeMap::new(),
        }
    }

    /// Writes a row.
    pub fn put(&mut self, key: &str, value: f64) {
        self.rows.insert(key.to_owned(), value);
    }

    /// One of several values, of which a row will be made.
    pub fn sample(&mut self, key: &str, value: f64) {
        self.samples.entry(key.to_owned()).or_default().push(value);
    }

    /// Makes each of these rows the median of its values.
    pub fn medians(&mut self, keys: &[&str]) {
        for key in keys {
            if let Some(median) = self.samples.get(*key).and_then(|values| percentile(values, 50)) {
                self.put(key, median);
            }
        }
    }

    /// Makes a row of each of these percentiles; if it is the median alone, under the name itself.
    pub fn percentiles(&mut self, key: &str, percents: &[usize]) {
        for percent in percents {
            let name = if percents.len() == 1 { key.to_owned() } else { format!("{key}.p{percent}") };
            if let Some(value) = self.samples.get(key).and_then(|values| percentile(values, *percent)) {
                self.put(&name, value);
            }
        }
    }

    /// Books answers that nobody should have seen.
    pub fn unexpected(&mut self, step: Step, answers: BTreeMap<String, u64>) {
        let count: u64 = answers.values().sum();
        *self.rows.entry("unexpected".to_owned()).or_default() += count as f64;
        for (what, count) in answers {
            self.note(step, format!("unexpected answer, {count} times: {what}"));
        }
    }

    /// Books what was used.
    pub fn used(&mut self, step: Step, controller: Usage, envoy: Usage) {
        self.usage.push(Used { step, controller, envoy });
    }

    /// Says something to the reader.
    pub fn note(&mut self, step: Step, text: String) {
        self.notes.push(format!("{}: {text}", step.label()));
    }
}

/// The smallest value that is not below this share of all.
fn percentile(values: &[f64], percent: usize) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((values.len() * percent).div_ceil(100).saturating_sub(1)).copied()
}

impl Report {
    /// Writes it into a folder, under its time and as the latest; gives the first.
    pub fn write(&self, folder: &Path) -> Result<PathBuf> {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        let text = serde_json::to_string_pretty(self)?;
        let file = folder.join(format!("{}.json", self.at.replace(':', "-")));
        for path in [&file, &folder.join("latest.json")] {
            fs::write(path, &text).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(file)
    }

    /// Reads one that was written.
    pub fn read(file: &Path) -> Result<Report> {
        let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no report of this program", file.display()))
    }

    /// Its tables, as Markdown or for a terminal.
    pub fn tables(&self, markdown: bool) -> String {
        table::tables(self, markdown)
    }
}
