//! From a tree of values to a typed object.
//!
//! In: a [`Kind`] and a [`Node`] (or JSON). Out: [`Decoded`]: the object, every value in it that was bad, every field
//! the kind does not have. Only an object without an identity, or with a `spec` that is not even a map, is refused as a
//! whole ([`DecodeError`]).

mod tree;

use crate::{
    Fault, Kind, Node, Object, ObjectRef, Typed, emissary,
    meta::DEFAULT_NAMESPACE,
    object::{TypeVisitor, visit_type_of},
    suggest,
};
use serde::de::DeserializeOwned;
use std::fmt;
use tree::{Notes, TreeError};

pub(crate) use tree::{Tree, fault};

/// An object, and what was wrong with it.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// The object.
    pub object: Object,
    /// The bad values in it, in the order in which they were met. Each stands in the object as well, where
    /// [`checked`](crate::checked) says.
    pub faults: Vec<Fault>,
    /// The fields that the kind does not have.
    pub unknown: Vec<UnknownField>,
}

/// A field that the kind does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// The field, with its path: `spec.rules[0].hots`.
    pub path: Box<str>,
    /// The field that was probably meant: `host`.
    pub meant: Option<&'static str>,
}

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no field `{}`", self.path)?;
        match self.meant {
            Some(meant) => write!(f, "; did you mean `{meant}`?"),
            None => Ok(()),
        }
    }
}

/// Why a tree is no object of its kind at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The text is not JSON.
    #[error("not JSON: {0}")]
    Json(Box<str>),
    /// `metadata.name` is missing or empty.
    #[error("metadata.name is missing")]
    NoName,
    /// A name or namespace that no API server takes. Resources of Envoy are named after objects, and it may not ask for such names.
    #[error("{field} is longer than {most} characters")]
    LongName {
        /// The field.
        field: &'static str,
        /// The most characters that it may have.
        most: usize,
    },
    /// A value that nothing is left without.
    #[error(transparent)]
    Shape(Fault),
}

impl DecodeError {
    /// The field it is about.
    pub fn path(&self) -> &str {
        match self {
            DecodeError::Json(_) => "",
            DecodeError::NoName => "metadata.name",
            DecodeError::LongName { field, .. } => field,
            DecodeError::Shape(fault) => &fault.path,
        }
    }
}

/// Decodes an object of a kind. Namespaces are optional: without one the object is in `default`.
///
/// # Panics
/// If the kind is not in the [table](crate::kind).
pub fn decode(kind: Kind, node: &Node<'_>) -> Result<Decoded, DecodeError> {
    decode_as(kind, node.get("apiVersion").and_then(Node::text).unwrap_or_default(), node)
}

/// Decodes an object of a kind that is written in a version that it need not say itself: an item of a list.
///
/// # Panics
/// If the kind is not in the [table](crate::kind).
pub fn decode_as(kind: Kind, api_version: &str, node: &Node<'_>) -> Result<Decoded, DecodeError> {
    let converted = emissary::convert::convert(kind, api_version, node);
    let mut decoder = Decoder { kind, node: converted.as_ref().unwrap_or(node), decoded: None };
    visit_type_of(kind, &mut decoder);
    decoder.decoded.expect("every kind of the table has a type")
}

/// Decodes a part of an object that stands somewhere else, such as in a configuration file. There nothing is taken in part: a
/// field that is unknown is a fault, too.
pub fn decode_part<T: DeserializeOwned>(node: &Node<'_>) -> Result<T, Fault> {
    let notes = Notes::new(&[]);
    let part = T::deserialize(Tree::root(node, &notes)).map_err(TreeError::into_fault)?;
    let (faults, unknown) = notes.into_parts();
    let unknown = unknown.into_iter().map(|field| Fault { why: field.to_string().into(), path: field.path });
    match faults.into_iter().chain(unknown).next() {
        None => Ok(part),
        Some(fault) => Err(fault),
    }
}

/// Decodes a tree into the type of its kind.
struct Decoder<'n> {
    kind: Kind,
    node: &'n Node<'n>,
    decoded: Option<Result<Decoded, DecodeError>>,
}

impl TypeVisitor for Decoder<'_> {
    fn visit<T: Typed>(&mut self) {
        self.decoded = Some(self.decode::<T>());
    }
}

impl Decoder<'_> {
    fn decode<T: Typed>(&self) -> Result<Decoded, DecodeError> {
        let notes = Notes::new(T::UNREAD);
        let mut object =
            T::deserialize(Tree::root(self.node, &notes)).map_err(|e| DecodeError::Shape(e.into_fault()))?;
        let meta = object.meta_mut();
        if meta.name.is_empty() {
            return Err(DecodeError::NoName);
        }
        for (field, text, most) in [("metadata.name", &meta.name, 253), ("metadata.namespace", &meta.namespace, 63)] {
            if text.len() > most {
                return Err(DecodeError::LongName { field, most });
            }
        }
        if !self.kind.is_namespaced() {
            meta.namespace = "".into();
        } else if meta.namespace.is_empty() {
            meta.namespace = DEFAULT_NAMESPACE.into();
        }
        let (faults, unknown) = notes.into_parts();
        Ok(Decoded { object: Object::new(self.kind, object), faults, unknown })
    }
}

/// Decodes an object of a kind from JSON.
pub fn decode_json(kind: Kind, json: &[u8]) -> Result<Decoded, DecodeError> {
    let node = serde_json::from_slice(json).map_err(|e| DecodeError::Json(e.to_string().into()))?;
    decode(kind, &node)
}

/// Which object a tree is, though it may not decode: what can be said about it is said on this object.
pub fn identity(kind: Kind, node: &Node<'_>) -> Option<ObjectRef> {
    let metadata = node.get("metadata")?;
    let name = metadata.get("name")?.text().filter(|name| !name.is_empty())?;
    let namespace = match metadata.get("namespace").and_then(Node::text) {
        _ if !kind.is_namespaced() => "",
        None | Some("") => DEFAULT_NAMESPACE,
        Some(namespace) => namespace,
    };
    Some(ObjectRef::new(kind, namespace, name))
}

/// What the decoder reports about one field that a struct does not have.
fn unknown_field(
    path: String,
    name: &str,
    known: &'static [&'static str],
    unread: &'static [&'static str],
) -> UnknownField {
    let candidates = known.iter().chain(unread).copied();
    UnknownField { path: path.into(), meant: suggest::nearest(name, candidates) }
}

/// The way from the root of an object to a value: kept as links on the stack, written out only when somebody asks, as
/// `spec.rules[0].host` and `metadata.annotations["a.io/b"]`.
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

#[cfg(test)]
mod tests;
