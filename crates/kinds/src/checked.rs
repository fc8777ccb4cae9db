//! Values that may be bad without taking their neighbours with them.
//!
//! The rule: **a value of the wrong type spoils the smallest [`Checked`] around it**, and a type puts a `Checked`
//! wherever a part can be lost alone.
//!
//! * Each element of a list of independent things (rules, paths, TLS entries, ports, endpoints) is checked by itself
//!   ([`List`]). A bad element keeps its place, so the others keep their index. A list that is no list is a `List` of
//!   one bad element.
//! * Each label, annotation and entry of `data` is checked by itself ([`TextMap`](crate::TextMap)).
//! * A field of `spec` outside a list is a `Checked<Option<T>>` where its loss changes what the object means: whoever
//!   asks for the class of an Ingress cannot mistake a broken class for none.
//! * Where absence is harmless (a creation time, a generation) a bad value is the same as none (`or_default`).
//!
//! Whatever was bad is also in [`Decoded::faults`](crate::Decoded::faults), so nothing is dropped in silence.

use crate::decode::fault;
use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use std::{fmt, marker::PhantomData, ops::Deref};

/// A value that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fault {
    /// The field, with its path from the root of the object.
    pub path: Box<str>,
    /// What was expected and what was found; never the text of a value.
    pub why: Box<str>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.path {
            "" => f.write_str(&self.why),
            path => write!(f, "{path}: {}", self.why),
        }
    }
}

impl std::error::Error for Fault {}

/// A value, or what was wrong with it.
///
/// It can only be deserialized from a tree ([`decode`](crate::decode::decode)): a stream cannot go on after an error.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Checked<T>(Result<T, Box<Fault>>);

impl<T> Checked<T> {
    /// A good value.
    pub fn good(value: T) -> Self {
        Self(Ok(value))
    }

    /// A bad value.
    pub fn bad(fault: Fault) -> Self {
        Self(Err(Box::new(fault)))
    }

    /// The value, or what was wrong with it.
    pub fn get(&self) -> Result<&T, &Fault> {
        self.0.as_ref().map_err(|fault| &**fault)
    }

    /// The value, if it is good.
    pub fn ok(&self) -> Option<&T> {
        self.0.as_ref().ok()
    }

    /// The value as something else.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Checked<U> {
        Checked(self.0.map(change))
    }

    /// What was wrong, if it is bad.
    pub fn fault(&self) -> Option<&Fault> {
        self.0.as_ref().err().map(|fault| &**fault)
    }
}

impl<T: Default> Default for Checked<T> {
    fn default() -> Self {
        Self(Ok(T::default()))
    }
}

impl<T: fmt::Debug> fmt::Debug for Checked<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(value) => value.fmt(f),
            Err(fault) => write!(f, "bad({fault})"),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Checked<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(T::deserialize(deserializer).map_err(|error| Box::new(fault(&error)))))
    }
}

/// A list whose elements may be bad one by one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct List<T>(Box<[Checked<T>]>);

impl<T> List<T> {
    /// The good elements, each with its index.
    pub fn good(&self) -> impl Iterator<Item = (usize, &T)> {
        self.0.iter().enumerate().filter_map(|(index, item)| Some((index, item.ok()?)))
    }

    /// What was wrong with the bad elements.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.0.iter().filter_map(Checked::fault)
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl<T> Deref for List<T> {
    type Target = [Checked<T>];

    fn deref(&self) -> &[Checked<T>] {
        &self.0
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().map(Checked::good).collect())
    }
}

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
            type Value = Box<[Checked<T>]>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::with_capacity(access.size_hint().unwrap_or_default());
                while let Some(item) = access.next_element()? {
                    items.push(item);
                }
                Ok(items.into())
            }
        }
        let items = deserializer.deserialize_seq(Items(PhantomData));
        Ok(Self(items.unwrap_or_else(|error| Box::new([Checked::bad(fault(&error))]))))
    }
}

/// For fields whose absence is harmless: a bad value is the same as none.
pub(crate) fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Default,
    D: Deserializer<'de>,
{
    Ok(T::deserialize(deserializer).unwrap_or_default())
}
