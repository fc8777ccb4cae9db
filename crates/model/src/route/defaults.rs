//! Header changes that the operator wants on the way to every backend, and back.

use super::HeaderChanges;
use crate::{HeaderName, header::HeaderFormat};
use std::collections::{BTreeMap, BTreeSet};

/// What is changed about headers where nobody who wrote a route says anything about them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HeaderDefaults {
    /// Headers that are given a value: as it was written, since some of it may stand for the backend.
    pub set: BTreeMap<HeaderName, Box<str>>,
    /// Headers that are taken away.
    pub remove: BTreeSet<HeaderName>,
}

impl HeaderDefaults {
    /// What somebody said, and these beneath it; `own` are names in values with what stands for them.
    #[must_use]
    pub fn under(&self, said: HeaderChanges, own: &[(&str, &str)]) -> HeaderChanges {
        let mut set: BTreeMap<HeaderName, HeaderFormat> = said.set.into_iter().collect();
        let mut remove: BTreeSet<HeaderName> = said.remove.into_iter().collect();
        for (name, value) in &self.set {
            if !set.contains_key(name)
                && !remove.contains(name)
                && let Ok(read) = HeaderFormat::read(value, own)
            {
                set.insert(name.clone(), read.format);
            }
        }
        remove.extend(self.remove.iter().filter(|name| !set.contains_key(name)).cloned());
        HeaderChanges { set: set.into_iter().collect(), remove: remove.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn name(text: &str) -> HeaderName {
        HeaderName::parse(text).unwrap()
    }

    fn value(text: &str) -> HeaderFormat {
        HeaderFormat::read(text, &[]).unwrap().format
    }

    #[test]
    fn what_somebody_said_stands_above() {
        let defaults = HeaderDefaults {
            set: [("x-a", "%CONTOUR_NAMESPACE%"), ("x-b", "b"), ("x-c", "c")].map(|(n, v)| (name(n), v.into())).into(),
            remove: ["x-d", "x-e"].map(name).into(),
        };
        let said = HeaderChanges {
            set: vec![(name("x-b"), value("own")), (name("x-d"), value("own"))],
            remove: vec![name("x-c")],
        };
        let expected = HeaderChanges {
            set: vec![(name("x-a"), value("shop")), (name("x-b"), value("own")), (name("x-d"), value("own"))],
            remove: vec![name("x-c"), name("x-e")],
        };
        assert_eq!(defaults.under(said, &[("CONTOUR_NAMESPACE", "shop")]), expected);
        assert_eq!(HeaderDefaults::default().under(expected.clone(), &[]), expected);
    }
}
