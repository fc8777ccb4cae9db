//! Routes: HTTPRoute, GRPCRoute, TLSRoute, TCPRoute and UDPRoute.
//!
//! In: a route. Out: a translation that has a piece for each listener, host and match, what the route is attached to, and the
//! conditions of each parent that is ours. Rules are read once, whatever the parents are; [`attachment`] finds the listeners.
//!
//! A wrong backend loses its share of the requests, which the proxy answers; a wrong match is dropped; requests of a rule that is
//! wrong in another way are answered by the proxy, so that nothing that a filter protects is served without it. A route none of
//! whose rules can be used is not accepted.
//!
//! Reading order: [`attachment`] and [`hostname`] (which listeners and hosts), [`matches`] and [`grpc`] (which requests),
//! [`filters`], [`backends`], [`presented`] and [`rule`] (what is done with them), [`pieces`] (how many of them there may be), [`stream`] (TLSRoute,
//! TCPRoute and UDPRoute), [`status`].

pub mod attachment;
pub mod backends;
pub mod cors;
pub mod filters;
pub mod grpc;
pub mod headers;
pub mod hostname;
pub mod http;
pub mod matches;
pub mod pieces;
mod presented;
pub mod redirect;
pub mod retry;
pub mod rule;
pub mod status;
pub mod stream;
#[cfg(test)]
mod tests;

use crate::{GatewayView, Settings};
use kinds::{Fault, Kind, Meta};
use model::{
    Code, FieldPath, ObjectRef, Translation, Verdict, VerdictList,
    translation::{PendingPart, Section},
};
use resolve::annotation::foreign;
use std::collections::BTreeSet;

/// The reason of a value that is not valid or not supported.
pub(crate) const UNSUPPORTED_VALUE: &str = "UnsupportedValue";
/// The reason of filters that exclude each other.
pub(crate) const INCOMPATIBLE_FILTERS: &str = "IncompatibleFilters";

/// How many findings are kept for a condition: it lists a few and counts the others.
const KEPT: usize = 100;

/// A route on its way through the dialect.
pub(crate) struct Work<'a, V> {
    pub kind: Kind,
    pub meta: &'a Meta,
    pub subject: ObjectRef,
    pub settings: &'a Settings,
    pub view: &'a mut V,
    pub verdicts: VerdictList,
    /// References that are not resolved: the reason of the condition, and the case.
    pub unresolved: Vec<(&'static str, String)>,
    /// Parts that are left out though the route is served.
    pub dropped: Vec<String>,
    /// Whether something that the part in question refers to has not been read yet.
    pub is_pending: bool,
    /// Whether the part in question refers to something that it may not.
    pub is_forbidden: bool,
    /// The parts that refer to something that has not been read yet.
    pub pending_parts: Vec<PendingPart>,
    /// The parts that refer to something that they may not: they are in effect as they are now, whatever else is not known.
    pub forbidden_parts: BTreeSet<FieldPath>,
    /// The Services that it refers to.
    pub services: BTreeSet<ObjectRef>,
    /// Why nothing of it is served: it asks another controller for protection.
    pub unprotected: Option<Rejection>,
}

impl<'a, V: GatewayView> Work<'a, V> {
    pub fn new(kind: Kind, meta: &'a Meta, view: &'a mut V, settings: &'a Settings) -> Self {
        let subject = ObjectRef::new(kind, meta.namespace.clone(), meta.name.clone());
        let (verdicts, unresolved, dropped, services) = Default::default();
        let (is_pending, is_forbidden, pending_parts, forbidden_parts) = Default::default();
        Self {
            kind,
            meta,
            subject,
            settings,
            view,
            verdicts,
            unresolved,
            dropped,
            is_pending,
            is_forbidden,
            pending_parts,
            forbidden_parts,
            services,
            unprotected: None,
        }
    }

    /// Tells what the annotations of the route ask another controller for.
    pub fn look_at_annotations(&mut self) {
        let protection = foreign::look(self.meta, &self.subject).verdicts;
        let first = crate::unprotected(&protection, self.settings);
        self.unprotected = first
            .map(|rejection| Rejection::new(rejection.code, rejection.origin.field.clone(), rejection.message.clone()));
        self.verdicts.extend(protection);
    }

    /// Tells something about a field.
    pub fn report(&mut self, rejection: &Rejection) {
        self.is_pending |= rejection.code == Code::SecretPending;
        self.is_forbidden |= rejection.code == Code::ReferenceNotPermitted;
        let verdict = Verdict::new(rejection.code, self.subject.at(rejection.field.clone()), rejection.why.clone());
        self.verdicts.push(verdict.related_to(rejection.absent.as_ref().map(|absent| absent.at(""))));
    }

    /// Reads a rule, and notes whether it refers to something that has not been read yet. One that refers to something that it may
    /// not, or no longer, is not kept as it was for the sake of that.
    pub fn rule<T>(&mut self, field: &FieldPath, read: impl FnOnce(&mut Self) -> T) -> T {
        (self.is_pending, self.is_forbidden) = (false, false);
        let rule = read(self);
        let (is_pending, is_forbidden) = (std::mem::take(&mut self.is_pending), std::mem::take(&mut self.is_forbidden));
        if is_forbidden {
            self.forbidden_parts.insert(field.clone());
        } else if is_pending {
            self.pending_parts.push(PendingPart { listener: None, field: field.clone() });
        }
        rule
    }

    /// Leaves out a part of the route.
    pub fn drop_part(&mut self, part: Part, rejection: &Rejection) {
        self.report(rejection);
        let dropped = format!("{}: {}: {}: {}", part.dropped(), rejection.code, rejection.field, rejection.why);
        if self.dropped.len() < KEPT && !self.dropped.contains(&dropped) {
            self.dropped.push(dropped);
        }
    }

    /// Notes a reference that is not resolved.
    pub fn unresolved(&mut self, reason: &'static str, rejection: &Rejection) {
        self.report(rejection);
        let unresolved = (reason, format!("{}: {}: {}", rejection.code, rejection.field, rejection.why));
        if self.unresolved.len() < KEPT && !self.unresolved.contains(&unresolved) {
            self.unresolved.push(unresolved);
        }
    }

    /// The translation without pieces.
    pub fn into_translation(self, parents: Vec<status::ParentStatus<'_>>, attached: Vec<Section>) -> Translation {
        let facts = status::facts(&self.settings.controller, parents, &self.unresolved, &self.dropped);
        let pending = if self.pending_parts.is_empty() { Vec::new() } else { vec![self.subject.clone()] };
        // What a route asks for in two ways is told once.
        let mut verdicts = self.verdicts.into_sorted();
        verdicts.dedup();
        let mut attached = attached;
        attached.sort();
        attached.dedup();
        let backend_objects = self.services.into_iter().collect();
        Translation {
            facts: Some(facts.into()),
            attached,
            backend_objects,
            pending,
            pending_parts: self.pending_parts,
            verdicts,
            ..Translation::empty(self.subject)
        }
    }
}

/// A part of a route that may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A rule.
    Rule,
    /// One of the matches of a rule.
    Match,
    /// One of the backends of a rule.
    BackendRef,
    /// A hostname, which no rule is served for.
    Hostname,
}

impl Part {
    /// That it is left out. The API asks for messages that begin so.
    fn dropped(self) -> &'static str {
        match self {
            Part::Rule => "Dropped Rule",
            Part::Match => "Dropped Rule match",
            Part::BackendRef => "Dropped Rule backendRef",
            Part::Hostname => "Dropped Rules for a hostname",
        }
    }
}

/// Everything that is wrong with a part of a route, so that whoever writes it is told all of it at once.
#[derive(Debug, Default)]
pub(crate) struct Wrong(Vec<Rejection>);

impl Wrong {
    /// Notes something.
    pub fn add(&mut self, rejection: Rejection) {
        self.0.push(rejection);
    }

    /// What was read, or nothing, which is noted.
    pub fn take<T>(&mut self, read: Result<T, Rejection>) -> Option<T> {
        read.map_err(|rejection| self.add(rejection)).ok()
    }

    /// The first, which decides what becomes of the part; the others are told here.
    pub fn first(self, work: &mut Work<'_, impl GatewayView>) -> Option<Rejection> {
        let mut all = self.0.into_iter();
        let first = all.next();
        all.for_each(|rejection| work.report(&rejection));
        first
    }
}

/// Why a part of a route is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub code: Code,
    /// The reason of the condition where the whole route is not accepted for it.
    pub reason: &'static str,
    pub field: FieldPath,
    pub why: Box<str>,
    /// The object that is referred to, where it does not exist.
    pub absent: Option<ObjectRef>,
}

impl Rejection {
    pub fn new(code: Code, field: FieldPath, why: impl Into<Box<str>>) -> Self {
        Self { code, reason: UNSUPPORTED_VALUE, field, why: why.into(), absent: None }
    }

    /// That an object does not exist.
    pub fn absent(code: Code, field: FieldPath, object: ObjectRef) -> Self {
        let why = format!("{object} does not exist");
        Self { absent: Some(object), ..Self::new(code, field, why) }
    }

    pub fn fault(code: Code, fault: &Fault) -> Self {
        Self::new(code, FieldPath::from(&*fault.path), fault.why.clone())
    }
}
