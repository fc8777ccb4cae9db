//! The life of one target: list it, watch it, and begin again when the watch cannot go on.
//!
//! In: pages and lines of JSON. Out: an [`Update`] for each list and for each handful of events that arrived together.
//! The module above says what is promised; [`list_watch`] does the work, this is what holds them together.

mod large;
mod list_watch;
mod object;

use crate::{
    Closed, Feeder, Problem, Subject, Update,
    cluster::{
        api::{Api, Discovered, Failure},
        backoff::{ApiConnection, Backoff},
        known::Known,
        target::Target,
    },
    fetch::FetchHandle,
};
use model::Code;
use std::{sync::Arc, time::Instant};
use tracing::{debug, info};

pub use object::undecodable;

/// After how many watches in a row that failed everything is listed again.
const WATCHES: u32 = 4;

/// How long the API server may be busy before it is said.
const BUSY: std::time::Duration = std::time::Duration::from_secs(3);

/// Why a list or a watch did not go on.
pub enum Stop {
    /// The API server.
    Failed(Failure),
    /// The listener.
    Closed,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Failed(failure)
    }
}

impl From<Closed> for Stop {
    fn from(_: Closed) -> Self {
        Stop::Closed
    }
}

/// Whether the kind is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// Not known yet.
    Unknown,
    /// It is.
    There,
    /// Since then the API server says that it is not.
    Doubtful(Instant),
    /// It is not.
    Absent,
}

/// Follows one target.
pub struct Follower {
    target: Target,
    api: Arc<Api>,
    feeder: Feeder,
    wants: FetchHandle,
    known: Known,
    presence: Presence,
    backoff: Backoff,
    absent_backoff: Backoff,
    /// What was last said to be wrong with the target as a whole.
    problem: Option<Problem>,
    /// Since when the API server has been busy whenever it was asked.
    busy_since: Option<Instant>,
    /// Since when the API server has answered "not found" of the kind, which it lists.
    unserved_since: Option<Instant>,
    /// Whether the next list is asked for in pages.
    is_paged: bool,
    /// How many watches in a row could not begin, or failed soon after.
    failed_watches: u32,
    /// The last watch that failed did so after it had begun, so that the next one must last before all is well.
    failed_in_stream: bool,
    /// The last watch was silent for too long, so that the next list shows whether it missed anything.
    was_silent: bool,
    /// It did.
    is_stalled: bool,
}

impl Follower {
    pub fn new(target: Target, api: Arc<Api>, feeder: Feeder, wants: FetchHandle) -> Self {
        let (backoff, absent_backoff) = (Backoff::after_failure(&api.timing), Backoff::after_absence(&api.timing));
        api.connection.connection.lists(&target.to_string());
        Self {
            target,
            api,
            feeder,
            wants,
            known: Known::default(),
            presence: Presence::Unknown,
            backoff,
            absent_backoff,
            problem: None,
            busy_since: None,
            unserved_since: None,
            is_paged: true,
            failed_watches: 0,
            failed_in_stream: false,
            was_silent: false,
            is_stalled: false,
        }
    }

    /// Lists and watches until nobody listens any more.
    pub async fn run(mut self) -> Closed {
        let mut version: Option<String> = None;
        loop {
            let mut found = self.api.connection.watch();
            let pause = match self.next(&mut version).await {
                Ok(None) => continue,
                Ok(Some(pause)) => pause,
                Err(Closed) => return Closed,
            };
            tokio::select! {
                () = tokio::time::sleep(pause.time) => {}
                _ = found.changed(), if pause.is_for_connection => {}
                () = self.feeder.closed() => return Closed,
            }
        }
    }

    /// Lists, or watches from a version on; how long to rest before the next try, unless it can go on at once.
    async fn next(&mut self, version: &mut Option<String>) -> Result<Option<Pause>, Closed> {
        let stopped = match version {
            Some(version) => self.watch(version).await,
            None if self.presence == Presence::Absent && !self.api.may_serve(&self.target).await => {
                return Ok(Some(Pause { time: self.absent_backoff.pause(None), is_for_connection: false }));
            }
            None => self.list().await.map(|listed| *version = Some(listed)),
        };
        match stopped {
            Ok(()) => Ok(None),
            Err(Stop::Closed) => Err(Closed),
            Err(Stop::Failed(failure)) => self.failed(failure, version).await.map(Some),
        }
    }

    /// What a failure means for the next try, and how long to wait for it.
    async fn failed(&mut self, failure: Failure, version: &mut Option<String>) -> Result<Pause, Closed> {
        let was_watching = version.is_some();
        // Only a list that follows the silence at once shows what the watch missed; after an outage it proves nothing.
        self.was_silent = matches!(failure, Failure::Silent);
        if !matches!(failure, Failure::Busy { .. }) {
            self.busy_since = None;
        }
        let is_away = matches!(failure, Failure::Unreachable(_) | Failure::Ended | Failure::Silent);
        self.failed_watches += u32::from(was_watching && !is_away);
        match &failure {
            Failure::Expired(why) => {
                debug!(resource = %self.target, why, "restarting list and watch");
                // The second list that outlives its own history is asked for in one piece.
                self.is_paged = was_watching;
                *version = None;
            }
            Failure::Unreachable(why) => {
                if let Some(problem) = self.api.connection.lost(why) {
                    let problems = [(ApiConnection::subject(), vec![problem])].into();
                    self.feeder.send(Update { problems, ..Update::default() }).await?;
                }
                return Ok(Pause { time: self.backoff.pause(None), is_for_connection: true });
            }
            Failure::Ended => {
                debug!(resource = %self.target, "the watch ended at once");
                return Ok(Pause { time: self.backoff.pause(None), is_for_connection: true });
            }
            Failure::Silent => {
                debug!(resource = %self.target, "the watch has been silent for too long; listing again");
                *version = None;
                return Ok(Pause { time: std::time::Duration::ZERO, is_for_connection: false });
            }
            // What is stored in another version is not handed out in this one while its conversion webhook does not answer.
            Failure::Other(why) | Failure::Refused(why)
                if why.contains("conversion webhook") && self.target.try_next_version() =>
            {
                debug!(resource = %self.target, %failure, "trying another version");
                *version = None;
                return Ok(Pause { time: std::time::Duration::ZERO, is_for_connection: false });
            }
            Failure::Missing(_) if self.target.try_next_version() => {
                debug!(resource = %self.target, %failure, "trying another version");
                *version = None;
                return Ok(Pause { time: std::time::Duration::ZERO, is_for_connection: false });
            }
            Failure::Missing(why) | Failure::Forbidden(why) => {
                *version = None;
                debug!(resource = %self.target, %failure, "probing for the kind");
                // A server that is starting says so of what is there; one that hides its readiness is believed later.
                let is_old =
                    matches!(self.presence, Presence::Doubtful(since) if since.elapsed() > self.api.timing.doubt);
                if is_old || self.api.is_ready().await {
                    // Nobody has rights to what is not there. And "not found" may be the answer of another API server behind the same
                    // address, one that has just started: of a kind of which nothing is known, a list of its group decides.
                    let is_new = self.known.len() == 0 && self.presence != Presence::Absent;
                    let is_missing = matches!(failure, Failure::Missing(_));
                    let discovered = match (is_new || !is_missing) && self.target.is_custom() {
                        true => self.api.discover(&self.target).await,
                        false => Discovered::Unknown,
                    };
                    if is_missing && discovered == Discovered::Listed {
                        let since = *self.unserved_since.get_or_insert_with(Instant::now);
                        // While a CRD is installed, or beside an API server that has just started, that is so for a moment.
                        if since.elapsed() > self.api.timing.doubt {
                            let answer = format!("the API server lists the kind, but answers {failure}");
                            let text = format!("{} cannot be read: {answer}", self.target);
                            self.report(Some(Problem::new(Code::ApiServerError, text))).await?;
                        }
                        return Ok(Pause { time: self.backoff.pause(None), is_for_connection: false });
                    }
                    let is_missing = is_missing || matches!(discovered, Discovered::NotInGroup | Discovered::NoGroup);
                    return self.absent(why.clone(), is_missing, discovered == Discovered::NotInGroup).await;
                }
                self.doubt();
            }
            Failure::Busy { .. } | Failure::Unauthorized(_) | Failure::Refused(_) | Failure::Other(_) => {
                if was_watching && self.failed_watches.is_multiple_of(WATCHES) {
                    // A version that this server cannot watch from, as after a restore of its data.
                    *version = None;
                }
                debug!(resource = %self.target, %failure, "cannot be read; trying again");
                let is_busy = matches!(failure, Failure::Busy { .. });
                // A server that has just started says so of every kind, for a moment.
                let is_new = is_busy && self.busy_since.get_or_insert_with(Instant::now).elapsed() < BUSY;
                if !is_new {
                    let why = format!("{} cannot be read: {failure}", self.target);
                    self.report(Some(Problem::new(failure.code(), why))).await?;
                }
            }
        }
        Ok(Pause { time: self.backoff.pause(failure.pause()), is_for_connection: false })
    }

    /// A ready API server answers that the kind does not exist, or that it is forbidden. `is_unlisted`: it serves the kind's group, and
    /// the kind in none of the group's versions, which is believed without a second request.
    async fn absent(&mut self, why: String, is_missing: bool, is_unlisted: bool) -> Result<Pause, Closed> {
        let why = if is_missing { why } else { format!("{why}; {}", self.target.missing_rule()) };
        let is_harmless = if is_missing { self.target.is_custom() } else { self.target.kind.is_optional() };
        match self.presence {
            _ if !is_harmless => {
                let why = format!("{} cannot be read, and nothing is served without: {why}", self.target);
                self.report(Some(denied(why))).await?;
                return Ok(Pause { time: self.backoff.pause(None), is_for_connection: false });
            }
            Presence::Unknown if is_unlisted => self.become_absent(&why, is_missing).await?,
            // Asked once more before it is believed: the first answer may be older than the readiness.
            Presence::Unknown | Presence::There => self.doubt(),
            Presence::Doubtful(since) => {
                // A right that was taken away deletes nothing. A kind that was deleted has had its objects deleted before,
                // so there is no hurry.
                let is_over = is_missing && since.elapsed() >= self.api.timing.absent_after;
                if self.known.len() == 0 || is_over {
                    self.become_absent(&why, is_missing).await?;
                } else {
                    self.report(Some(denied(format!("{} cannot be read: {why}", self.target)))).await?;
                }
            }
            Presence::Absent => {}
        }
        let time = match self.presence {
            Presence::Absent => self.absent_backoff.pause(None),
            _ => self.backoff.pause(None),
        };
        Ok(Pause { time, is_for_connection: false })
    }

    /// Tells that there is nothing of the kind, which is looked for from time to time.
    async fn become_absent(&mut self, why: &str, is_missing: bool) -> Result<(), Closed> {
        self.presence = Presence::Absent;
        self.unserved_since = None;
        let state = if is_missing { "not installed" } else { "forbidden" };
        info!(resource = %self.target, why, "kind {state}; checked periodically");
        self.empty().await?;
        self.absent_backoff.reset();
        match is_missing {
            // What could not be read is not there any more.
            true if self.problem.is_some() => self.report(None).await,
            true => Ok(()),
            false => self.report(Some(denied(format!("{} may not be read: {why}", self.target)))).await,
        }
    }

    fn doubt(&mut self) {
        if matches!(self.presence, Presence::Unknown | Presence::There) {
            self.presence = Presence::Doubtful(Instant::now());
        }
    }

    /// An answer: the connection stands.
    async fn reached(&mut self) -> Result<(), Closed> {
        if self.api.connection.found() {
            let problems = [(ApiConnection::subject(), Vec::new())].into();
            self.feeder.send(Update { problems, ..Update::default() }).await?;
        }
        Ok(())
    }

    /// Says whether the watch misses changes. Silence alone proves nothing: there may be no changes, and some API servers send no
    /// bookmarks.
    async fn stalled(&mut self, is_stalled: bool) -> Result<(), Closed> {
        if std::mem::replace(&mut self.is_stalled, is_stalled) == is_stalled {
            return Ok(());
        }
        self.api.connection.connection.stalled(&self.target.to_string(), is_stalled);
        if !is_stalled {
            return self.well().await;
        }
        let silence = self.api.timing.silence;
        let why = format!(
            "the watch of {} is stalled: it was silent for {silence:?} while objects changed; they are listed every {silence:?}",
            self.target
        );
        self.report(Some(Problem::new(Code::ApiServerError, why))).await
    }

    /// Whatever was wrong with the target is over, unless its watch is stalled.
    async fn well(&mut self) -> Result<(), Closed> {
        self.busy_since = None;
        if self.is_stalled {
            return Ok(());
        }
        if self.problem.take().is_some() {
            info!(resource = %self.target, "can be read again");
            self.report(None).await?;
        }
        Ok(())
    }

    /// Reports what is wrong with the target, if it is not what was last said.
    async fn report(&mut self, problem: Option<Problem>) -> Result<(), Closed> {
        if problem.is_some() && self.problem == problem {
            return Ok(());
        }
        self.problem.clone_from(&problem);
        let address = self.api.connection.connection.address();
        let subject = Subject::Source(format!("the API server at {address}: {}", self.target).into());
        let problems = problem.into_iter().collect();
        self.feeder.send(Update { problems: [(subject, problems)].into(), ..Update::default() }).await
    }
}

/// The API server says that a kind is not there, or not for us.
fn denied(why: String) -> Problem {
    Problem::new(Code::ApiServerFailed, why)
}

/// How long to wait, and whether that the API server is back ends it.
struct Pause {
    time: std::time::Duration,
    is_for_connection: bool,
}
