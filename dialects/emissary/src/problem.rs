//! What is wrong with an object: collected field by field, so that all of it is told at once.

use crate::Settings;
use kinds::{Checked, Meta};
use model::{Code, FieldPath, ObjectRef, Verdict, VerdictList};
use resolve::{ForeignProtection, Rejection, annotation::foreign};

/// The domain of Emissary's own annotations.
const OWN_DOMAIN: &str = "getambassador.io";

/// Something that is wrong, and the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The row of the table of codes.
    pub code: Code,
    /// The field, below where the fields of its object stand; nothing for the object as a whole.
    pub field: Box<str>,
    /// This very case.
    pub why: Box<str>,
}

impl Problem {
    /// A problem of a field.
    pub fn new(code: Code, field: &str, why: impl Into<Box<str>>) -> Self {
        Self { code, field: field.into(), why: why.into() }
    }
}

/// All problems of an object.
#[derive(Debug)]
pub struct Problems<'o> {
    subject: &'o ObjectRef,
    /// Where its fields stand.
    base: FieldPath,
    /// The code of values that are not valid, if not that of their field in a Mapping.
    invalid: Option<Code>,
    verdicts: VerdictList,
    is_refused: bool,
}

impl<'o> Problems<'o> {
    /// None yet, of fields of `spec`.
    pub fn new(subject: &'o ObjectRef) -> Self {
        let base = FieldPath::from("spec");
        Self { subject, base, invalid: None, verdicts: VerdictList::default(), is_refused: false }
    }

    /// None yet, of keys of a Module.
    pub fn of_module(subject: &'o ObjectRef) -> Self {
        let base = FieldPath::from("spec.config");
        Self { base, invalid: Some(Code::ModuleValue), ..Self::new(subject) }
    }

    /// A field that cannot be served: what would be changed or opened without it is not served either.
    pub fn refuse(&mut self, problem: Problem) {
        self.is_refused = true;
        self.add(problem);
    }

    /// A finding that changes nothing about what is served.
    pub fn add(&mut self, problem: Problem) {
        let Problem { code, field, why } = problem;
        let code = match code {
            Code::MappingPolicy | Code::MappingResolver => self.invalid.unwrap_or(code),
            code => code,
        };
        let field = if field.is_empty() { FieldPath::default() } else { self.base.field(&field) };
        self.verdicts.push(Verdict::new(code, self.subject.at(field), why));
    }

    /// A field without effect.
    pub fn no_effect(&mut self, field: &str, why: &str) {
        self.add(Problem::new(Code::EmissaryIgnored, field, why));
    }

    /// A field that is not served yet, and without which the rest is not served either.
    pub fn unserved(&mut self, field: &str, why: &str) {
        self.refuse(Problem::new(Code::EmissaryNotServed, field, why));
    }

    /// What a field refers to cannot be used.
    pub fn rejected(&mut self, field: &str, rejection: &Rejection) {
        self.is_refused = true;
        self.report(field, rejection);
    }

    /// What a field refers to cannot be used, and the rest is served all the same.
    pub fn report(&mut self, field: &str, rejection: &Rejection) {
        self.verdicts.push(rejection.at(self.subject, self.base.field(field)));
    }

    /// Tells what the object asks of other ingress controllers; whether it is not served because that would protect it.
    pub fn foreign(&mut self, meta: &Meta, settings: &Settings) -> bool {
        let found = foreign::look_beside(meta, self.subject, Some(OWN_DOMAIN));
        found.verdicts.into_iter().for_each(|verdict| self.verdicts.push(verdict));
        found.protects && settings.foreign_protection == ForeignProtection::Refuse
    }

    /// The same, and the object is refused then.
    pub fn refuse_foreign(&mut self, meta: &Meta, settings: &Settings) {
        self.is_refused |= self.foreign(meta, settings);
    }

    /// The value of a field; one that cannot be read is told, and nothing is served in its place.
    pub fn read<'v, T>(&mut self, field: &str, value: &'v Checked<T>) -> Option<&'v T> {
        match value.get() {
            Ok(value) => Some(value),
            Err(fault) => {
                self.refuse(Problem::new(Code::EmissaryField, field, fault.why.clone()));
                None
            }
        }
    }

    /// The value of a field that may be absent.
    pub fn optional<'v, T>(&mut self, field: &str, value: &'v Checked<Option<T>>) -> Option<&'v T> {
        self.read(field, value)?.as_ref()
    }

    /// What was parsed, or nothing and the reason is told.
    pub fn parsed<T>(&mut self, found: Result<T, Problem>) -> Option<T> {
        found.map_err(|problem| self.refuse(problem)).ok()
    }

    /// Whether something was refused.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// What is told about the object.
    pub fn into_verdicts(self) -> Vec<Verdict> {
        self.verdicts.into_sorted()
    }
}
