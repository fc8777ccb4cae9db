//! Secrets on reference: asked for when something refers to them, given up when nothing does.
//!
//! In: what the pipeline wants, and answers. Out: what became of each question, for the pipeline. Nobody waits for an answer:
//! a Secret that has not been read yet is pending, and only what refers to it stands still. The one exception is the first
//! build: until it is published proxies have nothing from us, or what another replica gave them, so it waits for the answers
//! about everything that is referred to then ([`Secrets::is_ready`]).

use std::collections::{BTreeMap, HashSet};

use model::ObjectRef;
use pipeline::{FetchResult, Pipeline};
use source::fetch::FetchHandle;
use source::{Batch, Change, Feed, Problem, Subject};

/// How often the first build waits for what the last answers led to: an object refers to a second Secret only if the first is
/// good. What is referred to later than that is pending like any other; so nobody can put off the first build by new names.
pub(super) const ROUNDS: u32 = 4;

/// The Secrets that are referred to, and the way to have them brought.
pub struct Secrets {
    wants: FetchHandle,
    answers: Feed,
    referred: HashSet<ObjectRef>,
    /// Of those, the ones about which nothing is known yet.
    unanswered: HashSet<ObjectRef>,
    /// Of those, the ones that the first build waits for.
    awaited: HashSet<ObjectRef>,
    rounds: u32,
}

impl Secrets {
    /// Asks by `wants`, and is answered by `answers`.
    pub fn new(wants: FetchHandle, answers: Feed) -> Self {
        let (referred, unanswered, awaited) = Default::default();
        Self { wants, answers, referred, unanswered, awaited, rounds: ROUNDS }
    }

    /// The next answers; none when the source has ended. They say nothing about whether everything else is known.
    pub async fn next(&mut self) -> Option<Batch> {
        self.answers.next().await.map(|answers| Batch { synced: false, ..answers })
    }

    /// Asks for what the pipeline newly wants, and takes from it what it does not want any more; says whether nothing
    /// was taken.
    pub fn ask(&mut self, pipeline: &mut Pipeline) -> bool {
        let changes = pipeline.secret_refs();
        let gone: Vec<ObjectRef> = changes.gone.into_iter().filter(|key| self.referred.remove(key)).collect();
        for key in &gone {
            self.unanswered.remove(key);
            self.awaited.remove(key);
            self.wants.forget(key);
            pipeline.put(key, None);
            pipeline.set_fetch_result(key, None);
        }
        for key in changes.new {
            if self.referred.insert(key.clone()) {
                self.unanswered.insert(key.clone());
                self.wants.want(key);
            }
        }
        gone.is_empty()
    }

    /// Whether everything is known that the first build has to wait for, now that nothing else waits.
    pub fn is_ready(&mut self) -> bool {
        if self.awaited.is_empty() && self.rounds > 0 {
            self.rounds -= 1;
            self.awaited.clone_from(&self.unanswered);
        }
        self.awaited.is_empty()
    }

    /// What the first build waits for.
    pub fn awaited(&self) -> impl Iterator<Item = &ObjectRef> {
        self.awaited.iter()
    }

    /// Notes a change of an object. An answer to a question that is no longer asked is not for the pipeline.
    pub fn admits(
        &mut self,
        change: &Change,
        problems: &BTreeMap<Subject, Vec<Problem>>,
        pipeline: &mut Pipeline,
    ) -> bool {
        if !change.key.kind.is_fetched() {
            return true;
        }
        if !self.referred.contains(&change.key) {
            return false;
        }
        self.unanswered.remove(&change.key);
        self.awaited.remove(&change.key);
        let problem = problems.get(&Subject::Object(change.key.clone())).and_then(|problems| problems.first());
        let answer = match (&change.object, problem) {
            (Some(_), _) => FetchResult::Found,
            (None, Some(problem)) => FetchResult::NotReadable((*problem.message).into()),
            (None, None) => FetchResult::Absent,
        };
        pipeline.set_fetch_result(&change.key, Some(answer));
        true
    }
}
