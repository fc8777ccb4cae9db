//! TLSRoute, TCPRoute and UDPRoute: where connections and datagrams go without being looked at.
//!
//! A TLSRoute has connections by the server name that clients ask for, decrypted or passed through as the listener says. Of several
//! TCPRoutes or UDPRoutes on a listener the oldest is served; all are attached. Connections whose backends cannot be used are
//! closed.

use super::{
    Part, Rejection, Work,
    attachment::{self, Common, Parent},
    backends::{self, Protocols},
    pieces,
    presented::{self, Presented},
    status::ParentStatus,
};
use crate::{GatewayView, Listener, Protocol, Settings, precedence};
use kinds::{
    Kind, List, Meta, TcpRoute, TlsRoute, UdpRoute,
    gateway::stream_route::{StreamRouteSpec, StreamRule},
    kind,
};
use model::{
    ClusterId, Code, FieldPath, Host, Timeout, Translation, Transport,
    listener::{StreamPiece, StreamTarget},
    route::Precedence,
    tls::{TcpProxy, Termination, TlsMode},
    translation::{Covers, PendingPart, TlsPiece},
};
use std::{collections::BTreeSet, sync::Arc};

/// What a TLSRoute asks for.
pub fn tls(object: &TlsRoute, view: &mut impl GatewayView, settings: &Settings) -> Translation {
    let mut work = Work::new(kind::TLS_ROUTE, &object.meta, view, settings);
    let hostnames = attachment::hostnames(&mut work, &object.spec.hostnames);
    let mut parents =
        attachment::parents(&mut work, &object.spec.parent_refs, &object.spec.use_default_gateways, &hostnames);
    let target = |work: &mut Work<'_, _>, parents: &mut [Parent<'_>], protocol: Protocol| {
        let is_used = |(listener, _): (&Listener, _)| listener.protocol == Some(protocol);
        let is_used = parents.iter().flat_map(Parent::attached).any(is_used);
        let protocols = match protocol {
            Protocol::TlsTerminate => Protocols::Stream(Transport::Tcp),
            _ => Protocols::Passthrough,
        };
        if is_used { self::target(work, parents, &object.spec.rules, protocols) } else { None }
    };
    let passed = target(&mut work, &mut parents, Protocol::TlsPassthrough);
    let decrypted = target(&mut work, &mut parents, Protocol::TlsTerminate);
    if !parents.is_empty() && parents.iter().all(|parent| parent.refused().is_some()) {
        self::target(&mut work, &mut parents, &object.spec.rules, Protocols::Passthrough);
    }
    let certificates = Presented::of(&mut work, &parents);
    let (mut pieces, mut seen) = (Vec::new(), BTreeSet::new());
    for parent in &mut parents {
        let hosts: usize = parent.attached().map(|(_, hosts)| hosts.len()).sum();
        if pieces.len() + hosts > pieces::ROUTES {
            let why = format!(
                "{hosts} hosts of its listeners are more than the route may have: {} for all parents",
                pieces::ROUTES
            );
            let field = FieldPath::from("spec.parentRefs").index(parent.index);
            work.report(&Rejection::new(Code::GatewayRouteLimit, field, why.as_str()));
            parent.refuse(super::UNSUPPORTED_VALUE, Code::GatewayRouteLimit, why);
            continue;
        }
        let decrypted = decrypted.as_ref().map(|target| presenting(&mut work, &certificates, parent, target));
        for (listener, hosts) in parent.attached().filter(|(listener, _)| listener.is_served()) {
            let target = if listener.protocol == Some(Protocol::TlsTerminate) { &decrypted } else { &passed };
            let Some((clusters, unavailable)) = target.clone() else { continue };
            let mode = match termination(&mut work, listener) {
                Shown::Certificates(termination) => TlsMode::Tcp(Arc::new(TcpProxy {
                    termination,
                    ip_filter: None,
                    clusters,
                    unavailable,
                    idle: Timeout::Default,
                })),
                Shown::Pending => TlsMode::closed(),
                Shown::None => continue,
            };
            for Common { host, widening } in hosts {
                if !seen.insert((listener.id.clone(), host.clone())) {
                    continue;
                }
                pieces.push(TlsPiece {
                    listener: listener.id.clone(),
                    host: host.clone(),
                    mode: mode.clone(),
                    fallback: None,
                    covers: Covers::default(),
                    precedence: Precedence { widening: *widening, ..precedence(&object.meta, 0) },
                    origin: work.subject.at("spec.rules[0]"),
                });
            }
        }
    }
    Translation { tls: pieces, ..attached(work, &parents) }.sorted()
}

/// How the connections of a listener are decrypted.
enum Shown {
    /// With these certificates; not at all where they are passed through.
    Certificates(Option<Termination>),
    /// With certificates of which some have not been read yet.
    Pending,
    /// There is no certificate.
    None,
}

fn termination(work: &mut Work<'_, impl GatewayView>, listener: &Listener) -> Shown {
    if listener.protocol != Some(Protocol::TlsTerminate) {
        return Shown::Certificates(None);
    }
    let shown = work.view.listener_certificates(listener);
    if shown.as_ref().is_some_and(|shown| shown.is_pending) {
        let field = FieldPath::from("spec.rules").index(0);
        work.pending_parts.push(PendingPart { listener: Some(listener.id.clone()), field });
        return Shown::Pending;
    }
    let termination = shown.and_then(|shown| shown.termination.clone());
    termination.map_or(Shown::None, |termination| Shown::Certificates(Some(termination)))
}

/// What a TCPRoute asks for.
pub fn tcp(object: &TcpRoute, view: &mut impl GatewayView, settings: &Settings) -> Translation {
    plain(kind::TCP_ROUTE, Transport::Tcp, &object.meta, &object.spec, view, settings)
}

/// What a UDPRoute asks for.
pub fn udp(object: &UdpRoute, view: &mut impl GatewayView, settings: &Settings) -> Translation {
    plain(kind::UDP_ROUTE, Transport::Udp, &object.meta, &object.spec, view, settings)
}

fn plain(
    kind: Kind,
    transport: Transport,
    meta: &Meta,
    spec: &StreamRouteSpec,
    view: &mut impl GatewayView,
    settings: &Settings,
) -> Translation {
    let mut work = Work::new(kind, meta, view, settings);
    let mut parents = attachment::parents(&mut work, &spec.parent_refs, &spec.use_default_gateways, &[Host::Any]);
    let protocols = Protocols::Stream(transport);
    let target = if parents.is_empty() { None } else { target(&mut work, &mut parents, &spec.rules, protocols) };
    let certificates = Presented::of(&mut work, &parents);
    let (mut streams, mut seen) = (Vec::new(), BTreeSet::new());
    for (parent, target) in parents.iter().zip(target.iter().cycle()) {
        let (clusters, unavailable) = presenting(&mut work, &certificates, parent, target);
        let target = Arc::new(StreamTarget { ip_filter: None, clusters, unavailable, idle: Timeout::Default });
        let listeners = parent.attached().map(|(listener, _)| listener).filter(|listener| listener.is_served());
        streams.extend(listeners.filter(|listener| seen.insert(listener.id.clone())).map(|listener| StreamPiece {
            listener: listener.id.clone(),
            target: target.clone(),
            precedence: precedence(meta, 0),
            origin: work.subject.at("spec.rules[0]"),
        }));
    }
    Translation { streams, ..attached(work, &parents) }.sorted()
}

/// The translation without pieces.
fn attached(work: Work<'_, impl GatewayView>, parents: &[Parent<'_>]) -> Translation {
    let accepted = parents.iter().filter(|parent| parent.refused().is_none());
    let sections = accepted.flat_map(Parent::attached).map(|(listener, _)| listener.section()).collect();
    work.into_translation(parents.iter().map(ParentStatus::from).collect(), sections)
}

/// Backends with their shares, and the share of those that cannot be used.
type Target = (Vec<(ClusterId, u32)>, u32);

/// The same where proxies of the parent have a client certificate for TLS backends.
fn presenting(
    work: &mut Work<'_, impl GatewayView>,
    certificates: &Presented,
    parent: &Parent<'_>,
    target: &Target,
) -> Target {
    let Some(certificate) = certificates.at(parent) else { return target.clone() };
    let (mut clusters, mut unavailable) = (Vec::new(), target.1);
    let mut is_used = true;
    for (cluster, weight) in &target.0 {
        match presented::cluster(work, certificate, cluster) {
            Some(cluster) => clusters.push((cluster, *weight)),
            None => {
                unavailable += weight;
                is_used = false;
            }
        }
    }
    if !is_used {
        presented::unused(work, certificate, parent, &FieldPath::from("spec.rules").index(0));
    }
    (clusters, unavailable)
}

/// The backends of the only rule and the share of those that cannot be used; nothing where the rule cannot be used, and the
/// route is then not accepted.
fn target(
    work: &mut Work<'_, impl GatewayView>,
    parents: &mut [Parent<'_>],
    rules: &List<StreamRule>,
    protocols: Protocols,
) -> Option<Target> {
    let field = FieldPath::from("spec.rules").index(0);
    let found = match rules.iter().next().map(|rule| rule.get()) {
        None => Err(Rejection::new(Code::GatewayRouteRule, "spec.rules".into(), "must have one rule")),
        Some(Err(fault)) => Err(Rejection::fault(Code::GatewayRouteRule, fault)),
        Some(Ok(rule)) => {
            let backends = field.field("backendRefs");
            work.rule(&field, |work| backends::stream(work, &rule.backend_refs, &backends, protocols))
        }
    };
    if rules.len() > 1 {
        let why = "only the first rule has an effect";
        let field = FieldPath::from("spec.rules").index(1);
        work.drop_part(Part::Rule, &Rejection::new(Code::GatewayRouteRule, field, why));
    }
    match (found, &work.unprotected) {
        (Ok(_), Some(rejection)) => {
            // It keeps its place: no other route has the connections that it is to protect.
            for parent in parents.iter_mut().filter(|parent| parent.refused().is_none()) {
                parent.refuse_rules(rejection.reason, rejection.code, rejection.why.to_string());
            }
            Some((Vec::new(), 1))
        }
        (Ok(found), None) => Some(found),
        (Err(rejection), _) => {
            work.report(&rejection);
            let why = format!("{}: {}", rejection.field, rejection.why);
            for parent in parents.iter_mut().filter(|parent| parent.refused().is_none()) {
                parent.refuse(rejection.reason, rejection.code, why.as_str());
            }
            None
        }
    }
}
