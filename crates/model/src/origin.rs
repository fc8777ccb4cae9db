//! Who wrote it, and what became of it: the object and the field that a piece of configuration came from, and what is
//! said about them, each a code, the place, and a sentence about this very case.
//!
//! Lines and columns are not kept here: a source that reads files can tell them from the object and the field path
//! when somebody asks, which costs nothing for the thousands of pieces that nobody asks about.

use crate::{Code, Severity};
use std::{fmt, sync::Arc};

/// An object of any dialect, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// Its kind as people write it: `Ingress`, `HTTPProxy`.
    pub kind: &'static str,
    /// Its namespace; empty for kinds that have none.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl ObjectRef {
    /// An object by its three names.
    pub fn new(kind: &'static str, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.into(), name: name.into() }
    }

    /// A place inside this object.
    pub fn at(&self, field: impl Into<FieldPath>) -> Origin {
        Origin { object: self.clone(), field: field.into() }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// The path of a field inside an object, as `kubectl explain` and our messages write it: `spec.rules[0].host`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Arc<str>);

impl FieldPath {
    /// The object as a whole.
    pub fn root() -> Self {
        Self::default()
    }

    /// A field below this one.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.into()) } else { Self(format!("{}.{name}", self.0).into()) }
    }

    /// An element of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0).into())
    }

    /// An entry of this map whose key may hold dots: `metadata.annotations["kubernetes.io/ingress.class"]`.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[\"{key}\"]", self.0).into())
    }

    /// An annotation of the object.
    pub fn annotation(name: &str) -> Self {
        Self::from("metadata.annotations").key(name)
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for FieldPath {
    fn from(path: &str) -> Self {
        Self(path.into())
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A place inside an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The object.
    pub object: ObjectRef,
    /// The field inside it.
    pub field: FieldPath,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => write!(f, "{}", self.object),
            field => write!(f, "{} {field}", self.object),
        }
    }
}

/// The longest message, in bytes: what is quoted in one may be as long as an object.
pub const LONGEST_MESSAGE: usize = 1024;

/// One finding about one place of one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Verdict {
    /// The place.
    pub origin: Origin,
    /// The row of the table.
    pub code: Code,
    /// This very case, with the names: `Service shop/cart has no port 8081`. At most [`LONGEST_MESSAGE`] bytes.
    pub message: Box<str>,
}

impl Verdict {
    /// Those about one object, of a list that is sorted by object: what is told about others is not looked at.
    pub fn about<'v>(object: &ObjectRef, verdicts: &'v [Self]) -> &'v [Self] {
        let start = verdicts.partition_point(|verdict| verdict.origin.object < *object);
        let end = start + verdicts[start..].partition_point(|verdict| verdict.origin.object == *object);
        &verdicts[start..end]
    }

    /// A finding. A message that is too long ends in `…`.
    pub fn new(code: Code, origin: Origin, message: impl Into<Box<str>>) -> Self {
        let mut message = message.into();
        if message.len() > LONGEST_MESSAGE {
            let end = message.floor_char_boundary(LONGEST_MESSAGE - "…".len());
            message = format!("{}…", &message[..end]).into();
        }
        Self { origin, code, message }
    }

    /// How much it takes away.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {} ({})", self.code, self.origin, self.message, self.code.help())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_as_people_write_them() {
        let path = FieldPath::from("spec").field("rules").index(0).field("host");
        assert_eq!(path.as_str(), "spec.rules[0].host");
        assert_eq!(FieldPath::annotation("a.io/b").as_str(), "metadata.annotations[\"a.io/b\"]");
        assert_eq!(FieldPath::root().field("spec").as_str(), "spec");
        assert_eq!(ObjectRef::new("Ingress", "a", "b").at(path).to_string(), "Ingress a/b spec.rules[0].host");
    }

    #[test]
    fn a_message_is_never_longer_than_its_limit() {
        let verdict =
            |message: String| Verdict::new(Code::IngressHost, ObjectRef::new("Ingress", "a", "b").at(""), message);
        assert_eq!(verdict("é".repeat(512)).message.len(), LONGEST_MESSAGE);
        let cut = verdict("é".repeat(513)).message;
        assert!(cut.len() <= LONGEST_MESSAGE && cut.ends_with("é…"), "{cut}");
    }
}
