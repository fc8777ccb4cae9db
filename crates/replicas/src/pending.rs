//! Rejections of this replica's proxies that wait for the decision of the leader.
//!
//! In: questions, each by any number of tasks at the same time. Out: each question once for the leader, and its decision for
//! everybody who waits for it.

use crate::message::Question;
use std::collections::HashMap;
use tokio::sync::oneshot;

#[derive(Default)]
struct Waiting {
    tasks: Vec<oneshot::Sender<bool>>,
    /// Whether the leader was asked. It is noted here and not by the task that asks, because the same question may come again.
    is_sent: bool,
}

/// The questions that the leader has not decided yet.
#[derive(Default)]
pub(crate) struct PendingDecisions(HashMap<Question, Waiting>);

impl PendingDecisions {
    /// Waits for the decision; an error if the stream to the leader ends first.
    pub fn wait(&mut self, question: &Question) -> oneshot::Receiver<bool> {
        let (sender, receiver) = oneshot::channel();
        self.0.entry(question.clone()).or_default().tasks.push(sender);
        receiver
    }

    /// Drops the tasks that no longer wait, and the question with the last of them.
    pub fn drop_closed(&mut self, question: &Question) {
        if let Some(waiting) = self.0.get_mut(question) {
            waiting.tasks.retain(|task| !task.is_closed());
            if waiting.tasks.is_empty() {
                self.0.remove(question);
            }
        }
    }

    /// The questions that the leader has not been asked yet.
    pub fn unsent(&mut self) -> impl Iterator<Item = Question> {
        self.0.iter_mut().filter_map(|(question, waiting)| {
            let is_sent = std::mem::replace(&mut waiting.is_sent, true);
            (!is_sent).then(|| question.clone())
        })
    }

    /// Takes the leader's decision.
    pub fn decide(&mut self, question: &Question, stands: bool) {
        for task in self.0.remove(question).into_iter().flat_map(|waiting| waiting.tasks) {
            // One that has stopped waiting needs no decision.
            let _ = task.send(stands);
        }
    }

    /// Nobody will decide: the stream to the leader has ended.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xds::{Fleet, Kind};

    fn question() -> Question {
        Question { fleet: Fleet::Shared, kind: Kind::Route, name: "a".into(), version: 1 }
    }

    #[test]
    fn everybody_who_waits_is_told_and_the_leader_is_asked_once() {
        let mut pending = PendingDecisions::default();
        let mut first = pending.wait(&question());
        assert_eq!(pending.unsent().count(), 1);
        let mut second = pending.wait(&question());
        assert_eq!(pending.unsent().count(), 0);
        pending.decide(&question(), false);
        assert_eq!((first.try_recv(), second.try_recv()), (Ok(false), Ok(false)));
        assert!(pending.0.is_empty());
    }

    #[test]
    fn who_stops_waiting_takes_nothing_from_the_others() {
        let mut pending = PendingDecisions::default();
        let first = pending.wait(&question());
        let mut second = pending.wait(&question());
        drop(first);
        pending.drop_closed(&question());
        pending.decide(&question(), true);
        assert_eq!(second.try_recv(), Ok(true));
        let third = pending.wait(&question());
        drop(third);
        pending.drop_closed(&question());
        assert!(pending.0.is_empty());
    }
}
