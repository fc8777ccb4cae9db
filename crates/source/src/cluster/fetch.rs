//! The contents of objects that are watched by name only, fetched when something refers to them.
//!
//! In: what is wanted and what is not any more, and word from the watch that a wanted one has changed. Out: a [`Change`] for
//! each want: the object, or that there is none, with a problem if that is so only as far as we can tell. What was read before
//! stays in force. When what is fetched is decided by [`Schedule`].

use crate::{
    Change, ChangeSource, Closed, Feeder, Problem, Subject, Update,
    cluster::{
        Timing,
        api::{Api, Failure},
        backoff::ApiConnection,
        follow::undecodable,
        target::missing_rule,
    },
    fetch::{self, FetchHandle, Limits, Outcome, Request, Requests, Schedule},
};
use futures::{StreamExt, stream::FuturesUnordered};
use kinds::{Decoded, Kind, Object, ObjectRef};
use model::Code;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, sleep_until, timeout};

/// How many objects are fetched at once.
const AT_ONCE: usize = 32;
/// How many of one namespace.
const OF_ONE_NAMESPACE: usize = 8;

fn limits(timing: &Timing) -> Limits {
    Limits {
        total: AT_ONCE,
        per_tenant: OF_ONE_NAMESPACE,
        shortest_pause: timing.shortest_pause,
        longest_pause: timing.refused_pause,
        unreachable_pause: timing.longest_pause,
        deadline: timing.fetch,
    }
}

/// What may be read at all: nobody is asked for the rest, however much refers to it.
pub struct Readable {
    /// In these namespaces; in all if none is named.
    pub namespaces: Vec<Arc<str>>,
    /// Of these kinds, only these objects.
    pub named: BTreeMap<Kind, BTreeSet<ObjectRef>>,
}

impl Readable {
    /// Why an object may not be read.
    fn refusal(&self, key: &ObjectRef) -> Option<String> {
        if let Some(named) = self.named.get(&key.kind) {
            let why = "only objects that are granted by name are read, and it is not one of them";
            return (!named.contains(key)).then(|| why.to_owned());
        }
        let is_elsewhere = !self.namespaces.is_empty() && !self.namespaces.contains(&key.namespace);
        is_elsewhere.then(|| format!("namespace {} is not watched", key.namespace))
    }
}

/// What was last reported of an object.
#[derive(Default)]
struct Reported {
    /// It was read, and so stays in force when it cannot be read again.
    is_held: bool,
    /// What was said to be wrong with it.
    problems: Vec<Problem>,
    /// Why it could not be fetched, the last time.
    failure: Option<String>,
}

/// What came of fetching an object.
enum Fetched {
    Is(Box<Decoded>),
    IsNot,
    Bad(Problem),
    Refused(String),
    Failed(String, Option<Duration>),
    Unreachable(String),
}

impl Fetched {
    fn outcome(&self) -> Outcome {
        match self {
            Fetched::Is(_) | Fetched::IsNot | Fetched::Bad(_) => Outcome::Answered,
            Fetched::Refused(_) => Outcome::Refused,
            Fetched::Failed(_, pause) => Outcome::Failed(*pause),
            Fetched::Unreachable(_) => Outcome::Unreachable,
        }
    }
}

/// Fetches what is wanted.
pub struct Fetcher {
    api: Arc<Api>,
    requests: Requests<ObjectRef>,
    schedule: Schedule<ObjectRef>,
    readable: Readable,
    reported: HashMap<ObjectRef, Reported>,
}

/// A fetcher and the way to ask it.
pub fn fetcher(api: Arc<Api>, readable: Readable) -> (FetchHandle, Fetcher) {
    let (wants, requests) = fetch::wants();
    let schedule = Schedule::new(limits(&api.timing));
    (wants, Fetcher { api, requests, schedule, readable, reported: HashMap::new() })
}

impl Fetcher {
    /// Fetches until nobody listens any more.
    pub async fn run(mut self, feeder: Feeder) -> Closed {
        let mut running = FuturesUnordered::new();
        let mut found = self.api.connection.watch();
        loop {
            let next_at = self.schedule.next_at();
            let mut update = Update::default();
            tokio::select! {
                Some(request) = self.requests.recv() => self.take(request, &mut update),
                Some((key, fetched)) = running.next() => self.fetched(key, fetched, &mut update),
                () = sleep_until(next_at.unwrap_or_else(Instant::now)), if next_at.is_some() => {}
                Ok(()) = found.changed() => self.schedule.reachable(),
                () = feeder.closed() => return Closed,
            }
            let now = Instant::now();
            for key in self.schedule.overdue(now) {
                let reported = self.reported.entry(key.clone()).or_default();
                let why = reported.failure.take().unwrap_or_else(|| "nothing of its namespace is answered".to_owned());
                self.report(key, None, |key| vec![unreadable(key, &why)], &mut update);
            }
            if update != Update::default() && feeder.send(update).await.is_err() {
                return Closed;
            }
            while let Some(key) = self.schedule.next(now) {
                running.push(fetch(self.api.clone(), key));
            }
        }
    }

    fn take(&mut self, request: Request<ObjectRef>, update: &mut Update) {
        match request {
            Request::Want(key) => match self.readable.refusal(&key) {
                Some(why) => self.report(key, None, |key| vec![unreadable(key, &why)], update),
                None => self.schedule.want(key, Instant::now()),
            },
            Request::Refresh(key) => self.schedule.refresh(&key),
            Request::Forget(key) => {
                self.schedule.forget(&key);
                self.reported.remove(&key);
            }
        }
    }

    /// Adds to an update what is to be reported of an object that was fetched, or could not be.
    fn fetched(&mut self, key: ObjectRef, fetched: Fetched, update: &mut Update) {
        let outcome = fetched.outcome();
        // Whatever else came of it, somebody answered.
        if outcome != Outcome::Unreachable && self.api.connection.found() {
            update.problems.insert(ApiConnection::subject(), Vec::new());
        }
        if let Fetched::Unreachable(why) = &fetched
            && let Some(problem) = self.api.connection.lost(why)
        {
            update.problems.insert(ApiConnection::subject(), vec![problem]);
        }
        let is_told = self.schedule.done(&key, outcome, Instant::now());
        if !self.schedule.is_wanted(&key) {
            return;
        }
        let (object, problems): (Option<Object>, Vec<Problem>) = match fetched {
            Fetched::Is(decoded) => {
                let problem =
                    |fault: kinds::Fault| Problem::new(Code::NotDecodable, fault.why).on(key.clone()).field(fault.path);
                (Some(decoded.object), decoded.faults.into_iter().map(problem).collect())
            }
            Fetched::IsNot => (None, Vec::new()),
            Fetched::Bad(problem) => (None, vec![problem]),
            Fetched::Refused(why) | Fetched::Failed(why, _) if is_told => (None, vec![unreadable(&key, &why)]),
            Fetched::Refused(why) | Fetched::Failed(why, _) => {
                self.reported.entry(key).or_default().failure = Some(why);
                return;
            }
            Fetched::Unreachable(_) => return,
        };
        self.report(key, object, |_| problems, update);
    }

    /// Adds an answer to an update. What was read before stays in force, unless it is gone; what was said is not said again.
    fn report(
        &mut self,
        key: ObjectRef,
        object: Option<Object>,
        problems: impl FnOnce(&ObjectRef) -> Vec<Problem>,
        update: &mut Update,
    ) {
        let problems = problems(&key);
        let reported = self.reported.entry(key.clone()).or_default();
        reported.failure = None;
        let is_faulty = !problems.is_empty();
        let is_news = reported.problems != problems;
        if is_news {
            reported.problems.clone_from(&problems);
            update.problems.insert(Subject::Object(key.clone()), problems);
        }
        if object.is_some() || !is_faulty || (!reported.is_held && is_news) {
            reported.is_held = object.is_some();
            update.changes.push(Change { key, object, source: ChangeSource::Cluster });
        }
    }
}

fn unreadable(key: &ObjectRef, why: &str) -> Problem {
    Problem::new(Code::SecretNotReadable, format!("it cannot be read: {why}")).on(key.clone())
}

/// Asks for an object once.
async fn fetch(api: Arc<Api>, key: ObjectRef) -> (ObjectRef, Fetched) {
    let limit = api.timing.fetch;
    let asked = timeout(limit, api.object(&key)).await;
    let failure = match asked {
        Ok(Ok(bytes)) => {
            let fetched = match kinds::decode_json(key.kind, &bytes) {
                Ok(decoded) => Fetched::Is(Box::new(decoded)),
                Err(error) => Fetched::Bad(undecodable(&error, key.clone())),
            };
            return (key, fetched);
        }
        Ok(Err(Failure::Missing(_))) => return (key, Fetched::IsNot),
        Ok(Err(failure)) => failure,
        Err(_) => Failure::Unreachable(format!("no answer within {limit:?}")),
    };
    // A server that cannot be reached knows nothing about anything, and one that is starting refuses what it will allow.
    let is_ready = timeout(limit, api.is_ready()).await == Ok(true);
    let fetched = match failure {
        Failure::Unreachable(why) if !is_ready => Fetched::Unreachable(why),
        Failure::Forbidden(_) if is_ready => {
            let rule = missing_rule(key.kind, Some(&*key.namespace), None, "get");
            Fetched::Refused(format!("{failure}; {rule}"))
        }
        Failure::Refused(_) if is_ready => Fetched::Refused(failure.to_string()),
        failure => Fetched::Failed(failure.to_string(), failure.pause()),
    };
    (key, fetched)
}
