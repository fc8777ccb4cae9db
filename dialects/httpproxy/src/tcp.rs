//! Connections that are passed on without being read: where those of a root go.
//!
//! In: a root with `tcpproxy`. Out: backends and their shares, found in the root itself or at the end of a chain of
//! children. Whatever is wrong on the way is told on the object that has the field, and leaves a root without backends: its
//! connections are ended rather than taken by another host.

use crate::{
    HttpProxyView, Rejection, Work, class,
    include::{DEEPEST, chain},
    route::{
        FieldContext, health, load_balancer, optional,
        service::{self, UpstreamOptions},
    },
};
use kinds::{
    HttpProxy,
    http_proxy::{
        Service,
        virtual_host::{TcpProxy, TcpProxyInclude},
    },
};
use model::{ClusterId, Code, FieldPath, ObjectRef, Timeout, cluster::LoadBalancing};
use std::sync::Arc;

/// The backends of a root with a `tcpproxy`, and their shares; none of them zero.
pub(crate) fn clusters(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    root: &ObjectRef,
) -> Vec<(ClusterId, u32)> {
    let mut object = Arc::new(object.clone());
    let mut subject = root.clone();
    let mut visited = vec![root.clone()];
    loop {
        let next = step(work, &object, &subject, &mut visited);
        if work.pending.contains(&subject) {
            // The connections of the host are all the root's, whoever says where they go.
            work.pending.insert(root.clone());
        }
        let next = match next {
            Ok(Step::Here(clusters)) => return clusters,
            Ok(Step::Child(child)) => child,
            Err(rejection) => {
                work.report(&subject, rejection);
                return Vec::new();
            }
        };
        (object, subject) = next;
        work.includes.push(subject.clone());
        if work.look_at_foreign(&object, &subject) {
            return Vec::new();
        }
    }
}

/// How it goes on from an object.
enum Step {
    Here(Vec<(ClusterId, u32)>),
    Child((Arc<HttpProxy>, ObjectRef)),
}

fn step(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &Arc<HttpProxy>,
    subject: &ObjectRef,
    visited: &mut Vec<ObjectRef>,
) -> Result<Step, Rejection> {
    let field = FieldPath::from("spec.tcpproxy");
    let nothing = |why: &str| Rejection::new(Code::ProxyTcpEmpty, field.clone(), why);
    let Some(proxy) = optional(&object.spec.tcp_proxy)? else {
        let why = "the HTTPProxy is included by a tcpproxy but has no tcpproxy";
        return Err(Rejection::new(Code::ProxyTcpChildEmpty, "spec".into(), why));
    };
    let (include, old) = (optional(&proxy.include)?, optional(&proxy.includes)?);
    if include.is_some() && old.is_some() {
        let why = "no effect together with `include`";
        work.report(subject, Rejection::new(Code::ProxyIgnored, field.field("includes"), why));
    }
    let name = if include.is_some() { "include" } else { "includes" };
    match (include.or(old), proxy.services.is_empty()) {
        (None, true) => Err(nothing("neither services nor include is set")),
        (Some(_), false) => {
            let why = "services and include are mutually exclusive";
            Err(Rejection::new(Code::ProxyTcpBoth, field.field(name), why))
        }
        (None, false) => {
            let place = FieldContext { object, subject, field };
            services(work, &place, proxy).map(Step::Here)
        }
        (Some(include), true) => child(work, object, include, field.field(name), visited).map(Step::Child),
    }
}

/// The child, if it is there and may be included.
fn child(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    include: &TcpProxyInclude,
    field: FieldPath,
    visited: &mut Vec<ObjectRef>,
) -> Result<(Arc<HttpProxy>, ObjectRef), Rejection> {
    let namespace = include.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    let namespace = namespace.unwrap_or(&object.meta.namespace);
    let subject = ObjectRef::new(work.kind, namespace, &*include.name);
    let reject = |code, why: String| Rejection::new(code, field, why);
    if visited.len() > DEEPEST {
        return Err(reject(
            Code::ProxyIncludeLimit,
            format!("{subject} is not included: includes may be nested at most {DEEPEST} levels deep"),
        ));
    }
    let found = work.view.proxy(&subject);
    let Some(object) = found.filter(|object| class::is_ours(object, work.settings)) else {
        let rejection = reject(Code::ProxyTcpIncludeNotFound, format!("{subject} does not exist"));
        return Err(rejection.related_to(subject.at("")));
    };
    if !matches!(object.spec.virtual_host.get(), Ok(None)) {
        let rejection = reject(Code::ProxyTcpIncludesRoot, format!("{subject} is a root"));
        return Err(rejection.related_to(subject.at("spec.virtualhost")));
    }
    if let Some(at) = visited.iter().position(|known| *known == subject) {
        let objects: Vec<_> = visited[at..].iter().chain([&subject]).collect();
        return Err(reject(Code::ProxyTcpIncludeCycle, chain(&objects)));
    }
    visited.push(subject.clone());
    Ok((object, subject))
}

/// The services of an object. One that cannot be used loses its share; one without a weight is left out, unless none is written with
/// one.
fn services(
    work: &mut Work<'_, impl HttpProxyView>,
    place: &FieldContext<'_>,
    proxy: &TcpProxy,
) -> Result<Vec<(ClusterId, u32)>, Rejection> {
    let (mut balance, hash) = load_balancer::policy(work, place, &proxy.load_balancer_policy)?;
    if !hash.is_empty() {
        let why = "Cookie and RequestHash do not apply to TCP; RoundRobin is used instead";
        let field = place.field.field("loadBalancerPolicy").field("strategy");
        work.report(place.subject, Rejection::new(Code::ProxyIgnored, field, why));
        balance = LoadBalancing::RoundRobin;
    }
    let health = health::tcp(&proxy.health_check_policy, &place.field)?;
    let way = UpstreamOptions { idle: Timeout::Default, host: None, health, balance, cookies: Vec::new() };
    for fault in proxy.services.faults() {
        work.report(place.subject, fault.into());
    }
    let (mut clusters, mut total) = (Vec::new(), 0_u64);
    for (index, entry) in proxy.services.good() {
        let field = place.field.field("services").index(index);
        let here = FieldContext { object: place.object, subject: place.subject, field };
        let weight = u32::try_from(entry.weight.unwrap_or_default()).map_err(|_| {
            let why = format!("must be from 0 to {}", u32::MAX);
            Rejection::new(Code::ProxyServiceWeight, here.field.field("weight"), why)
        })?;
        total += u64::from(weight);
        report_ignored(work, &here, entry);
        match service::backend(work, &here, entry, &way) {
            Ok(found) => clusters.push((found.share.cluster, weight)),
            Err(rejection) => work.report(place.subject, rejection),
        }
    }
    if total > u64::from(u32::MAX) {
        let why = format!("the sum of the weights is {total}; the limit is {}", u32::MAX);
        return Err(Rejection::new(Code::ProxyServiceWeight, place.field.field("services"), why));
    }
    if total == 0 {
        clusters.iter_mut().for_each(|(_, weight)| *weight = 1);
    }
    clusters.retain(|(_, weight)| *weight > 0);
    Ok(clusters)
}

/// Reports what a service says about requests. As in Contour, a mirror is a service like any other.
fn report_ignored<V>(work: &mut Work<'_, V>, place: &FieldContext<'_>, service: &Service) {
    let optional = [
        ("requestHeadersPolicy", service.request_headers_policy.ok().is_some_and(Option::is_some)),
        ("responseHeadersPolicy", service.response_headers_policy.ok().is_some_and(Option::is_some)),
        ("cookieRewritePolicies", service.cookie_rewrite_policies.ok().is_some_and(Option::is_some)),
    ];
    for (name, _) in optional.into_iter().filter(|(_, optional)| *optional) {
        let why = "no effect on tcpproxy: HTTP is not processed";
        work.report(place.subject, Rejection::new(Code::ProxyIgnored, place.field.field(name), why));
    }
    if service.mirror {
        let why = "no effect on tcpproxy: connections cannot be mirrored, and the service gets its share of them";
        work.report(place.subject, Rejection::new(Code::ProxyIgnored, place.field.field("mirror"), why));
    }
}
