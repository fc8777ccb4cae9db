//! What the leader asks its followers, and what they have answered.
//!
//! In: questions, from any number of tasks; answers of followers. Out: to each follower the changes of the questions; to each task,
//! which answers are new.

use crate::message::Question;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    hash::Hash,
    sync::Arc,
    time::Instant,
};
use tokio::sync::{Notify, mpsc};
use xds::{FleetAckCounts, Nack, STUCK};

/// A question that is asked from now on, or no longer.
pub(crate) type QuestionChange = (Question, bool);

struct Follower {
    since: Instant,
    asks: mpsc::UnboundedSender<QuestionChange>,
    answers: HashMap<Question, FleetAckCounts>,
    /// Of its proxies that refuse what is asked about, one for each question.
    refusals: HashMap<Question, Nack>,
}

/// New answers, queued for one task.
#[derive(Default)]
pub(crate) struct Answers {
    new: Mutex<NewAnswers>,
    pub filled: Notify,
}

/// Answers that are new since they were last taken.
#[derive(Default)]
pub(crate) struct NewAnswers {
    /// A follower connected or disconnected: any answer may have changed.
    pub all: bool,
    pub questions: HashSet<Question>,
}

impl Answers {
    pub fn take(&self) -> NewAnswers {
        std::mem::take(&mut *self.new.lock())
    }

    fn notify(&self, change: impl FnOnce(&mut NewAnswers)) {
        change(&mut self.new.lock());
        self.filled.notify_one();
    }
}

/// Gives back memory: after the first build everything is asked about, and hardly anything ever again.
pub(crate) fn shrink<K: Eq + Hash, V>(map: &mut HashMap<K, V>) {
    if map.len() < map.capacity() / 8 {
        map.shrink_to(map.capacity() / 4);
    }
}

/// All questions and answers.
#[derive(Default)]
pub(crate) struct Questions {
    /// How many tasks ask each.
    questions: HashMap<Question, usize>,
    followers: BTreeMap<u64, Follower>,
    listeners: Vec<Arc<Answers>>,
}

impl Questions {
    /// Queues new answers from now on.
    pub fn listen(&mut self) -> Arc<Answers> {
        let answers = Arc::new(Answers::default());
        self.listeners.push(answers.clone());
        answers
    }

    pub fn unlisten(&mut self, answers: &Arc<Answers>) {
        self.listeners.retain(|listener| !Arc::ptr_eq(listener, answers));
    }

    pub fn has_followers(&self) -> bool {
        !self.followers.is_empty()
    }

    pub fn ask(&mut self, question: Question) {
        let count = self.questions.entry(question.clone()).or_default();
        *count += 1;
        if *count == 1 {
            for follower in self.followers.values() {
                // One whose stream has ended is about to be removed.
                let _ = follower.asks.send((question.clone(), true));
            }
        }
    }

    pub fn forget(&mut self, question: &Question) {
        let Some(count) = self.questions.get_mut(question) else { return };
        *count -= 1;
        if *count > 0 {
            return;
        }
        self.questions.remove(question);
        shrink(&mut self.questions);
        for follower in self.followers.values_mut() {
            follower.answers.remove(question);
            shrink(&mut follower.answers);
            follower.refusals.remove(question);
            let _ = follower.asks.send((question.clone(), false));
        }
    }

    /// Adds a follower; gives the questions for it.
    pub fn join(&mut self, id: u64) -> mpsc::UnboundedReceiver<QuestionChange> {
        let (asks, receiver) = mpsc::unbounded_channel();
        for question in self.questions.keys() {
            let _ = asks.send((question.clone(), true));
        }
        let (answers, refusals) = Default::default();
        self.followers.insert(id, Follower { since: Instant::now(), asks, answers, refusals });
        self.listeners.iter().for_each(|listener| listener.notify(|new| new.all = true));
        receiver
    }

    pub fn leave(&mut self, id: u64) {
        self.followers.remove(&id);
        self.listeners.iter().for_each(|listener| listener.notify(|new| new.all = true));
    }

    /// Takes the answers of a follower.
    pub fn answer(
        &mut self,
        id: u64,
        answers: Vec<(Question, FleetAckCounts)>,
        refusals: Vec<(Question, Option<Nack>)>,
    ) {
        let Some(follower) = self.followers.get_mut(&id) else { return };
        let listeners = &self.listeners;
        let notify = |question: &Question| {
            listeners.iter().for_each(|listener| listener.notify(|new| _ = new.questions.insert(question.clone())));
        };
        for (question, refusal) in refusals {
            match refusal {
                Some(refusal) if self.questions.contains_key(&question) => {
                    notify(&question);
                    follower.refusals.insert(question, refusal);
                }
                _ => {
                    notify(&question);
                    follower.refusals.remove(&question);
                }
            }
        }
        for (question, counts) in answers {
            if self.questions.contains_key(&question) {
                notify(&question);
                follower.answers.insert(question, counts);
            }
        }
    }

    /// A proxy of a follower that refuses what a question is about: the first by the id of its node.
    pub fn refusal(&self, question: &Question) -> Option<&Nack> {
        self.followers.values().filter_map(|follower| follower.refusals.get(question)).min()
    }

    /// Adds the answers to a question that was asked at that time. Gives until when missing ones are waited for: a follower that
    /// does not answer in time is not waited for any longer.
    pub fn add(&self, question: &Question, asked: Instant, now: Instant, sum: &mut FleetAckCounts) -> Option<Instant> {
        let mut wait = None::<Instant>;
        for follower in self.followers.values() {
            match follower.answers.get(question) {
                Some(counts) => xds::add(sum, counts),
                None => {
                    let late = asked.max(follower.since) + STUCK;
                    wait = wait.into_iter().chain(Some(late).filter(|late| *late > now)).max();
                }
            }
        }
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xds::{Fleet, Kind, Version};

    #[test]
    fn memory_is_given_back_when_nothing_is_asked_any_more() {
        let question = |at: usize| {
            Question::new(&Fleet::Shared, &Version { kind: Kind::Route, name: at.to_string().into(), version: 1 })
        };
        let mut all = Questions::default();
        (0..10_000).for_each(|at| all.ask(question(at)));
        assert!(all.questions.capacity() >= 10_000);
        (0..10_000).for_each(|at| all.forget(&question(at)));
        assert!(all.questions.capacity() < 100, "{}", all.questions.capacity());
    }
}
