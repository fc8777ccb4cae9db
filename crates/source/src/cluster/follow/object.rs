//! One object as the API server sends it: told if it is news.

use super::Follower;
use crate::{
    Change, ChangeSource, Problem, Subject, Update,
    cluster::{
        known::Names,
        target::Content,
        wire::{Head, HeadMeta},
    },
};
use kinds::{DecodeError, Decoded, Kind, ObjectRef};
use model::Code;
use serde_json::value::RawValue;
use tracing::warn;

/// How many values of one object are reported.
const MOST_FAULTS: usize = 20;

/// Something to be noted once the update that tells of it is sent.
pub struct Note {
    names: Names,
    version: u64,
    is_faulty: bool,
}

impl Follower {
    /// Adds what is new about an object to an update.
    pub(super) fn see(&mut self, head: &Head<'_>, object: &RawValue, update: &mut Update, notes: &mut Vec<Note>) {
        if head.metadata.name.is_empty() {
            return warn!(resource = %self.target, "the API server sent an object without a name; ignored");
        }
        let version = head.version();
        if !self.known.is_news(&head.metadata, version) {
            return;
        }
        match self.target.content {
            Content::Names => {
                notes.push(Note { names: self.known.names(&head.metadata), version, is_faulty: false });
            }
            Content::Whole | Content::Metadata => {
                let decoded = kinds::decode_json(self.target.kind, object.get().as_bytes());
                self.decoded(Names::of(&head.metadata), version, decoded, update, notes);
            }
        }
    }

    /// Adds an object that was decoded to an update.
    pub(super) fn decoded(
        &mut self,
        names: Names,
        version: u64,
        decoded: Result<Decoded, DecodeError>,
        update: &mut Update,
        notes: &mut Vec<Note>,
    ) {
        let (names, problems) = match decoded {
            Ok(Decoded { object, faults, .. }) => {
                let key = object.key();
                // Those of the object, to share their memory.
                let names = Names { namespace: key.namespace.clone(), name: key.name.clone() };
                let faults = faults.into_iter().take(MOST_FAULTS);
                let problems =
                    faults.map(|fault| Problem::new(Code::NotDecodable, fault.why).on(key.clone()).field(fault.path));
                let problems: Vec<_> = problems.collect();
                update.changes.push(Change { key, object: Some(object), source: ChangeSource::Cluster });
                (names, problems)
            }
            Err(error) => {
                let key = key(self.target.kind, &names);
                (names, vec![undecodable(&error, key)])
            }
        };
        let is_faulty = !problems.is_empty();
        if is_faulty || self.known.was_faulty(&names) {
            update.problems.insert(Subject::Object(key(self.target.kind, &names)), problems);
        }
        notes.push(Note { names, version, is_faulty });
    }

    /// Adds that an object is gone to an update.
    pub(super) fn lose(&mut self, head: &HeadMeta<'_>, update: &mut Update) {
        if let Some((names, was_faulty)) = self.known.forget(head) {
            self.push_gone(names, was_faulty, update);
        }
    }

    /// The same, for one that is no longer known.
    pub(super) fn push_gone(&self, names: Names, was_faulty: bool, update: &mut Update) {
        let key = key(self.target.kind, &names);
        if was_faulty {
            update.problems.insert(Subject::Object(key.clone()), Vec::new());
        }
        match self.target.content {
            Content::Whole | Content::Metadata => {
                update.changes.push(Change { key, object: None, source: ChangeSource::Cluster })
            }
            Content::Names => self.wants.refresh(&key),
        }
    }

    /// Notes what an update told, and has fetched what is wanted of it.
    pub(super) fn note(&mut self, notes: Vec<Note>) {
        for Note { names, version, is_faulty } in notes {
            if self.target.content == Content::Names {
                self.wants.refresh(&key(self.target.kind, &names));
            }
            self.known.note(names, version, is_faulty);
        }
    }
}

fn key(kind: Kind, names: &Names) -> ObjectRef {
    ObjectRef::new(kind, names.namespace.clone(), names.name.clone())
}

/// What is said of an object that cannot be decoded at all.
pub fn undecodable(error: &DecodeError, key: ObjectRef) -> Problem {
    let why = format!("{error}; its last readable version stays in effect");
    Problem::new(Code::NotDecodable, why).on(key).field(error.path())
}
