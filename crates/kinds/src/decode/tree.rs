//! serde's deserializer over a [`Node`]: what makes derived types lenient.
//!
//! It reads by reference, so a value that failed can be passed over and the next one read, which is what
//! [`Checked`](crate::Checked) builds on. It carries its path, so that every error knows where it is; it sees the names
//! of the fields of every struct, so it finds the ones that the struct does not have. `null` fields are left out, as
//! Kubernetes does. No message quotes text: it may be a secret.

use super::{FieldPath, UnknownField, unknown_field};
use crate::{Fault, Node, Value, node::Key};
use serde::{
    de::{self, DeserializeSeed, Unexpected, Visitor, value::BorrowedStrDeserializer},
    forward_to_deserialize_any,
};
use std::{cell::RefCell, fmt};

/// For how many unknown fields of an object the field is found that was probably meant.
const MOST_MEANT: usize = 100;

/// What is noted while one object is read.
pub(crate) struct Notes {
    unread: &'static [(&'static str, &'static [&'static str])],
    faults: RefCell<Vec<Fault>>,
    unknown: RefCell<Vec<UnknownField>>,
}

impl Notes {
    /// `unread`: for each struct by name, the fields that the API has and nothing here reads.
    pub(crate) fn new(unread: &'static [(&'static str, &'static [&'static str])]) -> Self {
        Self { unread, faults: RefCell::default(), unknown: RefCell::default() }
    }

    pub(crate) fn into_parts(self) -> (Vec<Fault>, Vec<UnknownField>) {
        (self.faults.into_inner(), self.unknown.into_inner())
    }

    fn unread(&self, name: &str) -> &'static [&'static str] {
        self.unread.iter().find(|(of, _)| *of == name).map_or(&[], |(_, fields)| fields)
    }
}

/// Why a value could not be read, and, as soon as it has passed a [`Tree`], where it stands.
#[derive(Debug)]
pub(crate) struct TreeError {
    path: Option<Box<str>>,
    why: Box<str>,
}

/// Stands between path and reason in the text of a [`TreeError`]. serde hides the type of an error from the types that
/// are being deserialized, and the text is all that [`Checked`](crate::Checked) gets to see.
const BETWEEN: char = '\u{1f}';

impl TreeError {
    pub(crate) fn into_fault(self) -> Fault {
        Fault { path: self.path.unwrap_or_default(), why: self.why }
    }
}

/// The fault behind an error that came out of a [`Tree`].
pub(crate) fn fault(error: &impl fmt::Display) -> Fault {
    let text = error.to_string();
    let (path, why) = text.split_once(BETWEEN).unwrap_or(("", &text));
    Fault { path: path.into(), why: why.into() }
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{BETWEEN}{}", self.path.as_deref().unwrap_or_default(), self.why)
    }
}

impl std::error::Error for TreeError {}

impl de::Error for TreeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { path: None, why: message.to_string().into() }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::invalid_value(found, expected)
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::custom(format_args!("expected {expected}"))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format_args!("`{field}` is missing"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::custom(format_args!("duplicate field `{field}`"))
    }
}

/// A value on its way into a type.
#[derive(Clone, Copy)]
pub(crate) struct Tree<'de, 'p, 'a> {
    node: &'de Node<'a>,
    path: FieldPath<'p>,
    notes: &'p Notes,
}

impl<'de, 'p, 'a> Tree<'de, 'p, 'a> {
    pub(crate) fn root(node: &'de Node<'a>, notes: &'p Notes) -> Self {
        Self { node, path: FieldPath::Root, notes }
    }

    /// Gives an error its place, once: at the deepest tree that it passes.
    fn located<T>(&self, result: Result<T, TreeError>) -> Result<T, TreeError> {
        result.map_err(|mut error| {
            if error.path.is_none() {
                let path: Box<str> = self.path.to_string().into();
                self.notes.faults.borrow_mut().push(Fault { path: path.clone(), why: error.why.clone() });
                error.path = Some(path);
            }
            error
        })
    }

    fn expected<T>(&self, what: &str) -> Result<T, TreeError> {
        let hint = match (&self.node.value, what) {
            (Value::Bool(_) | Value::Int(_) | Value::Float(_), "text") => ": put it in quotes",
            (Value::Text(text), "a number") if text.trim().parse::<f64>().is_ok() => ": remove the quotes",
            (Value::Text(_), "a number") if matches!(self.path, FieldPath::Field(_, "port")) => {
                ": write the number of the port, not its name"
            }
            (Value::Text(text), "true or false") if matches!(&**text, "true" | "false") => ": remove the quotes",
            _ => "",
        };
        let why = format!("expected {what}, found {}{hint}", self.node.describe());
        self.located(Err(TreeError { path: None, why: why.into() }))
    }

    fn integer(&self) -> Result<i64, TreeError> {
        match self.node.value {
            Value::Int(value) => Ok(value),
            // As kubectl reads `80.0`.
            Value::Float(value) if value.fract() == 0.0 && value.abs() < 9e15 => Ok(value as i64),
            Value::Float(_) => self.expected("a whole number"),
            _ => self.expected("a number"),
        }
    }

    fn number<T: TryFrom<i64>, V: Visitor<'de>>(
        self,
        visit: impl FnOnce(T) -> Result<V::Value, TreeError>,
    ) -> Result<V::Value, TreeError> {
        let value = self.integer()?;
        match T::try_from(value) {
            Ok(value) => self.located(visit(value)),
            Err(_) => self.located(Err(de::Error::custom(format_args!("the number {value} is out of range")))),
        }
    }
}

impl<'de> de::Deserializer<'de> for Tree<'de, '_, '_> {
    type Error = TreeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        match &self.node.value {
            Value::Null => self.located(visitor.visit_unit()),
            Value::Bool(value) => self.located(visitor.visit_bool(*value)),
            Value::Int(value) => self.located(visitor.visit_i64(*value)),
            Value::Float(value) => self.located(visitor.visit_f64(*value)),
            Value::Text(value) => self.located(visitor.visit_borrowed_str(value)),
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Map(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        match self.node.value {
            Value::Bool(value) => self.located(visitor.visit_bool(value)),
            _ => self.expected("true or false"),
        }
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        self.number::<i32, V>(|value| visitor.visit_i32(value))
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        self.number::<i64, V>(|value| visitor.visit_i64(value))
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        self.number::<u16, V>(|value| visitor.visit_u16(value))
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        self.number::<u32, V>(|value| visitor.visit_u32(value))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        match self.node.value {
            Value::Int(value) => self.located(visitor.visit_f64(value as f64)),
            Value::Float(value) => self.located(visitor.visit_f64(value)),
            _ => self.expected("a number"),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        match &self.node.value {
            Value::Text(text) => self.located(visitor.visit_borrowed_str(text)),
            _ => self.expected("text"),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        match self.node.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, TreeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        match &self.node.value {
            Value::List(items) => self.located(visitor.visit_seq(Items { tree: self, rest: items.iter().enumerate() })),
            _ => self.expected("a list"),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        match &self.node.value {
            Value::Map(entries) => {
                let access = Entries { tree: self, rest: entries.iter(), value: None, fields: false };
                self.located(visitor.visit_map(access))
            }
            _ => self.expected("a map"),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TreeError> {
        let Value::Map(entries) = &self.node.value else { return self.expected("a map") };
        let unread = self.notes.unread(name);
        let is_root = matches!(self.path, FieldPath::Root);
        for (key, _) in entries {
            let field = &*key.text;
            let is_header = is_root && matches!(field, "apiVersion" | "kind");
            if !is_header && !fields.contains(&field) && !unread.contains(&field) {
                let path = FieldPath::Field(&self.path, field).to_string();
                let mut unknown = self.notes.unknown.borrow_mut();
                // Of the names of very many, nobody reads what was meant.
                let (fields, unread) = if unknown.len() < MOST_MEANT { (fields, unread) } else { (&[][..], &[][..]) };
                unknown.push(unknown_field(path, field, fields, unread));
            }
        }
        self.located(visitor.visit_map(Entries { tree: self, rest: entries.iter(), value: None, fields: true }))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u8 u64 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct identifier enum
    }
}

/// The elements of a list.
struct Items<'de, 'p, 'a> {
    tree: Tree<'de, 'p, 'a>,
    rest: std::iter::Enumerate<std::slice::Iter<'de, Node<'a>>>,
}

impl<'de> de::SeqAccess<'de> for Items<'de, '_, '_> {
    type Error = TreeError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, TreeError> {
        let Some((index, node)) = self.rest.next() else { return Ok(None) };
        let path = FieldPath::Index(&self.tree.path, index);
        seed.deserialize(Tree { node, path, notes: self.tree.notes }).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// The entries of a map, or the fields of a struct.
struct Entries<'de, 'p, 'a> {
    tree: Tree<'de, 'p, 'a>,
    rest: std::slice::Iter<'de, (Key<'a>, Node<'a>)>,
    value: Option<(&'de str, &'de Node<'a>)>,
    fields: bool,
}

impl<'de> de::MapAccess<'de> for Entries<'de, '_, '_> {
    type Error = TreeError;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, TreeError> {
        for (key, node) in self.rest.by_ref() {
            if self.fields && node.value == Value::Null {
                continue;
            }
            self.value = Some((key.as_written(), node));
            return seed.deserialize(BorrowedStrDeserializer::new(&key.text)).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, TreeError> {
        let (key, node) = self.value.take().expect("serde asks for a value after its key");
        let path = match self.fields {
            true => FieldPath::Field(&self.tree.path, key),
            false => FieldPath::Entry(&self.tree.path, key),
        };
        seed.deserialize(Tree { node, path, notes: self.tree.notes })
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}
