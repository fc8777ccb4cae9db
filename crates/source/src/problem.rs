//! What a source could not read, or read with doubts.

use crate::Spot;
use kinds::ObjectKey;
use model::{Code, Severity};
use std::fmt;

/// One thing that is wrong with what a source read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The row of the table of codes.
    pub code: Code,
    /// This very case, with the names.
    pub message: Box<str>,
    /// The object it is about, where that is known.
    pub object: Option<ObjectKey>,
    /// The field inside the object; empty for the whole.
    pub field: Box<str>,
    /// The place in a file.
    pub spot: Option<Spot>,
}

impl Problem {
    /// Something that is wrong.
    pub fn new(code: Code, message: impl Into<Box<str>>) -> Self {
        Self { code, message: message.into(), object: None, field: Box::default(), spot: None }
    }

    /// It is about this object.
    #[must_use]
    pub fn on(self, object: ObjectKey) -> Self {
        Self { object: Some(object), ..self }
    }

    /// It is about this field of the object.
    #[must_use]
    pub fn field(self, field: impl Into<Box<str>>) -> Self {
        Self { field: field.into(), ..self }
    }

    /// It stands here.
    #[must_use]
    pub fn at(self, spot: Spot) -> Self {
        Self { spot: Some(spot), ..self }
    }

    /// How much it takes away.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.code)?;
        if let Some(spot) = &self.spot {
            write!(f, "{spot}: ")?;
        }
        if let Some(object) = &self.object {
            write!(f, "{object}: ")?;
        }
        f.write_str(&self.message)
    }
}
