//! The verdicts that come up while objects are translated: each once, and so many for an object.
//!
//! What unfolds can go wrong at every turn: one child with 700 bad routes that is included 700 times has something to say
//! 490,000 times. A repetition is dropped at once, and past [`MOST`] an object is told that there is more. Errors and the
//! rest are counted apart, so that no number of warnings hides that an object is not served as it is written.

use crate::{Code, ObjectRef, Severity, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The most errors, and the most of everything else, that are listed for an object.
pub const MOST: usize = 1000;

/// Verdicts about one or more objects.
#[derive(Clone, Debug, Default)]
pub struct VerdictList {
    listed: BTreeSet<Verdict>,
    counts: BTreeMap<(ObjectRef, bool), usize>,
}

impl VerdictList {
    /// Lists a verdict, if its object has room for it.
    pub fn push(&mut self, verdict: Verdict) {
        if self.listed.contains(&verdict) {
            return;
        }
        let is_error = verdict.severity() == Severity::Error;
        let count = self.counts.entry((verdict.origin.object.clone(), is_error)).or_default();
        *count += 1;
        if *count <= MOST {
            self.listed.insert(verdict);
        }
    }

    /// Whether one more verdict of a severity about an object makes a difference. Past [`MOST`] it is one of those that are omitted.
    pub fn has_room(&self, object: &ObjectRef, severity: Severity) -> bool {
        let count = self.counts.get(&(object.clone(), severity == Severity::Error));
        count.is_none_or(|count| *count <= MOST)
    }

    /// All that are listed, sorted; for an object that has more, a verdict that says so.
    pub fn into_sorted(self) -> Vec<Verdict> {
        let Self { mut listed, counts } = self;
        for ((object, is_error), _) in counts.into_iter().filter(|(_, count)| *count > MOST) {
            let what = if is_error { "errors" } else { "warnings and notes" };
            let why = format!("there are more than {MOST} {what}; the others are not listed");
            listed.insert(Verdict::new(Code::VerdictsOmitted, object.at(""), why));
        }
        listed.into_iter().collect()
    }
}

impl Extend<Verdict> for VerdictList {
    fn extend<I: IntoIterator<Item = Verdict>>(&mut self, verdicts: I) {
        verdicts.into_iter().for_each(|verdict| self.push(verdict));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(code: Code, name: &str, number: usize) -> Verdict {
        Verdict::new(code, ObjectRef::new(kinds::kind::SERVICE, "a", name).at(&*format!("spec.rules[{number}]")), "")
    }

    #[test]
    fn one_object_has_its_most_and_takes_no_room_of_another() {
        let mut list = VerdictList::default();
        let many = verdict(Code::AnnotationUnknown, "many", 0).origin.object;
        let mut pushed = 0;
        while list.has_room(&many, Severity::Warning) {
            list.push(verdict(Code::AnnotationUnknown, "many", pushed));
            pushed += 1;
        }
        assert_eq!(pushed, MOST + 1, "the last one tells that there are more");
        assert!(list.has_room(&many, Severity::Error));
        for _ in 0..2 {
            list.extend((0..3 * MOST).map(|number| verdict(Code::AnnotationUnknown, "many", number)));
        }
        list.push(verdict(Code::IngressHost, "many", 0));
        list.push(verdict(Code::AnnotationUnknown, "few", 0));
        let listed = list.into_sorted();
        let count = |name: &str, code: Code| {
            listed.iter().filter(|found| *found.origin.object.name == *name && found.code == code).count()
        };
        assert_eq!(count("many", Code::AnnotationUnknown), MOST);
        assert_eq!(count("many", Code::VerdictsOmitted), 1);
        assert_eq!((count("many", Code::IngressHost), count("few", Code::AnnotationUnknown)), (1, 1));
        assert_eq!(listed.len(), MOST + 3);
        assert!(listed.is_sorted());
    }
}
