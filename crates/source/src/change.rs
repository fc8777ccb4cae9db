//! What a source says: which objects are new, other or gone, and what it could not read, or read with doubts.
//!
//! The folder and the API server both speak in these; whoever listens cannot tell them apart.

use crate::{ObjectLocation, SourceLocation, snippet::printable};
use kinds::{Object, ObjectRef};
use model::{Code, Severity};
use std::{collections::BTreeMap, fmt, path::Path, sync::Arc, time::Instant};

/// One object as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Which object.
    pub key: ObjectRef,
    /// The object; none when it is gone.
    ///
    /// It may be the one that was sent before: an edit above an object moves it in its file and changes nothing else.
    pub object: Option<Object>,
    /// Where it was read.
    pub source: ChangeSource,
}

/// Where an object was read.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangeSource {
    /// From an API server.
    Cluster,
    /// From a file.
    File(ObjectLocation),
}

/// What a list of problems is about. A new list about the same subject replaces the old one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A source as a whole: a folder that is gone.
    Source(Arc<str>),
    /// A file, by the path that people know it by.
    File(Arc<Path>),
    /// An object.
    Object(ObjectRef),
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
    /// When the first of it began to be decoded, and when the last of it was, where that is traced.
    pub decoded: Option<(Instant, Instant)>,
}

/// One thing that is wrong with what a source read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The row of the table of codes.
    pub code: Code,
    /// This very case, with the names.
    pub message: Box<str>,
    /// The object it is about, where that is known.
    pub object: Option<ObjectRef>,
    /// The field inside the object; empty for the whole.
    pub field: Box<str>,
    /// The place in a file.
    pub location: Option<SourceLocation>,
    /// The name that was probably meant, where the problem is a field that does not exist.
    pub meant: Option<&'static str>,
}

impl Problem {
    /// Something that is wrong.
    pub fn new(code: Code, message: impl Into<Box<str>>) -> Self {
        Self { code, message: message.into(), object: None, field: Box::default(), location: None, meant: None }
    }

    /// It is about this object.
    #[must_use]
    pub fn on(self, object: ObjectRef) -> Self {
        Self { object: Some(object), ..self }
    }

    /// It is about this field of the object.
    #[must_use]
    pub fn field(self, field: impl Into<Box<str>>) -> Self {
        Self { field: field.into(), ..self }
    }

    /// It stands here.
    #[must_use]
    pub fn at(self, location: SourceLocation) -> Self {
        Self { location: Some(location), ..self }
    }

    /// How much it takes away.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.code)?;
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
        }
        if let Some(object) = &self.object {
            write!(f, "{object}: ")?;
        }
        // It is a line of a log: text of tenants in it is not to begin another one.
        f.write_str(&printable(&self.message))
    }
}
