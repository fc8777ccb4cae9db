//! A field of an object: where a piece of configuration came from.
//!
//! Lines and columns are not kept: a source that reads files finds them from the object and the field path when somebody
//! asks, which costs nothing for the thousands of pieces that nobody asks about.

use crate::ObjectRef;
use std::{fmt, sync::Arc};

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

/// A field of an object.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_as_people_write_them() {
        let path = FieldPath::from("spec").field("rules").index(0).field("host");
        assert_eq!(path.as_str(), "spec.rules[0].host");
        assert_eq!(FieldPath::annotation("a.io/b").as_str(), "metadata.annotations[\"a.io/b\"]");
        assert_eq!(FieldPath::root().field("spec").as_str(), "spec");
    }
}
