//! The configuration while the server runs: a changed file or object takes effect without a restart.
//!
//! In: configurations, or why one cannot be used. Out: settings for the control loop, addresses for status, the log level, and
//! sockets for pages. A configuration is applied as a whole or refused as a whole: then the one before stays in effect, with a
//! line in the log, a metric, and, where it is an object, its condition and an event. One that is refused for a reason that may pass
//! is tried again ([`retry`]). What a running process cannot change is said by its key.

pub mod file;
mod metrics;
pub mod object;
mod retry;

use std::path::PathBuf;
use std::sync::Arc;

use admin::LogFilter;
use anyhow::Result;
use kinds::Object;
use kube::Client;
use model::{Code, ObjectRef, Verdict};
use resolve::Rejection;
use source::Problem;
use status::report::Verdicts;
use status::{Identity, Report, Reporter};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::config::Config;
use super::pages::Pages;
use super::plan::Plan;
use crate::cmd::serve::Args;
use file::FollowedFile;
pub use metrics::Metrics;
use object::{Current, FollowedObject};
use retry::Retry;

/// Where the configuration is written.
pub enum ConfigSource {
    /// Nowhere but on the command line.
    Flags,
    /// In a file.
    File(PathBuf),
    /// In a ContourConfiguration of this namespace and name, which was so at the start.
    Object(Client, String, String, Box<Current>),
}

/// Why a configuration is not applied.
struct Rejected {
    problems: Vec<Problem>,
    /// The configuration, if the reason lies outside of it and may pass.
    again: Option<Box<Config>>,
}

/// What takes configurations.
pub struct Live {
    /// The command line, which overrides every configuration.
    pub args: Args,
    /// The configuration in effect.
    pub config: Config,
    /// What it means together with the command line.
    pub plan: Plan,
    /// What is logged.
    pub log: LogFilter,
    /// What is logged unless the configuration says otherwise.
    pub usual_log: String,
    /// To the control loop.
    pub settings: mpsc::UnboundedSender<pipeline::Settings>,
    /// To the status writer.
    pub reporter: Reporter,
    /// Health, metrics and debug pages.
    pub pages: Pages,
    /// What is counted.
    pub metrics: Metrics,
    /// Why no spans are sent.
    pub tracing_problem: watch::Receiver<Option<Rejection>>,
}

impl Live {
    /// Follows the configuration until `stop`.
    pub async fn run(mut self, origin: ConfigSource, stop: CancellationToken) -> Result<()> {
        let following = async {
            match origin {
                ConfigSource::Flags => std::future::pending().await,
                ConfigSource::File(path) => self.follow_file(path).await,
                ConfigSource::Object(client, namespace, name, at_start) => {
                    self.follow_object(FollowedObject::new(client, &namespace, &name, &at_start)).await;
                }
            }
        };
        stop.run_until_cancelled(following).await;
        self.pages.ended().await
    }

    async fn follow_file(&mut self, path: PathBuf) {
        let mut file = FollowedFile::new(path.clone());
        let mut retry = Retry::default();
        loop {
            let (config, is_retry) = tokio::select! {
                read = file.next() => (read.and_then(|text| Config::parse(&path, &text)), false),
                config = retry.due() => (Ok(config), true),
            };
            match self.take_or_retry(config, &mut retry).await {
                Ok(late) => report_late(&late),
                Err(_) if is_retry => {}
                Err(problems) => self.refuse(&format!("file {}", path.display()), &problems),
            }
        }
    }

    async fn follow_object(&mut self, mut object: FollowedObject) {
        // Whose settings were taken or refused last: our own writes to its status are no change of them.
        let mut seen: Option<(ObjectRef, serde_json::Value)> = None;
        // What is said about the settings themselves.
        let mut reported = Vec::new();
        let mut retry = Retry::default();
        loop {
            let (key, current) = tokio::select! {
                next = object.next() => next,
                Ok(()) = self.tracing_problem.changed() => {
                    if let Some((key, _)) = &seen {
                        let verdicts = vec![(key.clone(), Some(self.with_tracing(key, &reported)))];
                        self.reporter.report(Report { verdicts, ..Report::default() });
                    }
                    continue;
                }
                config = retry.due() => {
                    let taken = self.take_or_retry(Ok(config), &mut retry).await;
                    if let (Ok(late), Some((key, _))) = (taken, &seen) {
                        reported = report_late_of(key, &late);
                        let verdicts = vec![(key.clone(), Some(self.with_tracing(key, &reported)))];
                        self.reporter.report(Report { verdicts, ..Report::default() });
                    }
                    continue;
                }
            };
            let Some(Current { spec, object: current }) = current else {
                warn!("{key} was deleted; the configuration stays in effect as it was");
                seen = None;
                retry.set(None);
                self.report(key, None, Some(None));
                continue;
            };
            if seen.as_ref().is_some_and(|(of, before)| *of == key && *before == spec) {
                self.report(key, Some(current), None);
                continue;
            }
            reported = match self.take_or_retry(Config::of_object(&spec), &mut retry).await {
                Ok(late) => report_late_of(&key, &late),
                Err(problems) => {
                    self.refuse(&key.to_string(), &problems);
                    problems.iter().map(|problem| verdict(&key, problem)).collect()
                }
            };
            let verdicts = self.with_tracing(&key, &reported);
            seen = Some((key.clone(), spec));
            self.report(key, Some(current), Some(Some(verdicts)));
        }
    }

    /// What is said about the object: about its settings, and that no spans are sent.
    fn with_tracing(&mut self, key: &ObjectRef, reported: &[Verdict]) -> Arc<Vec<Verdict>> {
        let problem = self.tracing_problem.borrow_and_update();
        let code = Code::TracingUnusable;
        let tracing = problem.iter().map(|problem| {
            let field = key.at("spec.tracing.extensionService");
            Verdict::new(code, field, format!("{}: {}", code.title(), problem.why))
        });
        Arc::new(reported.iter().cloned().chain(tracing).collect())
    }

    /// Tells the status writer of the object, and of what is said about it where that may be new.
    fn report(&self, key: ObjectRef, object: Option<Object>, verdicts: Option<Verdicts>) {
        self.reporter.report(Report {
            verdicts: verdicts.into_iter().map(|verdicts| (key.clone(), verdicts)).collect(),
            objects: vec![(key, object)],
            ..Report::default()
        });
    }

    /// Applies a configuration, or says what is wrong with it, and tries it again if that may pass.
    async fn take_or_retry(
        &mut self,
        config: Result<Config, Vec<Problem>>,
        retry: &mut Retry,
    ) -> Result<Vec<&'static str>, Vec<Problem>> {
        let taken = match config {
            Ok(config) => self.take(config).await,
            Err(problems) => Err(Rejected { problems, again: None }),
        };
        let (taken, again) = match taken {
            Ok(late) => (Ok(late), None),
            Err(Rejected { problems, again }) => (Err(problems), again),
        };
        retry.set(again.map(|config| *config));
        taken
    }

    /// Applies a configuration; gives the keys that a running process does not change.
    async fn take(&mut self, config: Config) -> Result<Vec<&'static str>, Rejected> {
        if config == self.config {
            self.metrics.applied(false);
            return Ok(self.late(&config));
        }
        let problem = |error: anyhow::Error| {
            // The command line is what it was: it is the configuration that does not go with it.
            let code = crate::problem::code(&error).filter(|code| *code != Code::CommandLine);
            vec![Problem::new(code.unwrap_or(Code::ConfigValue), format!("{error:#}"))]
        };
        let plan = Plan::new(&self.args, config.clone(), |name| std::env::var(name).ok())
            .map_err(|error| Rejected { problems: problem(error), again: None })?;
        let pages = self.pages.prepare(&plan).await;
        let pages = pages.map_err(|error| Rejected { problems: problem(error), again: Some(config.clone().into()) })?;
        self.pages.apply(pages);
        if plan.verbose != self.plan.verbose {
            let filter = if plan.verbose { "debug" } else { &self.usual_log };
            if let Err(why) = (self.log.set)(filter) {
                warn!("the log cannot be set to {filter}: {why}");
            }
        }
        for (code, warning) in plan.warnings.iter().filter(|warning| !self.plan.warnings.contains(warning)) {
            warn!(%code, "{code}: {warning} ({})", code.help());
        }
        if plan.pipeline != self.plan.pipeline {
            // It ends with the server.
            let _ = self.settings.send(pipeline::Settings { fetched_secrets: true, ..plan.pipeline.clone() });
        }
        let identity = |plan: &Plan| Identity {
            addresses: plan.status.addresses.clone(),
            controller: plan.status.controller.clone(),
        };
        if identity(&plan) != identity(&self.plan) {
            self.reporter.set_identity(identity(&plan));
        }
        // What was so at the start stays so.
        self.plan = Plan { at_start: std::mem::take(&mut self.plan.at_start), ..plan };
        let late = self.late(&config);
        self.config = config;
        self.metrics.applied(true);
        info!("the changed configuration is in effect");
        Ok(late)
    }

    /// The keys of a configuration that are not as they were at the start, and will be only after a restart.
    fn late(&self, config: &Config) -> Vec<&'static str> {
        let (then, now) = (&self.plan.at_start, &config.at_start);
        let keys: std::collections::BTreeSet<_> = then.keys().chain(now.keys()).copied().collect();
        keys.into_iter().filter(|key| then.get(key) != now.get(key)).collect()
    }

    fn refuse(&self, origin: &str, problems: &[Problem]) {
        self.metrics.rejected();
        for problem in problems {
            warn!(code = %problem.code, "{problem} ({})", problem.code.help());
        }
        let code = Code::ConfigRejected;
        warn!(%code, "{code}: {origin}: {} ({})", code.title(), code.help());
    }
}

fn report_late(late: &[&'static str]) {
    if !late.is_empty() {
        let code = Code::ConfigAtStart;
        warn!(%code, "{code}: {}: {} ({})", late.join(", "), code.title(), code.help());
    }
}

/// The same as verdicts on the object.
fn report_late_of(key: &ObjectRef, late: &[&'static str]) -> Vec<Verdict> {
    report_late(late);
    late.iter().map(|field| late_verdict(key, field)).collect()
}

fn late_verdict(key: &ObjectRef, field: &str) -> Verdict {
    let code = Code::ConfigAtStart;
    Verdict::new(code, key.at(format!("spec.{field}").as_str()), code.title())
}

fn verdict(key: &ObjectRef, problem: &Problem) -> Verdict {
    let field = if problem.field.is_empty() { "spec" } else { &*problem.field };
    Verdict::new(problem.code, key.at(field), problem.message.clone())
}
