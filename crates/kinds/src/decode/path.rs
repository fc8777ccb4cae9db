//! The way from the root of an object to a value: kept as links on the stack, written out only when somebody asks.

use std::fmt;

/// A path inside an object, written as `spec.rules[0].host` and `metadata.annotations["a.io/b"]`.
#[derive(Clone, Copy)]
pub(crate) enum FieldPath<'p> {
    /// The object itself.
    Root,
    /// A field of a struct.
    Field(&'p FieldPath<'p>, &'p str),
    /// An entry of a map, whose key may hold dots.
    Entry(&'p FieldPath<'p>, &'p str),
    /// An element of a list.
    Index(&'p FieldPath<'p>, usize),
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldPath::Root => Ok(()),
            FieldPath::Field(FieldPath::Root, name) => f.write_str(name),
            FieldPath::Field(parent, name) => write!(f, "{parent}.{name}"),
            FieldPath::Entry(parent, key) => write!(f, "{parent}[\"{key}\"]"),
            FieldPath::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
