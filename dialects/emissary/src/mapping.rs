//! A Mapping: which requests go to a service, and how.
//!
//! In: the object. Out: one route, shared with all Hosts that take it by its host name and its labels. Several Mappings for the same
//! requests share them by their weights; in assembly each stays a route of its own. A Mapping of which something cannot be served
//! answers 503, so that its requests do not reach another route.

mod agreement;
mod authorization;
pub mod defaults;
pub(crate) mod forward;
pub(crate) mod headers;
mod health;
mod ignored;
pub mod labels;
mod matches;
mod redirect;
pub(crate) mod service;
pub(crate) mod upstream;

use crate::{DIALECT, EmissaryView, MESSAGES, POOL, Problem, Problems, Settings, listeners::labels_of};
use defaults::MappingDefaults;
use kinds::{emissary::Mapping, kind};
use matches::Matched;
use model::{
    Code, FleetId, ObjectRef, Route, Translation,
    route::{Action, Depth, DirectResponse, OnEqual, Policy, Precedence, Share},
    shared_routes::{RoutePool, SharedRoutes},
};
use std::sync::Arc;

/// What a Mapping asks for.
pub fn translate(object: &Mapping, view: &mut impl EmissaryView, settings: &Settings) -> Translation {
    let subject = ObjectRef::new(kind::MAPPING, object.meta.namespace.clone(), object.meta.name.clone());
    let mut problems = Problems::new(&subject);
    problems.refuse_foreign(&object.meta, settings);
    let defaults = view.mapping_defaults();
    let mut work = Work { object, view, settings, defaults, problems: &mut problems, is_pending: false };
    let matched = matches::read(&mut work);
    let made = made(&mut work);
    let is_pending = work.is_pending;
    let on_equal = on_equal(object, &mut problems, settings);
    let is_refused = problems.is_refused();
    let shared = matched.map(|Matched { path, conditions, hosts, lengths }| {
        let (action, policy) = match made {
            Some(made) if !is_refused => made,
            _ => (Action::DirectResponse(DirectResponse::unavailable()), Policy::default()),
        };
        let created = object.meta.created.map_or(0, |time| time.as_second());
        let (namespace, name) = (object.meta.namespace.clone(), object.meta.name.clone());
        let precedence = Precedence {
            priority: precedence(object),
            on_equal,
            lengths,
            ..Precedence::by_age(DIALECT, created, namespace, name, 0)
        };
        let route = Route {
            path,
            conditions,
            depth: Depth::AnyLabels,
            fraction: None,
            action,
            policy: policy.into(),
            precedence,
            origin: subject.at("spec"),
            combined: None,
        };
        let pool = RoutePool { fleet: FleetId::Shared, name: POOL };
        SharedRoutes { pool, hosts, labels: labels_of(&object.meta), routes: vec![Arc::new(route)] }
    });
    let pending = if is_pending { vec![subject.clone()] } else { Vec::new() };
    let verdicts = problems.into_verdicts();
    Translation { pending, shared: shared.into_iter().collect(), verdicts, ..Translation::empty(subject) }
}

/// One Mapping on its way through the dialect.
struct Work<'a, 'o, V> {
    object: &'a Mapping,
    view: &'a mut V,
    settings: &'a Settings,
    /// What the Module says where the Mapping does not.
    defaults: Arc<MappingDefaults>,
    problems: &'a mut Problems<'o>,
    /// Whether it depends on a Secret that has not been read yet.
    is_pending: bool,
}

/// What is done with its requests, and the policies around that.
fn made(work: &mut Work<'_, '_, impl EmissaryView>) -> Option<(Action, Policy)> {
    let spec = &work.object.spec;
    ignored::report(&work.object.spec, work.problems);
    let is_redirect = work.problems.optional("host_redirect", &spec.host_redirect).copied().unwrap_or_default();
    let is_shadow = is_shadow(work.object);
    if is_redirect && is_shadow {
        let why = "At most one of host_redirect and shadow may be set; ignoring host_redirect";
        work.problems.no_effect("host_redirect", why);
    }
    authorization::report_closed(work);
    let policy = headers::policy(work);
    let global_limit = labels::read(work);
    if is_redirect && !is_shadow {
        ignored::report_of_forwards(spec, work.problems);
        if global_limit.is_some() && spec.labels.ok().is_some_and(|labels| !labels.is_empty()) {
            work.problems.no_effect("labels", "requests that are redirected are not counted");
        }
        return Some((Action::Redirect(redirect::read(work)?), policy?));
    }
    ignored::report_of_redirects(spec, work.problems);
    let authorization = authorization::read(work);
    let forward = forward::read(work);
    Some((Action::Forward(Box::new(forward?)), Policy { authorization: authorization?, global_limit, ..policy? }))
}

fn is_shadow(object: &Mapping) -> bool {
    object.spec.shadow.ok().copied().flatten().unwrap_or_default()
}

/// The number that its author chose, as far as it is one of ours.
fn precedence(object: &Mapping) -> i32 {
    let number = object.spec.precedence.ok().copied().flatten().unwrap_or_default();
    i32::try_from(number).unwrap_or(if number < 0 { i32::MIN + 1 } else { i32::MAX })
}

/// Its share of requests that others match, too.
fn on_equal(object: &Mapping, problems: &mut Problems<'_>, settings: &Settings) -> OnEqual {
    let _told = problems.optional("precedence", &object.spec.precedence);
    let weight = problems.optional("weight", &object.spec.weight).copied();
    let percent = weight.map(|weight| u8::try_from(weight).ok().filter(|weight| *weight <= 100));
    if let (Some(weight), Some(None)) = (weight, percent) {
        let why = format!("Mapping {} has invalid weight {weight}: must be from 0 to 100", object.meta.name);
        problems.refuse(Problem::new(Code::MappingWeight, "weight", why));
    }
    if problems.optional("shadow", &object.spec.shadow).copied().unwrap_or_default() {
        let percent = percent.flatten().unwrap_or(100);
        return OnEqual::Mirror { percent, across_namespaces: settings.cross_namespace, messages: &MESSAGES };
    }
    let share = match percent {
        None => Share::Rest,
        Some(percent) => Share::Percent(percent.unwrap_or_default()),
    };
    OnEqual::Split { share, agreement: agreement::of(&object.spec), messages: &MESSAGES }
}
