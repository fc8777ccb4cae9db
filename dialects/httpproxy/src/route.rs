//! A route: which requests, what is done with them, and what of it is in the way.
//!
//! A route whose conditions are good and of which anything else cannot be used answers 503 on them: a client sees an outage
//! of this route, not the answer of another. Where a condition cannot be read but the path can, the same is done for what
//! can be read, so that no wider route gets the requests, unless another route asks for exactly those. A route whose path
//! cannot be read takes nothing: nobody knows what it was for.

pub mod cookies;
pub mod headers;
pub mod health;
pub mod ip_filter;
pub mod load_balancer;
pub mod rate_limit;
pub mod redirect;
pub mod retry;
pub mod rewrite;
pub mod service;

use self::rate_limit::global::GlobalPolicy;
use crate::{HttpProxyView, Rejection, Work, authorization, condition::Scope, gather, jwt};
use kinds::{Checked, Fault, HttpProxy, http_proxy};
use model::{
    Code, FieldPath, ObjectRef, Origin, Timeout,
    route::{Action, Conditions, CookieRewrite, DirectResponse, Forward, Path, PathMatch, Policy},
};

/// A route before it stands on a listener.
#[derive(Clone, Debug)]
pub(crate) struct RouteDraft {
    pub path: PathMatch,
    pub conditions: Conditions,
    pub action: Action,
    pub policy: Policy,
    /// Served over plaintext though the host has TLS.
    pub insecure: bool,
    /// Only stands in for a route that cannot be read: whoever asks for the same requests gets them.
    pub implied: bool,
    pub origin: Origin,
}

impl RouteDraft {
    /// What answers 503 in the place of something that cannot be read as a whole.
    pub fn stand_in((path, conditions): (PathMatch, Conditions), insecure: bool, origin: Origin) -> Self {
        let action = Action::DirectResponse(DirectResponse::unavailable());
        Self { path, conditions, action, policy: Policy::default(), insecure, implied: true, origin }
    }
}

impl RouteDraft {
    /// The same requests, answered 503.
    pub fn refused(self) -> Self {
        Self { action: Action::DirectResponse(DirectResponse::unavailable()), policy: Policy::default(), ..self }
    }
}

/// Where a route stands: its object and its field.
pub(crate) struct FieldContext<'a> {
    pub object: &'a HttpProxy,
    pub subject: &'a ObjectRef,
    pub field: FieldPath,
}

/// The route; nothing, and a verdict, where its conditions cannot be used, or no request has its path.
pub(crate) fn route(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    subject: &ObjectRef,
    scope: &Scope,
    route: &http_proxy::Route,
    index: usize,
) -> Option<RouteDraft> {
    let place = FieldContext { object, subject, field: FieldPath::from("spec.routes").index(index) };
    let mut notes = Vec::new();
    let matched = scope.route(&route.conditions, &place.field, &mut notes);
    notes.into_iter().for_each(|note| work.report(subject, note));
    let insecure = route.permit_insecure.ok().copied().unwrap_or(false);
    let (path, conditions) = match matched {
        Ok(Some(matched)) => matched,
        unmatched => {
            // What else is wrong with it is told, too.
            let others = done(work, &place, route, &PathMatch::Prefix(Path::root())).err().into_iter().flatten();
            unmatched.err().into_iter().chain(others).for_each(|rejection| work.report(subject, rejection));
            let origin = subject.at(place.field);
            return scope.readable(&route.conditions).map(|part| RouteDraft::stand_in(part, insecure, origin));
        }
    };
    let (action, policy) = done(work, &place, route, &path).unwrap_or_else(|rejections| {
        rejections.into_iter().for_each(|rejection| work.report(subject, rejection));
        (Action::DirectResponse(DirectResponse::unavailable()), Policy::default())
    });
    let origin = subject.at(place.field);
    Some(RouteDraft { path, conditions, action, policy, insecure, implied: false, origin })
}

/// What is done with the requests, or everything that is in the way.
fn done(
    work: &mut Work<'_, impl HttpProxyView>,
    place: &FieldContext<'_>,
    route: &http_proxy::Route,
    path: &PathMatch,
) -> Result<(Action, Policy), Vec<Rejection>> {
    let mut rejections = Vec::new();
    gather(&mut rejections, route.permit_insecure.get().map(drop).map_err(Rejection::from));
    let mut policy = Policy::default();
    let mut host = None;
    gather(
        &mut rejections,
        headers::route(work, place, route).map(|(found, rewrite)| (policy, host) = (found, rewrite)),
    );
    (policy.cors, policy.host_rate_limit) = (work.host.cors.clone(), work.host.local_rate_limit.clone());
    // A route's own lists stand in place of the host's.
    let ip_filter = ip_filter::filter(&route.ip_allow, &route.ip_deny, &place.field);
    gather(&mut rejections, ip_filter.map(|own| policy.ip_filter = own.or_else(|| work.host.ip_filter.clone())));
    let limit = rate_limit::local(&route.rate_limit_policy, &place.field, Code::ProxyRateLimit);
    gather(&mut rejections, limit.map(|limit| policy.local_rate_limit = limit));
    gather(&mut rejections, authorization::of_route(work, place, route).map(|found| policy.authorization = found));
    let global =
        rate_limit::global::policy(work, place.subject, &route.rate_limit_policy, &place.field, Code::ProxyRateLimit);
    if route.services.is_empty() && matches!(global, Ok(GlobalPolicy::Descriptors(_))) {
        let why = "no effect: proxies ask the rate limit service about requests that they forward; use `local`";
        let field = place.field.field("rateLimitPolicy").field("global");
        work.report(place.subject, Rejection::new(Code::ProxyIgnored, field, why));
    }
    gather(&mut rejections, global.map(|global| policy.global_limit = global.or(work.host.global_limit.as_ref())));
    gather(
        &mut rejections,
        jwt::required(work, &route.jwt_verification_policy, &place.field).map(|provider| policy.jwt = provider),
    );
    let redirect = optional(&route.request_redirect_policy);
    let respond = optional(&route.direct_response_policy);
    let services = !route.services.is_empty();
    let action = match (services, redirect, respond) {
        (_, Err(fault), _) | (_, _, Err(fault)) => Err(vec![fault.into()]),
        (true, Ok(None), Ok(None)) => {
            gather(
                &mut rejections,
                cookies::policies(&route.cookie_rewrite_policies, &place.field).map(|found| policy.cookies = found),
            );
            forward(work, place, route, path, host, &policy.cookies)
        }
        (false, Ok(Some(policy)), Ok(None)) => {
            redirect::redirect(policy, &place.field).map(Action::Redirect).map_err(|rejection| vec![rejection])
        }
        (false, Ok(None), Ok(Some(policy))) => {
            redirect::respond(policy, &place.field).map(Action::DirectResponse).map_err(|rejection| vec![rejection])
        }
        _ => {
            let why = "exactly one of services, requestRedirectPolicy and directResponsePolicy must be set";
            Err(vec![Rejection::new(Code::ProxyRouteAction, place.field.clone(), why)])
        }
    };
    if !services && route.cookie_rewrite_policies.ok().is_some_and(Option::is_some) {
        let why = "no effect: the route has no services";
        work.report(place.subject, Rejection::new(Code::ProxyIgnored, place.field.field("cookieRewritePolicies"), why));
    }
    match action {
        Ok(action) if rejections.is_empty() => Ok((action, policy)),
        Ok(_) => Err(rejections),
        Err(more) => {
            rejections.extend(more);
            Err(rejections)
        }
    }
}

/// A field, if it is set.
pub(crate) fn optional<T: ?Sized>(field: &Checked<Option<Box<T>>>) -> Result<Option<&T>, &Fault> {
    field.get().map(|found| found.as_deref())
}

fn forward(
    work: &mut Work<'_, impl HttpProxyView>,
    place: &FieldContext<'_>,
    route: &http_proxy::Route,
    path: &PathMatch,
    host: Option<model::route::HostRewrite>,
    cookies: &[CookieRewrite],
) -> Result<Action, Vec<Rejection>> {
    let mut rejections = Vec::new();
    let mut forward = Forward { host, ..Forward::default() };
    gather(&mut rejections, route.enable_websockets.get().map(|&on| forward.websocket = on).map_err(Rejection::from));
    let (mut idle_connection, mut notes) = (Timeout::Default, Vec::new());
    gather(
        &mut rejections,
        retry::timeouts(&route.timeout_policy, &place.field, &mut notes).map(|times| {
            (forward.timeout, forward.idle, idle_connection) = (times.response, times.idle, times.idle_connection);
        }),
    );
    gather(
        &mut rejections,
        retry::retry_policy(&route.retry_policy, &place.field, &mut notes)
            .map(|retry| forward.retry = retry.map(Box::new)),
    );
    gather(
        &mut rejections,
        rewrite::prefix(&route.path_rewrite_policy, path, &place.field).map(|path| forward.rewrite = path),
    );
    let mut health = None;
    gather(&mut rejections, health::policy(&route.health_check_policy, &place.field).map(|found| health = found));
    let redirect = retry::internal_redirect(&route.internal_redirect_policy, &place.field);
    gather(&mut rejections, redirect.map(|found| forward.internal_redirect = found.map(Box::new)));
    let mut balance = Default::default();
    gather(
        &mut rejections,
        load_balancer::policy(work, place, &route.load_balancer_policy)
            .map(|(way, hash)| (balance, forward.hash) = (way, hash)),
    );
    let cookies = cookies.to_vec();
    let way = service::UpstreamOptions { idle: idle_connection, host: forward.host.clone(), balance, health, cookies };
    let backends = service::backends(work, place, route, way);
    notes.into_iter().for_each(|note| work.report(place.subject, note));
    match backends {
        Ok(service::Backends { clusters, mirrors, host }) => {
            (forward.clusters, forward.mirrors) = (clusters, mirrors);
            forward.host = host.or(forward.host);
        }
        Err(more) => rejections.extend(more),
    }
    if !rejections.is_empty() {
        return Err(rejections);
    }
    if forward.clusters.is_empty() {
        return Ok(Action::DirectResponse(DirectResponse::unavailable()));
    }
    Ok(Action::Forward(Box::new(forward)))
}
