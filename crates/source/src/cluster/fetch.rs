//! The contents of objects that are watched by name only, fetched when something refers to them.
//!
//! In: what is wanted and what is not any more ([`Wants`]), and word from the watch that a wanted one has changed. Out: a
//! [`Change`] for each want, sooner or later: the object, or that there is none. Whoever wants something may therefore
//! wait for the answer. While the API server is away there is none; if it refuses, the answer is "none" with a problem,
//! unless the object was read before: then that stays in force.

use crate::{
    Change, Closed, Feeder, Origin, Problem, Subject, Update,
    cluster::{
        api::{Api, Failure},
        follow::undecodable,
        patience::{Link, Patience},
    },
};
use futures::{StreamExt, stream::FuturesUnordered};
use kinds::{Decoded, Object, ObjectKey};
use model::Code;
use parking_lot::RwLock;
use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};
use tokio::sync::mpsc;
use tracing::warn;

/// How many objects are fetched at once.
const AT_ONCE: usize = 16;
/// How often an answer that is a refusal is asked for again before it is told.
const TRIES: u32 = 3;

/// Asks for the contents of Secrets and ConfigMaps. Clones ask the same source.
#[derive(Clone)]
pub struct Wants {
    wanted: Arc<RwLock<HashSet<ObjectKey>>>,
    asks: mpsc::UnboundedSender<Ask>,
}

enum Ask {
    /// It is wanted, or has changed.
    Look(ObjectKey),
    /// It is not wanted any more.
    Forget(ObjectKey),
}

impl Wants {
    /// Wants an object. The answer is a change of it, also if there is no such object; later changes follow.
    pub fn want(&self, key: ObjectKey) {
        self.wanted.write().insert(key.clone());
        self.ask(Ask::Look(key));
    }

    /// Does not want it any more.
    pub fn forget(&self, key: &ObjectKey) {
        self.wanted.write().remove(key);
        self.ask(Ask::Forget(key.clone()));
    }

    /// An object has come, changed or gone.
    pub(super) fn touch(&self, key: &ObjectKey) {
        if self.wanted.read().contains(key) {
            self.ask(Ask::Look(key.clone()));
        }
    }

    fn ask(&self, ask: Ask) {
        // Without a source there is nobody to answer, and soon nobody to ask.
        let _ended = self.asks.send(ask);
    }
}

/// Where a wanted object stands.
#[derive(Default)]
struct State {
    /// It is being fetched.
    is_busy: bool,
    /// It must be fetched again.
    is_stale: bool,
    /// It was told, and so stays in force when it cannot be read.
    is_held: bool,
    /// Something was said to be wrong with it.
    is_faulty: bool,
}

/// What came of fetching an object.
enum Fetched {
    Is(Box<Decoded>),
    IsNot,
    Bad(Problem),
    Refused(Problem),
}

/// Fetches what is wanted.
pub struct Fetcher {
    api: Arc<Api>,
    asks: mpsc::UnboundedReceiver<Ask>,
    states: HashMap<ObjectKey, State>,
    queue: VecDeque<ObjectKey>,
}

/// A fetcher and the way to ask it.
pub fn fetcher(api: Arc<Api>) -> (Wants, Fetcher) {
    let (asks, receiver) = mpsc::unbounded_channel();
    let fetcher = Fetcher { api, asks: receiver, states: HashMap::new(), queue: VecDeque::new() };
    (Wants { wanted: Arc::default(), asks }, fetcher)
}

impl Fetcher {
    /// Fetches until nobody listens any more.
    pub async fn run(mut self, feeder: Feeder) -> Closed {
        let mut running = FuturesUnordered::new();
        let mut refused = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(ask) = self.asks.recv() => self.take(ask),
                Some((key, fetched)) = running.next() => {
                    if matches!(fetched, Fetched::Refused(_)) {
                        let pause = self.api.timing.absent_pause;
                        let key: ObjectKey = Clone::clone(&key);
                        refused.push(async move {
                            tokio::time::sleep(pause).await;
                            key
                        });
                    }
                    let mut update = self.fetched(key, fetched);
                    if self.api.link.found() {
                        update.problems.insert(Link::subject(), Vec::new());
                    }
                    if feeder.send(update).await.is_err() {
                        return Closed;
                    }
                }
                Some(key) = refused.next() => self.take(Ask::Look(key)),
                () = feeder.closed() => return Closed,
            }
            while running.len() < AT_ONCE
                && let Some(key) = self.queue.pop_front()
            {
                running.push(fetch(self.api.clone(), key));
            }
        }
    }

    fn take(&mut self, ask: Ask) {
        match ask {
            Ask::Look(key) => {
                let state = self.states.entry(key.clone()).or_default();
                match state.is_busy {
                    true => state.is_stale = true,
                    false => {
                        state.is_busy = true;
                        self.queue.push_back(key);
                    }
                }
            }
            Ask::Forget(key) => match self.states.get_mut(&key) {
                // What is under way is not wanted, but must be seen to end.
                Some(state) if state.is_busy => *state = State { is_busy: true, ..State::default() },
                _ => drop(self.states.remove(&key)),
            },
        }
    }

    /// What is to be told of an object that was fetched.
    fn fetched(&mut self, key: ObjectKey, fetched: Fetched) -> Update {
        let mut update = Update::default();
        let Some(state) = self.states.get_mut(&key) else { return update };
        state.is_busy = false;
        if std::mem::take(&mut state.is_stale) {
            state.is_busy = true;
            self.queue.push_back(key.clone());
        }
        let (object, problems): (Option<Object>, Vec<Problem>) = match fetched {
            Fetched::Is(decoded) => {
                let faults = decoded.faults.into_iter();
                let problem =
                    |fault: kinds::Fault| Problem::new(Code::NotDecodable, fault.why).on(key.clone()).field(fault.path);
                (Some(decoded.object), faults.map(problem).collect())
            }
            Fetched::IsNot => (None, Vec::new()),
            Fetched::Bad(problem) | Fetched::Refused(problem) => (None, vec![problem]),
        };
        if state.is_faulty || !problems.is_empty() {
            state.is_faulty = !problems.is_empty();
            update.problems.insert(Subject::Object(key.clone()), problems);
        }
        // What was read before stays in force, unless it is gone.
        if object.is_some() || !state.is_faulty || !state.is_held {
            state.is_held = object.is_some();
            update.changes.push(Change { key, object, origin: Origin::Cluster });
        }
        update
    }
}

async fn fetch(api: Arc<Api>, key: ObjectKey) -> (ObjectKey, Fetched) {
    let mut patience = Patience::after_failure(&api.timing);
    let mut refusals = 0;
    loop {
        let mut found = api.link.watch();
        let failure = match api.object(&key).await {
            Ok(bytes) => {
                let fetched = match kinds::decode_json(key.kind, &bytes) {
                    Ok(decoded) => Fetched::Is(Box::new(decoded)),
                    Err(error) => Fetched::Bad(undecodable(&error, key.clone())),
                };
                return (key, fetched);
            }
            Err(Failure::Missing(_)) => return (key, Fetched::IsNot),
            Err(failure) => failure,
        };
        // A server that is starting refuses what it will allow.
        if !failure.is_link() && api.is_ready().await {
            refusals += 1;
            if refusals >= TRIES {
                warn!(object = %key, %failure, "cannot be read");
                let problem = Problem::new(Code::ApiServerFailed, format!("it cannot be read: {failure}"));
                return (key.clone(), Fetched::Refused(problem.on(key)));
            }
        }
        tokio::select! {
            () = tokio::time::sleep(patience.pause(failure.pause())) => {}
            _ = found.changed(), if failure.is_link() => {}
        }
    }
}
