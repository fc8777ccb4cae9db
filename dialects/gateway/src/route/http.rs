//! HTTPRoute.

use super::{
    Work, attachment,
    backends::Protocols,
    matches, pieces,
    rule::{self, Rule},
};
use crate::{GatewayView, Settings};
use kinds::{HttpRoute, kind};
use model::{Translation, route::UnavailableAnswer};

/// About how many pieces there are for each of its parents.
pub fn size(object: &HttpRoute) -> usize {
    pieces::size(&object.spec, |rule| rule.matches.len())
}

/// What is answered for a backend that cannot be used.
const ANSWER: UnavailableAnswer = UnavailableAnswer::InternalServerError;

/// What an HTTPRoute asks for.
pub fn translate(object: &HttpRoute, view: &mut impl GatewayView, settings: &Settings) -> Translation {
    let mut work = Work::new(kind::HTTP_ROUTE, &object.meta, view, settings);
    let hostnames = attachment::hostnames(&mut work, &object.spec.hostnames);
    let parents =
        attachment::parents(&mut work, &object.spec.parent_refs, &object.spec.use_default_gateways, &hostnames);
    if parents.is_empty() {
        return work.into_translation(Vec::new(), Vec::new());
    }
    let mut rules = rule::all(&mut work, &object.spec.rules, |work, written, field| {
        let requests = rule::matches(work, &written.matches, &field, matches::http);
        let persistence = rule::is_set(&written.session_persistence);
        let parts = rule::Parts {
            filters: &written.filters,
            backends: &written.backend_refs,
            unsupported: persistence.then_some("sessionPersistence"),
            timeouts: Some(&written.timeouts),
            retry: Some(&written.retry),
            protocols: Protocols::Http,
            answer: ANSWER,
        };
        let done = rule::done(work, &parts, &field);
        Rule::of(work, requests, done, field)
    });
    if object.spec.rules.is_empty() {
        // As the API server fills it in: one rule for every request, which has no backend.
        rules.push(rule::without_backends(ANSWER));
    }
    pieces::translation(work, parents, rules, ANSWER)
}
