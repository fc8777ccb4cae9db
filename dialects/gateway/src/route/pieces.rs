//! The pieces of an HTTPRoute or GRPCRoute: a route for each listener, host and match.
//!
//! Parents, listeners, hosts and matches multiply, so a route has at most [`ROUTES`] of them and [`BYTES`] of text. A parent that
//! would take it beyond is not served at all and told so; those before it are.

use super::{
    Part, Rejection, UNSUPPORTED_VALUE, Work,
    attachment::{Common, Parent},
    presented::{self, Presented},
    rule::{Done, Forwarded, Rule},
    status::ParentStatus,
};
use crate::{GatewayView, Listener, gateway::backend_certificate::BackendCertificate, precedence};
use kinds::gateway::route_spec::RouteSpec;
use model::{
    Code, FieldPath, Host, ListenerId, ObjectRef, Route, Translation,
    route::{Action, Conditions, Depth, Forward, PathMatch, Policy, Precedence, UnavailableAnswer, UnavailableShare},
    translation::RoutePiece,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The most pieces of a route.
pub const ROUTES: usize = 10_000;
/// The most bytes of text in them.
pub const BYTES: usize = 8 << 20;

/// About how many pieces a route has for each of its parents.
pub(crate) fn size<R>(spec: &RouteSpec<R>, matches: impl Fn(&R) -> usize) -> usize {
    let matches: usize = spec.rules.good().map(|(_, rule)| matches(rule).max(1)).sum();
    matches.saturating_mul(spec.hostnames.len().max(1))
}

/// The translation of a route with these rules.
pub(crate) fn translation(
    mut work: Work<'_, impl GatewayView>,
    mut parents: Vec<Parent<'_>>,
    mut rules: Vec<Rule>,
    answer: UnavailableAnswer,
) -> Translation {
    if let Some(rejection) = &work.unprotected {
        rules.iter_mut().for_each(|rule| rule.done = Err(rejection.clone()));
    }
    refuse_if_unusable(&mut work, &mut parents, &rules);
    let drafts = drafts(&mut work, rules, answer);
    let mut made = RoutePieces { left: Cost { routes: ROUTES, bytes: BYTES }, ..RoutePieces::default() };
    let certificates = Presented::of(&mut work, &parents);
    let mut attached = Vec::new();
    for parent in &mut parents {
        let presenting = certificates.at(parent).map(|certificate| {
            let of_parent = |draft: &Draft| draft.presenting(&mut work, certificate, parent, answer);
            drafts.iter().map(of_parent).collect::<Vec<_>>()
        });
        match made.add(&work.subject, parent, presenting.as_deref().unwrap_or(&drafts)) {
            Ok(()) if parent.refused().is_some() => {}
            Ok(()) => attached.extend(parent.attached().map(|(listener, _)| listener.section())),
            Err(why) => {
                let field = FieldPath::from("spec.parentRefs").index(parent.index);
                work.report(&Rejection::new(Code::GatewayRouteLimit, field, why.as_str()));
                parent.refuse(UNSUPPORTED_VALUE, Code::GatewayRouteLimit, why);
            }
        }
    }
    let statuses = parents.iter().map(ParentStatus::from).collect();
    let translation = work.into_translation(statuses, attached);
    Translation { hosts: made.hosts.into_iter().collect(), routes: made.routes, ..translation }.sorted()
}

/// A route none of whose rules can be used is not accepted. Requests that it is for are answered, so that no wider route serves
/// what a filter protects.
fn refuse_if_unusable(work: &mut Work<'_, impl GatewayView>, parents: &mut [Parent<'_>], rules: &[Rule]) {
    let is_usable = rules.iter().any(|rule| rule.done.is_ok());
    let first = rules.iter().find_map(|rule| rule.done.as_ref().err());
    let (reason, code, why) = match (is_usable, first, work.dropped.first()) {
        (true, ..) | (false, None, None) => return,
        (false, Some(rejection), _) => {
            (rejection.reason, rejection.code, format!("no rule can be used: {}: {}", rejection.field, rejection.why))
        }
        (false, None, Some(dropped)) => {
            (UNSUPPORTED_VALUE, Code::GatewayRouteRule, format!("no rule can be used: {dropped}"))
        }
    };
    for rule in rules {
        if let Err(rejection) = &rule.done {
            work.report(rejection);
        }
    }
    for parent in parents.iter_mut().filter(|parent| parent.refused().is_none()) {
        parent.refuse_rules(reason, code, why.as_str());
    }
}

/// One match of a rule, before its listener and host are known.
#[derive(Clone)]
struct Draft {
    path: PathMatch,
    conditions: Conditions,
    done: Done,
    field: FieldPath,
    precedence: Precedence,
}

fn drafts(work: &mut Work<'_, impl GatewayView>, rules: Vec<Rule>, answer: UnavailableAnswer) -> Vec<Draft> {
    let mut drafts = Vec::new();
    let are_all_wrong = rules.iter().all(|rule| rule.done.is_err());
    for Rule { requests, done, field } in rules {
        let done = match done {
            Ok(done) => done,
            Err(rejection) => {
                if !are_all_wrong {
                    work.drop_part(Part::Rule, &rejection);
                }
                let unavailable = Some(UnavailableShare { weight: 1, answer });
                let forward = Forward { unavailable, ..Forward::default() };
                Done::Forward(Box::new(Forwarded { forward, policy: Policy::default(), rewrite: None }))
            }
        };
        drafts.extend(requests.into_iter().map(|(path, conditions)| (path, conditions, done.clone(), field.clone())));
    }
    let numbered = drafts.into_iter().enumerate().map(|(index, (path, conditions, done, field))| {
        let precedence = precedence(work.meta, index);
        Draft { path, conditions, done, field, precedence }
    });
    numbered.collect()
}

impl Draft {
    /// The route for requests of a listener and host.
    fn route(&self, subject: &ObjectRef, listener: &Listener, common: &Common) -> Option<Route> {
        let Common { host, widening } = common;
        let (action, policy) = match &self.done {
            Done::Redirect(redirected) => {
                let (redirect, policy) = &**redirected;
                (Action::Redirect(redirect.at(listener, host, &self.path)?), policy)
            }
            Done::Forward(forwarded) => {
                let Forwarded { forward, policy, rewrite } = &**forwarded;
                let rewrite = match rewrite {
                    Some(change) => Some(change.at(&self.path)?),
                    None => None,
                };
                (Action::Forward(Box::new(Forward { rewrite, ..forward.clone() })), policy)
            }
        };
        Some(Route {
            path: self.path.clone(),
            conditions: self.conditions.clone(),
            depth: Depth::AnyLabels,
            action,
            policy: policy.clone().into(),
            precedence: Precedence { widening: *widening, ..self.precedence.clone() },
            origin: subject.at(self.field.clone()),
            fraction: None,
            combined: None,
        })
    }

    /// The same where proxies have a client certificate for TLS backends.
    fn presenting(
        &self,
        work: &mut Work<'_, impl GatewayView>,
        certificate: &BackendCertificate,
        parent: &Parent<'_>,
        answer: UnavailableAnswer,
    ) -> Draft {
        let mut draft = self.clone();
        let Done::Forward(forwarded) = &mut draft.done else { return draft };
        let Forward { clusters, unavailable, mirrors, .. } = &mut forwarded.forward;
        let (mut lost, mut is_used) = (0, true);
        clusters.retain_mut(|share| match presented::cluster(work, certificate, &share.cluster) {
            Some(cluster) => {
                share.cluster = cluster;
                true
            }
            None => {
                lost += share.weight;
                is_used = false;
                false
            }
        });
        mirrors.retain_mut(|mirror| match presented::cluster(work, certificate, &mirror.cluster) {
            Some(cluster) => {
                mirror.cluster = cluster;
                true
            }
            None => {
                is_used = false;
                false
            }
        });
        if lost > 0 {
            let share = unavailable.get_or_insert(UnavailableShare { weight: 0, answer });
            share.weight += lost;
        }
        if !is_used {
            presented::unused(work, certificate, parent, &self.field);
        }
        draft
    }

    /// Whether it depends on the listener and the host.
    fn is_redirect(&self) -> bool {
        matches!(self.done, Done::Redirect(..))
    }

    fn bytes(&self) -> usize {
        let done = match &self.done {
            Done::Redirect(redirected) => redirected.0.bytes() + redirected.1.bytes(),
            Done::Forward(forwarded) => {
                let rewrite = forwarded.rewrite.as_ref().map_or(0, |change| change.bytes());
                Action::Forward(Box::new(forwarded.forward.clone())).bytes() + forwarded.policy.bytes() + rewrite
            }
        };
        self.path.text().len() + self.conditions.bytes() + done
    }
}

/// What pieces take, or what there is.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    routes: usize,
    bytes: usize,
}

/// The pieces that have been made.
#[derive(Default)]
struct RoutePieces {
    left: Cost,
    hosts: BTreeSet<(ListenerId, Host)>,
    routes: Vec<RoutePiece>,
}

impl RoutePieces {
    /// Makes the pieces for a parent, or none of them where they are too many.
    fn add(&mut self, subject: &ObjectRef, parent: &Parent<'_>, drafts: &[Draft]) -> Result<(), String> {
        let served = parent.attached().filter(|(listener, _)| listener.is_served());
        let served = served.flat_map(|(listener, hosts)| hosts.iter().map(move |host| (listener, host)));
        let new: Vec<(&Listener, &Common)> = served
            .filter(|(listener, common)| !self.hosts.contains(&(listener.id.clone(), common.host.clone())))
            .collect();
        let cost = Cost {
            routes: new.len().saturating_mul(drafts.len()),
            bytes: new.len().saturating_mul(drafts.iter().map(Draft::bytes).sum()),
        };
        if cost.routes > self.left.routes || cost.bytes > self.left.bytes {
            let (hosts, matches) = (new.len(), drafts.len());
            return Err(format!(
                "{hosts} hosts of its listeners with {matches} matches each are more than the route may have: \
                 {ROUTES} routes and {BYTES} bytes of text for all parents"
            ));
        }
        self.left.routes -= cost.routes;
        self.left.bytes -= cost.bytes;
        let mut shared: BTreeMap<u16, Vec<Option<Arc<Route>>>> = BTreeMap::new();
        for (listener, common) in new {
            let host = &common.host;
            let cached = shared.entry(common.widening).or_insert_with(|| {
                let route = |draft: &Draft| match draft.is_redirect() {
                    true => None,
                    false => draft.route(subject, listener, common).map(Arc::new),
                };
                drafts.iter().map(route).collect()
            });
            for (draft, cached) in drafts.iter().zip(cached.iter()) {
                let route = match cached {
                    Some(route) => Some(Arc::clone(route)),
                    None => draft.route(subject, listener, common).map(Arc::new),
                };
                let piece = |route| RoutePiece { listener: listener.id.clone(), host: host.clone(), route };
                self.routes.extend(route.map(piece));
            }
            self.hosts.insert((listener.id.clone(), host.clone()));
        }
        Ok(())
    }
}
