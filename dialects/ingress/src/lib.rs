//! Ingress, `networking.k8s.io/v1`: one object in, one [`Translation`] out.
//!
//! Every "no" stays with the smallest thing that contains it. A rule with a bad host loses that rule; a path with a bad
//! regex, that path; a missing Service makes that path answer 503, so that a client sees an outage and not a page that
//! never was; a broken Secret takes the TLS of its hosts and nothing else. Each is told with a code and its field.
//!
//! Reading order: [`class`] (is it ours?), [`annotations`] (what holds for the whole object), [`rules`] (paths and
//! what is behind them), [`budget`] (how many of them), [`tls`], [`status`].

pub mod annotations;
pub mod budget;
pub mod class;
pub mod rules;
pub mod status;
pub mod tls;

use annotations::Annotations;
use class::Owner;
use kinds::{Ingress, IngressClass, emissary::DEFAULT_ID};
use model::{
    Code, FieldPath, ObjectRef, Translation, Verdict, VerdictList,
    route::{Dialect, HeaderDefaults, Precedence, TieBreak},
    tls::TlsVersions,
};
use resolve::{ForeignProtection, View, annotation::foreign};
use std::sync::Arc;

/// Every other dialect wins where it has a route for the same requests: an Ingress says least.
pub const DIALECT: Dialect = Dialect { rank: 40, tie_break: TieBreak::Conditions, falls_through: false };

/// The controller name that makes an IngressClass ours.
pub const CONTROLLER: &str = "projectsesame.io/ingress-controller";

/// What the operator of Sesame sets for all Ingresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The classes that are ours; where none is named, the rules of [`class`] hold.
    pub class_names: Vec<Box<str>>,
    /// Whether Emissary's class and the classes of its controller are ours, too.
    pub emissary_class: bool,
    /// The id of this instance: of the Ingresses of Emissary's classes those are ours that are for it.
    pub ambassador_id: Box<str>,
    /// What is changed about the headers of requests on the way to a backend.
    pub request_headers: HeaderDefaults,
    /// What is changed about the headers of answers.
    pub response_headers: HeaderDefaults,
    /// The TLS versions that any host may speak.
    pub tls: TlsVersions,
    /// The port that clients reach HTTPS at, where it is not the usual one.
    pub https_port: Option<u16>,
    /// Whether a TLS host whose Secret is not there gets a certificate that we sign ourselves: for work on one's own
    /// machine.
    pub self_signed: bool,
    /// The certificate that backends are presented over TLS.
    pub client_certificate: Option<ObjectRef>,
    /// What is done with an Ingress that asks another controller for protection.
    pub foreign_protection: ForeignProtection,
    /// Whether it is told that an object is of a class that is not ours: where nobody else serves it.
    pub report_other_classes: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            class_names: Vec::new(),
            emissary_class: false,
            ambassador_id: DEFAULT_ID.into(),
            request_headers: HeaderDefaults::default(),
            response_headers: HeaderDefaults::default(),
            tls: TlsVersions::default(),
            https_port: None,
            self_signed: false,
            client_certificate: None,
            foreign_protection: ForeignProtection::default(),
            report_other_classes: false,
        }
    }
}

/// Where the dialect looks things up.
pub trait IngressView: View {
    /// A class by its name.
    fn class(&mut self, name: &str) -> Option<Arc<IngressClass>>;

    /// The class of Ingresses that name none.
    fn default_class(&mut self) -> Option<Arc<IngressClass>>;
}

/// What the object asks for; nothing if it is not ours.
pub fn translate(object: &Ingress, view: &mut impl IngressView, settings: &Settings) -> Option<Translation> {
    let (namespace, name) = (object.meta.namespace.clone(), object.meta.name.clone());
    let subject = ObjectRef { kind: kinds::kind::INGRESS, namespace, name };
    match class::owner(object, view, settings) {
        Owner::Ours => {}
        Owner::OtherInstance => return None,
        Owner::OtherClass => {
            let verdict = settings.report_other_classes.then(|| class::other(object, settings).on(&subject));
            return verdict.map(|verdict| Translation { verdicts: vec![verdict], ..Translation::empty(subject) });
        }
    }
    let mut verdicts = VerdictList::default();
    let annotations = Annotations::read(&object.meta, &subject, settings, &mut verdicts);
    let foreign = foreign::look(&object.meta, &subject);
    verdicts.extend(foreign.verdicts);
    let refused = foreign.protects && settings.foreign_protection == ForeignProtection::Refuse;
    let mut context = Context { object, subject, annotations, settings, refused, is_pending: false, verdicts };
    let tls = tls::pieces(&mut context, view);
    let rules::Pieces { hosts, routes } = rules::pieces(&mut context, view, &tls);
    let Context { subject, is_pending, verdicts, .. } = context;
    let pending = if is_pending { vec![subject.clone()] } else { Vec::new() };
    let verdicts = verdicts.into_sorted();
    Some(Translation { hosts, routes, tls, pending, verdicts, ..Translation::empty(subject) }.sorted())
}

/// One object on its way through the dialect.
struct Context<'a> {
    object: &'a Ingress,
    subject: ObjectRef,
    annotations: Annotations,
    settings: &'a Settings,
    /// Whether its paths answer 503, because what would protect them is not there.
    refused: bool,
    /// Whether it depends on a Secret that has not been read yet.
    is_pending: bool,
    verdicts: VerdictList,
}

impl Context<'_> {
    fn namespace(&self) -> &str {
        &self.object.meta.namespace
    }

    /// Tells that a limit is passed, and from which field on the object is left out.
    fn pass(&mut self, limit: budget::Limit, from: FieldPath) {
        let why = format!("this and everything after it is omitted: the Ingress has more than {limit}");
        self.verdicts.push(Verdict::new(Code::IngressLimit, self.subject.at(from), why));
    }

    fn precedence(&self, index: usize, implied: bool) -> Precedence {
        let meta = &self.object.meta;
        let created = meta.created.map_or(0, |time| time.as_second());
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        Precedence { implied, ..Precedence::by_age(DIALECT, created, meta.namespace.clone(), meta.name.clone(), index) }
    }
}

#[cfg(test)]
mod tests;
