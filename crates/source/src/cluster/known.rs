//! What is known to exist of one target: names and versions, no more.
//!
//! In: what lists and watches say. Out: whether something is new, other, known or gone. It is what tells a list that was
//! made after an outage from news, so it must be exact; and there is a row for each of fifty thousand Secrets that
//! nobody refers to, so it must be small.

use crate::cluster::wire::HeadMeta;
use hashbrown::{Equivalent, HashMap, HashSet};
use std::sync::Arc;

/// The names of an object of one kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Names {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl Names {
    /// Those in a head.
    pub fn of(head: &HeadMeta<'_>) -> Self {
        Self { namespace: Arc::from(&*head.namespace), name: Arc::from(&*head.name) }
    }
}

/// The same, borrowed.
#[derive(Hash)]
struct NamesRef<'a> {
    namespace: &'a str,
    name: &'a str,
}

impl Equivalent<Names> for NamesRef<'_> {
    fn equivalent(&self, names: &Names) -> bool {
        *self.name == *names.name && *self.namespace == *names.namespace
    }
}

#[derive(Clone, Copy, Debug)]
struct Row {
    version: u64,
    /// The last list that held it.
    list: u32,
    /// Whether something was said to be wrong with it.
    is_faulty: bool,
}

/// All rows of one target.
#[derive(Default)]
pub struct Known {
    rows: HashMap<Names, Row>,
    /// Many objects share few namespaces.
    namespaces: HashSet<Arc<str>>,
    list: u32,
}

impl Known {
    /// Begins a list: what is not [looked at](Self::is_news) is gone at its [end](Self::end).
    pub fn begin(&mut self) {
        self.list = self.list.wrapping_add(1);
    }

    /// Whether this version is news. Nothing is noted but that the list holds it.
    pub fn is_news(&mut self, head: &HeadMeta<'_>, version: u64) -> bool {
        match self.rows.get_mut(&NamesRef { namespace: &head.namespace, name: &head.name }) {
            Some(row) => {
                row.list = self.list;
                row.version != version
            }
            None => true,
        }
    }

    /// Whether something was said to be wrong with an object.
    pub fn was_faulty(&self, names: &Names) -> bool {
        self.rows.get(names).is_some_and(|row| row.is_faulty)
    }

    /// Notes a version. Its names may be those of the object, to share their memory.
    pub fn note(&mut self, names: Names, version: u64, is_faulty: bool) {
        self.rows.insert(names, Row { version, list: self.list, is_faulty });
    }

    /// Forgets an object; whether there was one, and something was said to be wrong with it.
    pub fn forget(&mut self, head: &HeadMeta<'_>) -> Option<(Names, bool)> {
        let (names, row) = self.rows.remove_entry(&NamesRef { namespace: &head.namespace, name: &head.name })?;
        Some((names, row.is_faulty))
    }

    /// Ends a list: forgets what it did not hold, and gives it with whether something was said to be wrong with it.
    pub fn end(&mut self) -> Vec<(Names, bool)> {
        let list = self.list;
        let gone = self.rows.extract_if(|_, row| row.list != list);
        let gone: Vec<_> = gone.map(|(names, row)| (names, row.is_faulty)).collect();
        if gone.len() > self.rows.len() {
            self.rows.shrink_to_fit();
        }
        gone
    }

    /// The names in a head, with the namespace shared.
    pub fn names(&mut self, head: &HeadMeta<'_>) -> Names {
        let namespace = self.namespaces.get_or_insert_with(&*head.namespace, |text| Arc::from(text)).clone();
        Names { namespace, name: Arc::from(&*head.name) }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn head(name: &'static str) -> HeadMeta<'static> {
        HeadMeta { name: name.into(), namespace: "n".into(), ..HeadMeta::default() }
    }

    fn list(known: &mut Known, held: &[(&'static str, u64)]) -> (Vec<&'static str>, Vec<String>) {
        known.begin();
        let mut new = Vec::new();
        for &(name, version) in held {
            if known.is_news(&head(name), version) {
                new.push((name, version));
            }
        }
        for &(name, version) in &new {
            let names = known.names(&head(name));
            known.note(names, version, false);
        }
        let mut gone: Vec<_> = known.end().into_iter().map(|(names, _)| names.name.to_string()).collect();
        gone.sort();
        (new.into_iter().map(|(name, _)| name).collect(), gone)
    }

    #[test]
    fn a_list_tells_what_is_new_other_and_gone() {
        let mut known = Known::default();
        assert_eq!(list(&mut known, &[("a", 1), ("b", 2), ("c", 3)]), (vec!["a", "b", "c"], vec![]));
        assert_eq!(list(&mut known, &[("a", 1), ("b", 4)]), (vec!["b"], vec!["c".to_owned()]));
        assert_eq!(list(&mut known, &[("a", 1), ("b", 4)]), (vec![], vec![]));
        assert_eq!(list(&mut known, &[]), (vec![], vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(known.len(), 0);
    }

    #[test]
    fn a_list_that_fails_half_way_changes_nothing() {
        let mut known = Known::default();
        list(&mut known, &[("a", 1), ("b", 2)]);
        known.begin();
        assert!(known.is_news(&head("a"), 9));
        assert_eq!(list(&mut known, &[("a", 9), ("b", 2)]), (vec!["a"], vec![]));
    }

    #[test]
    fn what_came_by_watch_is_held_by_the_next_list_only_if_it_is_there() {
        let mut known = Known::default();
        list(&mut known, &[("a", 1)]);
        let names = known.names(&head("b"));
        known.note(names, 2, true);
        assert_eq!(list(&mut known, &[("a", 1)]).1, ["b"]);
        assert!(known.forget(&head("b")).is_none());
        assert!(!known.forget(&head("a")).unwrap().1);
    }
}
