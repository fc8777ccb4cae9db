//! One rule of an HTTPRoute or GRPCRoute: which requests, and what is done with them.

use super::{
    Part, Rejection, Work, Wrong,
    backends::{self, Protocols},
    filters::{self, Filters},
    matches::{self, Requests},
    redirect::RedirectDraft,
    retry,
};
use crate::GatewayView;
use kinds::{
    Checked, List,
    gateway::{
        filter::Filter,
        http_route::{HttpBackend, Retry, Timeouts},
    },
};
use model::{
    Code, FieldPath,
    route::{Forward, Policy, UnavailableAnswer, UnavailableShare},
};

/// A rule that has been read.
pub(crate) struct Rule {
    /// The requests of each match.
    pub requests: Vec<Requests>,
    /// What is done with them.
    pub done: Result<Done, Rejection>,
    pub field: FieldPath,
}

impl Rule {
    /// A rule, unless none of its matches can be used; what else is wrong with it is told all the same.
    pub fn of(
        work: &mut Work<'_, impl GatewayView>,
        requests: Option<Vec<Requests>>,
        done: Result<Done, Rejection>,
        field: FieldPath,
    ) -> Option<Self> {
        match (requests, done) {
            (Some(requests), done) => Some(Self::new(requests, done, field)),
            (None, done) => {
                done.err().iter().for_each(|rejection| work.report(rejection));
                None
            }
        }
    }

    /// A rule. A prefix can only be replaced where the path is matched by one.
    fn new(requests: Vec<Requests>, done: Result<Done, Rejection>, field: FieldPath) -> Self {
        let change = match &done {
            Ok(Done::Forward(forwarded)) => forwarded.rewrite.as_ref(),
            Ok(Done::Redirect(redirected)) => redirected.0.path(),
            Err(_) => None,
        };
        let fits = change.is_none_or(|change| requests.iter().all(|(path, _)| change.at(path).is_some()));
        let done = if fits {
            done
        } else {
            let why = "ReplacePrefixMatch requires matches of type PathPrefix";
            Err(Rejection::new(Code::GatewayRouteFilter, field.field("filters"), why))
        };
        Self { requests, done, field }
    }
}

/// What is done with the requests of a rule.
#[derive(Clone, Debug)]
pub(crate) enum Done {
    /// They go to backends.
    Forward(Box<Forwarded>),
    /// The client gets a redirect.
    Redirect(Box<(RedirectDraft, Policy)>),
}

/// Requests that go to backends.
#[derive(Clone, Debug)]
pub(crate) struct Forwarded {
    /// How; the path is rewritten for each match by itself.
    pub forward: Forward,
    pub policy: Policy,
    pub rewrite: Option<filters::PathChange>,
}

/// The parts of a rule that HTTPRoutes and GRPCRoutes have in common.
pub(crate) struct Parts<'r> {
    pub filters: &'r List<Filter>,
    pub backends: &'r List<HttpBackend>,
    /// A field that is set and not supported.
    pub unsupported: Option<&'static str>,
    pub timeouts: Option<&'r Checked<Option<Box<Timeouts>>>>,
    pub retry: Option<&'r Checked<Option<Box<Retry>>>>,
    pub protocols: Protocols,
    pub answer: UnavailableAnswer,
}

/// Whether an optional field is there, be it readable or not.
pub(crate) fn is_set<T>(field: &Checked<Option<T>>) -> bool {
    !matches!(field.get(), Ok(None))
}

/// All rules that have requests.
pub(crate) fn all<T, V: GatewayView>(
    work: &mut Work<'_, V>,
    written: &List<T>,
    mut read: impl FnMut(&mut Work<'_, V>, &T, FieldPath) -> Option<Rule>,
) -> Vec<Rule> {
    let mut rules = Vec::new();
    for (index, rule) in written.iter().enumerate() {
        match rule.get() {
            Ok(rule) => {
                let field = FieldPath::from("spec.rules").index(index);
                rules.extend(work.rule(&field, |work| read(work, rule, field.clone())));
            }
            Err(fault) => work.drop_part(Part::Rule, &Rejection::fault(Code::GatewayRouteRule, fault)),
        }
    }
    rules
}

/// The requests of a rule. A match that cannot be read is left out, and so is the rule if none is left.
pub(crate) fn matches<T>(
    work: &mut Work<'_, impl GatewayView>,
    written: &List<T>,
    field: &FieldPath,
    read: impl Fn(&T, &FieldPath, &mut Wrong) -> Option<Requests>,
) -> Option<Vec<Requests>> {
    if written.is_empty() {
        return Some(vec![matches::everything()]);
    }
    let mut requests = Vec::new();
    for (index, one) in written.iter().enumerate() {
        let field = field.field("matches").index(index);
        let mut wrong = Wrong::default();
        let found = match one.get() {
            Ok(one) => read(one, &field, &mut wrong),
            Err(fault) => wrong.take(Err(Rejection::fault(Code::GatewayRouteMatch, fault))),
        };
        match wrong.first(work) {
            Some(rejection) => work.drop_part(Part::Match, &rejection),
            None => requests.extend(found),
        }
    }
    (!requests.is_empty()).then_some(requests)
}

/// A rule for every request that has no backend.
pub(crate) fn without_backends(answer: UnavailableAnswer) -> Rule {
    let unavailable = Some(UnavailableShare { weight: 1, answer });
    let forward = Forward { unavailable, ..Forward::default() };
    let forwarded = Forwarded { forward, policy: Policy::default(), rewrite: None };
    let done = Ok(Done::Forward(Box::new(forwarded)));
    Rule { requests: vec![matches::everything()], done, field: FieldPath::from("spec.rules") }
}

/// What is done with the requests of a rule, or the first thing that is in the way; all others are told.
pub(crate) fn done(
    work: &mut Work<'_, impl GatewayView>,
    parts: &Parts<'_>,
    field: &FieldPath,
) -> Result<Done, Rejection> {
    let mut wrong = Wrong::default();
    if let Some(name) = parts.unsupported {
        let why = format!("{name} is not supported");
        wrong.add(Rejection::new(Code::GatewayRouteRule, field.field(name), why));
    }
    let done = read(work, parts, field, &mut wrong);
    match wrong.first(work) {
        Some(rejection) => Err(rejection),
        None => Ok(done),
    }
}

/// What is done with the requests of a rule as far as it can be read.
fn read(work: &mut Work<'_, impl GatewayView>, parts: &Parts<'_>, field: &FieldPath, wrong: &mut Wrong) -> Done {
    let Filters { policy, host, rewrite, redirect, mirrors } =
        filters::of_rule(work, parts.filters, &field.field("filters"), parts.protocols, wrong);
    if let Some(redirect) = redirect {
        if !parts.backends.is_empty() {
            let why = "a rule with a RequestRedirect has no backendRefs";
            wrong.add(Rejection {
                reason: super::INCOMPATIBLE_FILTERS,
                ..Rejection::new(Code::GatewayRouteFilter, field.field("backendRefs"), why)
            });
        }
        return Done::Redirect(Box::new((redirect, policy)));
    }
    let mut forward = Forward { host, mirrors, websocket: parts.protocols == Protocols::Http, ..Forward::default() };
    let (timeout, retry) = retry::read(parts.timeouts, parts.retry, field, wrong);
    (forward.timeout, forward.retry) = (timeout, retry.map(Box::new));
    let found = backends::weighted(work, parts.backends, &field.field("backendRefs"), parts.protocols, wrong);
    forward.clusters = found.clusters;
    let all = if forward.clusters.is_empty() { found.unavailable.max(1) } else { found.unavailable };
    forward.unavailable = (all > 0).then_some(UnavailableShare { weight: all, answer: parts.answer });
    if forward.retry.is_some() {
        forward.clusters.iter_mut().for_each(|share| share.cluster = retry::with_room(&share.cluster));
    }
    if found.host.is_some() {
        forward.host = found.host;
    }
    let rewrite = found.rewrite.or(rewrite);
    Done::Forward(Box::new(Forwarded { forward, policy, rewrite }))
}
