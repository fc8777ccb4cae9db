//! Maps from text to text: labels, annotations, the data of a ConfigMap.
//!
//! Kubernetes refuses `replicas: 3` as an annotation where `"3"` is needed. Here only that entry is bad, and asking for
//! it gives the fault: an annotation that protects something cannot vanish because somebody forgot the quotes.

use crate::{Checked, Fault, decode::fault};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use std::{fmt, marker::PhantomData};

/// A map from text to values that may be bad one by one; in the order of the keys.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CheckedMap<T> {
    entries: Box<[(Box<str>, Checked<T>)]>,
    /// The whole was no map: then every question is answered with this.
    broken: Option<Box<Fault>>,
}

/// The entries of a map while it is made.
type Entries<T> = Vec<(Box<str>, Checked<T>)>;

/// A map from text to text.
pub type TextMap = CheckedMap<Box<str>>;

impl<T> CheckedMap<T> {
    /// The value of a key, if it is there; the fault, if it or the whole map is bad.
    pub fn get(&self, key: &str) -> Result<Option<&T>, &Fault> {
        match self.entries.binary_search_by(|(k, _)| (**k).cmp(key)) {
            Ok(found) => self.entries[found].1.get().map(Some),
            Err(_) => self.broken.as_deref().map_or(Ok(None), Err),
        }
    }

    /// The entries in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Result<&T, &Fault>)> {
        self.entries.iter().map(|(key, value)| (&**key, value.get()))
    }

    /// What was wrong with the whole, if it was no map.
    pub fn broken(&self) -> Option<&Fault> {
        self.broken.as_deref()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A map of these entries; the later of two with one key stands.
    pub(crate) fn new(mut entries: Entries<T>, broken: Option<Box<Fault>>) -> Self {
        entries.reverse();
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        entries.dedup_by(|(a, _), (b, _)| a == b);
        Self { entries: entries.into(), broken }
    }

    pub(crate) fn into_parts(self) -> (Entries<T>, Option<Box<Fault>>) {
        (self.entries.into(), self.broken)
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        if self.entries.iter().any(|(key, _)| !keep(key)) {
            self.entries = std::mem::take(&mut self.entries).into_iter().filter(|(key, _)| keep(key)).collect();
        }
    }
}

impl<T> Default for CheckedMap<T> {
    fn default() -> Self {
        Self { entries: Box::default(), broken: None }
    }
}

impl<K: Into<Box<str>>, V: Into<T>, T> FromIterator<(K, V)> for CheckedMap<T> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self::new(entries.into_iter().map(|(key, value)| (key.into(), Checked::good(value.into()))).collect(), None)
    }
}

impl<T: fmt::Debug> fmt::Debug for CheckedMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.broken {
            Some(fault) => write!(f, "bad({fault})"),
            None => f.debug_map().entries(self.entries.iter().map(|(key, value)| (key, value))).finish(),
        }
    }
}

impl<'de, T: FromText> Deserialize<'de> for CheckedMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map<T>(PhantomData<T>);

        impl<'de, T: FromText> Visitor<'de> for Map<T> {
            type Value = Entries<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::with_capacity(access.size_hint().unwrap_or_default());
                while let Some(key) = access.next_key::<&str>()? {
                    entries.push((key.into(), access.next_value::<Checked<Written<T>>>()?.map(|written| written.0)));
                }
                Ok(entries)
            }
        }
        Ok(match deserializer.deserialize_map(Map(PhantomData)) {
            Ok(entries) => Self::new(entries, None),
            Err(error) => Self { entries: Box::default(), broken: Some(Box::new(fault(&error))) },
        })
    }
}

/// What the text of an entry is read as.
pub trait FromText: Sized {
    /// Reads it; an error says what was expected.
    fn from_text(text: &str) -> Result<Self, &'static str>;
}

impl FromText for Box<str> {
    fn from_text(text: &str) -> Result<Self, &'static str> {
        Ok(text.into())
    }
}

/// A value that is written as text; `null` is empty text, as Kubernetes reads it.
///
/// The text is read inside the visitor: only what fails there is given its path.
#[derive(Default)]
pub(crate) struct Written<T>(pub(crate) T);

impl<'de, T: FromText> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text<T>(PhantomData<T>);

        impl<'de, T: FromText> Visitor<'de> for Text<T> {
            type Value = Written<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
                self.visit_str("")
            }

            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
                deserializer.deserialize_str(self)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                T::from_text(text).map(Written).map_err(E::custom)
            }
        }
        deserializer.deserialize_option(Text(PhantomData))
    }
}
