//! What a source says: which objects are new, other or gone, and what it could not read.
//!
//! The folder and the API server both speak in these; whoever listens cannot tell them apart.

use crate::{Place, Problem};
use kinds::{Object, ObjectKey};
use std::{collections::BTreeMap, path::Path, sync::Arc};

/// One object as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Which object.
    pub key: ObjectKey,
    /// The object; none when it is gone.
    ///
    /// It may be the one that was sent before: an edit above an object moves it in its file and changes nothing else.
    pub object: Option<Object>,
    /// Where it was read.
    pub origin: Origin,
}

/// Where an object was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// From an API server.
    Cluster,
    /// From a file.
    File(Place),
}

/// What a list of problems is about. A new list about the same subject replaces the old one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A source as a whole: a folder that is gone.
    Source(Arc<str>),
    /// A file, by the path that people know it by.
    File(Arc<Path>),
    /// An object.
    Object(ObjectKey),
}

/// What happened since the last batch.
///
/// There is at most one change for an object: only the last one counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The objects that changed.
    pub changes: Vec<Change>,
    /// Everything that is now wrong with each of these subjects; an empty list says that it is mended.
    pub problems: BTreeMap<Subject, Vec<Problem>>,
    /// Whether every source has now said everything it knows. It stays so.
    pub synced: bool,
}
