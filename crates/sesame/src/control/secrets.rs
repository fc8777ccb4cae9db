//! Secrets on reference: asked for when something refers to them, given up when nothing does.
//!
//! In: what the pipeline wants. Out: answers, which the loop takes before it publishes anything that depends on them. An
//! API server that does not answer holds up the batch: without it there is no way to tell a Secret that is under way from
//! one that is missing, and taking the latter for the former would close a host that is open.

use std::collections::HashSet;

use kinds::{Kind, ObjectKey};
use model::SecretId;
use pipeline::Pipeline;
use source::cluster::Wants;
use source::{Batch, Feed};

/// The Secrets that are referred to, and the way to have them brought.
pub struct Secrets {
    wants: Wants,
    answers: Feed,
    referred: HashSet<ObjectKey>,
    /// Of those, the ones about which nothing is known yet.
    awaited: HashSet<ObjectKey>,
}

impl Secrets {
    /// Asks by `wants`, and is answered by `answers`.
    pub fn new(wants: Wants, answers: Feed) -> Self {
        Self { wants, answers, referred: HashSet::new(), awaited: HashSet::new() }
    }

    /// The next answers; none when the source has ended. They say nothing about whether everything else is known.
    pub async fn next(&mut self) -> Option<Batch> {
        self.answers.next().await.map(|answers| Batch { synced: false, ..answers })
    }

    /// Asks for what the pipeline newly wants, and takes from it what it does not want any more; says whether nothing
    /// was taken.
    pub fn ask(&mut self, pipeline: &mut Pipeline) -> bool {
        let changes = pipeline.wants();
        let gone: Vec<ObjectKey> = changes.gone.iter().map(key).filter(|key| self.referred.remove(key)).collect();
        for key in &gone {
            self.awaited.remove(key);
            self.wants.forget(key);
            pipeline.put(key, None);
        }
        for key in changes.new.iter().map(key) {
            if self.referred.insert(key.clone()) {
                self.awaited.insert(key.clone());
                self.wants.want(key);
            }
        }
        gone.is_empty()
    }

    /// Whether something that was asked for has not been answered.
    pub fn is_waiting(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Notes a change of an object. An answer to a question that is no longer asked is not for the pipeline.
    pub fn admits(&mut self, key: &ObjectKey) -> bool {
        self.awaited.remove(key);
        key.kind != Kind::Secret || self.referred.contains(key)
    }
}

fn key(id: &SecretId) -> ObjectKey {
    ObjectKey::new(Kind::Secret, id.namespace.clone(), id.name.clone())
}
