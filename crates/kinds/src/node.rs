//! A tree of values, the one form in which JSON and YAML reach the decoder.
//!
//! In: JSON, by [`Deserialize`]; YAML, built by whoever parses it. Out: a tree that [`decode`](crate::decode()) reads. It
//! borrows text from the input where it can and lives only while one object is decoded. There is a tree at all because
//! leniency needs one: after a bad value in a stream nobody knows where the next good one begins.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use std::{borrow::Cow, fmt};

/// Where in a text something stands; both count from one, zero means that there is no text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// A value and where it stood.
#[derive(Clone, Debug, PartialEq)]
pub struct Node<'a> {
    /// The value.
    pub value: Value<'a>,
    /// Where it begins.
    pub position: Position,
}

/// What JSON can say.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Nothing; the same as an absent field.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Node<'a>>),
    /// A map in the order in which it was written.
    Map(Vec<(Key<'a>, Node<'a>)>),
}

/// A key of a map and where it stood.
#[derive(Clone, Debug, PartialEq)]
pub struct Key<'a> {
    /// The key.
    pub text: Cow<'a, str>,
    /// The key as it was written, where a conversion has changed it: paths in messages have this one.
    pub written: Option<Cow<'a, str>>,
    /// Where it begins.
    pub position: Position,
}

impl Key<'_> {
    /// The key as it was written.
    pub fn as_written(&self) -> &str {
        self.written.as_ref().unwrap_or(&self.text)
    }
}

impl<'a> From<Cow<'a, str>> for Key<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Key { text, written: None, position: Position::default() }
    }
}

impl<'a> From<&'a str> for Key<'a> {
    fn from(text: &'a str) -> Self {
        Cow::Borrowed(text).into()
    }
}

impl<'a> From<Value<'a>> for Node<'a> {
    fn from(value: Value<'a>) -> Self {
        Node { value, position: Position::default() }
    }
}

impl<'a> Node<'a> {
    /// The field of a map.
    pub fn get(&self, key: &str) -> Option<&Node<'a>> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|(k, _)| k.text == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What it is, for people: numbers, yes and no with their value, text without (it may be a secret).
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Null => "nothing".into(),
            Value::Bool(value) => format!("the boolean {value}"),
            Value::Int(value) => format!("the number {value}"),
            Value::Float(value) => format!("the number {value}"),
            Value::Text(_) => "text".into(),
            Value::List(_) => "a list".into(),
            Value::Map(_) => "a map".into(),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Node<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Depth::Root.deserialize(deserializer)
    }
}

/// Where in the object the tree is being built: `metadata.managedFields`, often the larger part of an object, is
/// skipped without being built.
#[derive(Clone, Copy)]
enum Depth {
    Root,
    Metadata,
    Below,
}

impl<'de> DeserializeSeed<'de> for Depth {
    type Value = Node<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node<'de>, D::Error> {
        deserializer.deserialize_any(self).map(Node::from)
    }
}

impl<'de> Visitor<'de> for Depth {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(value).map_or(Value::Float(value as f64), Value::Int))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Owned(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(Depth::Below)? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(MapKey(text)) = access.next_key::<MapKey<'de>>()? {
            let below = match (self, &*text) {
                (Depth::Root, "metadata") => Depth::Metadata,
                (Depth::Metadata, "managedFields") => {
                    access.next_value::<IgnoredAny>()?;
                    continue;
                }
                _ => Depth::Below,
            };
            let node = access.next_value_seed(below)?;
            entries.push((text.into(), node));
        }
        Ok(Value::Map(entries))
    }
}

/// A key that borrows where it can; serde's own `Cow` never does.
struct MapKey<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for MapKey<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'de> Visitor<'de> for Text {
            type Value = MapKey<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Self::Value, E> {
                Ok(MapKey(Cow::Borrowed(value)))
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
                Ok(MapKey(Cow::Owned(value.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}
