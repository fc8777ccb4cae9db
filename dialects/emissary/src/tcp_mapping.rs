//! TCPMappings: where connections of a port go, by the server name that clients ask for, or all of them.
//!
//! In: the object, and the [plan](TcpPlan) of all of them. Out: TLS hosts whose connections are passed on, or where a TCP listener leads.
//! TCPMappings with one port, address and host share its connections by their weights: the oldest asks for all of them, the others for
//! nothing. They are of one namespace, that of the oldest, whose clients connect and whose certificate is shown; where the operator lets
//! objects refer to any namespace, connections are shared with others as well, and both sides are told. Where no Listener has the port,
//! the oldest on it asks for one. Whatever cannot be served ends connections; they are taken by no other host.

mod plan;
mod termination;

use plan::MOST;
pub use plan::{TcpKey, TcpPlan};

use crate::{
    BoundListener, EmissaryView, Problem, Problems, Settings, duration, listeners::Listeners, mapping::upstream,
    precedence, upstream_service::Reading,
};
use kinds::{
    emissary::{self, TcpMapping, tcp_mapping::TcpMappingSpec},
    kind,
};
use model::{
    ClusterId, Code, FleetId, Host, ListenerId, ObjectRef, PortProtocol, Timeout, Translation, Verdict,
    cluster::{Backend, ClusterOverrides, DnsAddresses, DnsLookup},
    listener::{ListenerClaim, PortOverrides, StreamPiece, StreamTarget},
    route::Depth,
    tls::{TcpProxy, TlsMode},
    translation::{Covers, TlsPiece},
};
use std::{net::IpAddr, sync::Arc, time::Duration};
use termination::Decryption;

/// How it is said which of two TCPMappings comes first.
const TAKES_PRECEDENCE: &str = "takes precedence (older, then by namespace and name)";

/// What a TCPMapping asks for.
pub fn translate(object: &TcpMapping, view: &mut impl EmissaryView, settings: &Settings) -> Translation {
    let subject = subject(object);
    let mut problems = Problems::new(&subject);
    let mut translation = Translation::empty(subject.clone());
    let mut is_pending = false;
    let own = member(object, &mut problems, view, settings);
    let key = TcpKey::of(object, settings, &mut problems);
    let plan = view.tcp_plan();
    let members = key.as_ref().and_then(|key| plan.groups.get(key)).map(Vec::as_slice).unwrap_or_default();
    if let (Some(key), Some(first)) = (&key, members.first()) {
        let place = match members.contains(&subject) {
            true => place(object, key, &plan, &view.listeners(), settings),
            false => Err(left_out(&subject, key, first, settings)),
        };
        match place {
            Err((field, why)) => problems.refuse(Problem::new(Code::TcpMappingConflict, field, why)),
            Ok((listener, claim)) => {
                translation.listeners = claim.into_iter().collect();
                if *first == subject {
                    let group = Group::of(members, view, settings);
                    is_pending |= own.is_pending || group.is_pending;
                    let mut group_problems = Problems::new(&subject);
                    let decrypted = key
                        .host
                        .as_ref()
                        .map(|host| termination::of(object, host, view, settings, &mut group_problems));
                    if let Some(Decryption { is_pending: secret, .. }) = &decrypted {
                        is_pending |= *secret;
                    }
                    group.ask(object, listener, key, decrypted, &mut translation);
                    translation.verdicts = group_problems.into_verdicts();
                }
                weights(object, members, view, &mut problems);
                translation.verdicts.extend(shares_across_namespaces(&subject, members, view));
            }
        }
    }
    if is_pending {
        translation.pending.push(subject.clone());
    }
    translation.verdicts.extend(problems.into_verdicts());
    translation.verdicts.sort();
    translation.sorted()
}

fn subject(object: &TcpMapping) -> ObjectRef {
    ObjectRef::new(kind::TCP_MAPPING, object.meta.namespace.clone(), object.meta.name.clone())
}

/// The share of one TCPMapping.
#[derive(Default)]
struct Member {
    cluster: Option<ClusterId>,
    weight: Option<u8>,
    idle: Timeout,
    is_pending: bool,
}

fn member(
    object: &TcpMapping,
    problems: &mut Problems<'_>,
    view: &mut impl EmissaryView,
    settings: &Settings,
) -> Member {
    let spec = &object.spec;
    let code = Code::TcpMappingInvalid;
    problems.refuse_foreign(&object.meta, settings);
    let mut reading = Reading { namespace: &object.meta.namespace, code, view, settings, problems, is_pending: false };
    let called = reading.service("service", &spec.service, Some(&spec.tls));
    resolver(spec, &mut reading);
    let (breakers, high_breakers) =
        upstream::breakers(reading.problems, code, &spec.circuit_breakers).unwrap_or_default();
    let stats_name = reading.problems.optional("stats_name", &spec.stats_name).filter(|name| !name.is_empty());
    let tag = reading.problems.optional("cluster_tag", &spec.cluster_tag).filter(|tag| !tag.is_empty());
    let dns = dns(spec, called.as_ref().map(|called| &called.backend), reading.problems);
    let overrides = ClusterOverrides {
        breakers,
        high_breakers,
        stats_name: stats_name.map(|name| upstream::in_stats(name)),
        tag: tag.map(|tag| (&**tag).into()),
        dns,
        ..ClusterOverrides::default()
    };
    let weight = reading.problems.optional("weight", &spec.weight).copied();
    let percent = weight.map(percent);
    if let (Some(weight), Some(None)) = (weight, percent) {
        reading.refuse("weight", format!("must be from 0 to 100, not {weight}"));
    }
    let idle = idle(spec, &mut reading);
    let cluster = called.map(|called| called.extension(false, overrides, reading.view).cluster);
    let is_pending = reading.is_pending;
    if problems.read("address", &spec.address).is_some() {
        problems.parsed(plan::address(spec, settings));
    }
    let cluster = cluster.filter(|_| !problems.is_refused());
    Member { cluster, weight: percent.map(Option::unwrap_or_default), idle: idle.unwrap_or_default(), is_pending }
}

/// A weight, if it is one.
fn percent(weight: i64) -> Option<u8> {
    u8::try_from(weight).ok().filter(|weight| *weight <= 100)
}

/// A resolver that is named must be there; the endpoints of a Service are found the same way by each.
fn resolver(spec: &TcpMappingSpec, reading: &mut Reading<'_, '_, impl EmissaryView>) {
    let Some(name) = reading.problems.optional("resolver", &spec.resolver).filter(|name| !name.is_empty()) else {
        return;
    };
    let (own, sesame) = (reading.namespace, &*reading.settings.namespace);
    let found = reading.view.resolver(own, name).or_else(|| reading.view.resolver(sesame, name));
    let is_open = reading.settings.cross_namespace;
    let found = found.or_else(|| is_open.then(|| reading.view.any_resolver(name)).flatten());
    match (found, &**name) {
        (Some(crate::Resolver::Consul), _) | (None, "consul" | "consul-endpoint") => {
            reading.problems.unserved("resolver", "services in Consul are not served yet");
        }
        (Some(_), _) | (None, "kubernetes-service" | "endpoint" | "kubernetes-endpoint") => {}
        (None, name) => reading.refuse("resolver", format!("resolver {name} is unknown!")),
    }
}

fn dns(spec: &TcpMappingSpec, backend: Option<&Backend>, problems: &mut Problems<'_>) -> DnsLookup {
    let v4 = problems.optional("enable_ipv4", &spec.enable_ipv4).copied();
    let v6 = problems.optional("enable_ipv6", &spec.enable_ipv6).copied();
    let Some(Backend::Outside(outside)) = backend else {
        for (field, value) in [("enable_ipv4", v4), ("enable_ipv6", v6)] {
            if backend.is_some() && value.is_some() {
                problems.no_effect(field, "the endpoints of a Service are known without DNS");
            }
        }
        return DnsLookup::default();
    };
    let addresses = match (outside.address(), v4.unwrap_or(true), v6.unwrap_or(false)) {
        (Some(IpAddr::V4(_)), ..) => DnsAddresses::V4,
        (Some(IpAddr::V6(_)), ..) => DnsAddresses::V6,
        (None, true, true) => DnsAddresses::Auto,
        (None, false, true) => DnsAddresses::V6,
        (None, ..) => DnsAddresses::V4,
    };
    DnsLookup { addresses: Some(addresses), ..DnsLookup::default() }
}

/// How long a connection may be without a byte; written as text.
fn idle(spec: &TcpMappingSpec, reading: &mut Reading<'_, '_, impl EmissaryView>) -> Option<Timeout> {
    let text = reading.problems.optional("idle_timeout_ms", &spec.idle_timeout_ms)?.trim();
    let Ok(span) = text.parse::<u64>().map(Duration::from_millis) else {
        let why = format!("must be a number of milliseconds, 0 or more, not `{}`", text.escape_debug());
        reading.refuse("idle_timeout_ms", why);
        return None;
    };
    let span = duration::at_most_a_year(reading.problems, "idle_timeout_ms", span, &format!("{text} ms"));
    Some(duration::timeout(span))
}

/// The listener of a TCPMapping, and what it asks for where there is none; or the field that is in the way.
fn place(
    object: &TcpMapping,
    key: &TcpKey,
    plan: &TcpPlan,
    listeners: &Listeners,
    settings: &Settings,
) -> Result<(ListenerId, Option<ListenerClaim>), (&'static str, String)> {
    let is_tls = key.host.is_some();
    let TcpKey { port, address, .. } = *key;
    if !key.is_bindable(settings) {
        return Err(("address", format!("not every proxy has the address {address}; use {}", settings.address)));
    }
    let on = |bound: &BoundListener| format!("Listener {}/{}", bound.object.namespace, bound.object.name);
    if let Some(bound) = listeners.served.iter().find(|bound| bound.port == port && !bound.is_quic) {
        if bound.binding.namespace.as_ref().is_some_and(|namespace| *namespace != object.meta.namespace) {
            let why = format!("{} on port {port} binds objects of its own namespace only", on(bound));
            return Err(("port", why));
        }
        if address != settings.address {
            return Err(("address", format!("{} has port {port} on {}", on(bound), settings.address)));
        }
        return match (is_tls, bound.is_tls, bound.is_http) {
            (true, true, _) | (false, false, false) => Ok((bound.id.clone(), None)),
            (true, false, _) => Err(("host", format!("{} on port {port} has no TLS, so no server names", on(bound)))),
            (false, ..) => {
                let why = format!(
                    "discarding because it conflicts with {}: without host it would have all connections of port {port}",
                    on(bound)
                );
                Err(("port", why))
            }
        };
    }
    let is_own = |own: &Option<crate::OwnListener>| own.as_ref().is_some_and(|own| own.port == port);
    let (is_http, is_https) = (is_own(&settings.own.http), is_own(&settings.own.https));
    if (is_http || is_https) && address != settings.address {
        let why = format!("port {port} is that of a shared listener on {}", settings.address);
        return Err(("address", why));
    }
    if is_https && is_tls {
        return Ok((ListenerId::https(), None));
    }
    if is_http || is_https {
        return Err(("port", format!("port {port} is that of a shared listener for HTTP")));
    }
    let subject = subject(object);
    let Some(first) = plan.ports.get(&port) else { return Err(("port", "the port is not known".to_owned())) };
    if first.address != address {
        let why = format!("{} {TAKES_PRECEDENCE} and has port {port} on {}", first.object, first.address);
        return Err(("address", why));
    }
    if first.is_tls != is_tls {
        let why = format!("{} has port {port}, {} host", first.object, if first.is_tls { "with a" } else { "without" });
        return Err(("host", why));
    }
    let name = format!("tcpmapping/{port}");
    let listener = ListenerId::new(FleetId::Shared, name);
    let claim = (first.object == subject).then(|| ListenerClaim {
        listener: listener.clone(),
        address,
        port,
        protocol: if is_tls { PortProtocol::Tls } else { PortProtocol::Tcp },
        host: Host::Any,
        owner: None,
        plaintext_of: None,
        overrides: PortOverrides::default(),
        precedence: precedence(&object.meta, 0),
        origin: subject.at("spec.port"),
    });
    Ok((listener, claim))
}

/// Why a TCPMapping gets none of the connections of its port and host, and the field.
fn left_out(subject: &ObjectRef, key: &TcpKey, first: &ObjectRef, settings: &Settings) -> (&'static str, String) {
    if settings.cross_namespace || subject.namespace == first.namespace {
        return ("port", format!("at most {MOST} TCPMappings share connections"));
    }
    let port = key.port;
    let (field, what) = match key.host {
        Some(_) => ("host", format!("this host on port {port}")),
        None => ("port", format!("port {port}")),
    };
    let why = format!(
        "{first} {TAKES_PRECEDENCE} and has {what}: only TCPMappings of its namespace receive these connections; \
         --emissary-cross-namespace allows others"
    );
    (field, why)
}

/// The TCPMapping that has the connections of a Host on a Listener, where it is in the namespace of the Host: the Host gives way.
pub(crate) fn in_place_of(
    object: &emissary::Host,
    name: &Host,
    bound: &BoundListener,
    view: &mut impl EmissaryView,
    settings: &Settings,
) -> Option<ObjectRef> {
    let key = TcpKey { port: bound.port, address: settings.address, host: Some(name.clone()) };
    let plan = view.tcp_plan();
    let first = plan.groups.get(&key)?.first()?;
    if first.namespace != object.meta.namespace || !termination::is_hosts_owner(&first.namespace, name, view) {
        return None;
    }
    let mapping = view.tcp_mapping(first)?;
    let (listener, _) = place(&mapping, &key, &plan, &view.listeners(), settings).ok()?;
    (listener == bound.id).then(|| first.clone())
}

/// TCPMappings that share the connections of one port and host.
struct Group {
    clusters: Vec<(ClusterId, u32)>,
    unavailable: u32,
    idle: Timeout,
    is_pending: bool,
}

impl Group {
    /// What all of them say; what is wrong with each is told on it.
    fn of(members: &[ObjectRef], view: &mut impl EmissaryView, settings: &Settings) -> Self {
        let mut all = Vec::new();
        for name in members.iter().take(MOST) {
            let Some(object) = view.tcp_mapping(name) else { continue };
            all.push(member(&object, &mut Problems::new(name), view, settings));
        }
        let shares = shares(&all.iter().map(|member| member.weight).collect::<Vec<_>>());
        let mut group = Self { clusters: Vec::new(), unavailable: 0, idle: Timeout::Default, is_pending: false };
        group.idle = all.iter().map(|member| member.idle).find(|idle| *idle != Timeout::Default).unwrap_or_default();
        for (member, share) in all.into_iter().zip(shares).filter(|(_, share)| *share > 0) {
            group.is_pending |= member.is_pending;
            match member.cluster {
                Some(cluster) => match group.clusters.iter_mut().find(|(own, _)| *own == cluster) {
                    Some((_, sum)) => *sum += share,
                    None => group.clusters.push((cluster, share)),
                },
                None => group.unavailable += share,
            }
        }
        group
    }

    /// What the oldest asks for.
    fn ask(
        self,
        object: &TcpMapping,
        listener: ListenerId,
        key: &TcpKey,
        decrypted: Option<Decryption>,
        translation: &mut Translation,
    ) {
        let Self { clusters, unavailable, idle, .. } = self;
        let by_age = precedence(&object.meta, 0);
        let origin = translation.subject.at("spec");
        let (Some(host), Some(decrypted)) = (key.host.clone(), decrypted) else {
            let target = Arc::new(StreamTarget { ip_filter: None, clusters, unavailable, idle });
            translation.streams.push(StreamPiece { listener, target, precedence: by_age, origin });
            return;
        };
        let proxy = match decrypted.termination {
            Some(termination) => {
                TcpProxy { termination: Some(termination), ip_filter: None, clusters, unavailable, idle }
            }
            None => TcpProxy { idle, ..TcpProxy::closed() },
        };
        translation.tls.push(TlsPiece {
            listener,
            host,
            mode: TlsMode::Tcp(Arc::new(proxy)),
            fallback: None,
            covers: Covers { depth: Depth::AnyLabels, every_route: false },
            precedence: by_age,
            origin,
        });
    }
}

/// The shares of members by their weights: those without one have what is left of a hundred, in equal parts.
fn shares(weights: &[Option<u8>]) -> Vec<u32> {
    let mut left = 100_u32;
    let unweighted = u32::try_from(weights.iter().filter(|weight| weight.is_none()).count()).unwrap_or(u32::MAX);
    let mut shares: Vec<u32> = weights
        .iter()
        .map(|weight| {
            let share = u32::from(weight.unwrap_or_default()).min(left);
            left -= share;
            share * unweighted.max(1)
        })
        .collect();
    for (share, _) in shares.iter_mut().zip(weights).filter(|(_, weight)| weight.is_none()) {
        *share = left;
    }
    shares
}

/// Tells a TCPMapping whose weight is more than the others leave.
fn weights(object: &TcpMapping, members: &[ObjectRef], view: &mut impl EmissaryView, problems: &mut Problems<'_>) {
    let own = subject(object);
    let of = |object: &TcpMapping| object.spec.weight.ok().copied().flatten().unwrap_or_default();
    let before = members.iter().take_while(|one| **one != own);
    let before: i64 = before.filter_map(|one| view.tcp_mapping(one)).map(|one| of(&one).clamp(0, 100)).sum();
    if exceeds(before, of(object)) {
        let why = format!("Total weight of mappings exceeds 100; {} gets what the others leave", object.meta.name);
        problems.add(Problem::new(Code::TcpMappingConflict, "weight", why));
    }
}

/// What a TCPMapping is told where one of another namespace than the oldest receives part of the connections: both sides are.
fn shares_across_namespaces(own: &ObjectRef, members: &[ObjectRef], view: &mut impl EmissaryView) -> Vec<Verdict> {
    let Some(oldest) = members.first() else { return Vec::new() };
    if members.iter().all(|one| one.namespace == oldest.namespace) {
        return Vec::new();
    }
    let (mut names, mut weights) = (Vec::new(), Vec::new());
    for name in members {
        let Some(object) = view.tcp_mapping(name) else { continue };
        let weight = object.spec.weight.ok().copied().flatten();
        names.push(name);
        weights.push(weight.map(|weight| percent(weight).unwrap_or_default()));
    }
    let others = names.into_iter().zip(shares(&weights));
    let others = others.filter(|(other, share)| *share > 0 && other.namespace != oldest.namespace);
    let verdicts = others.filter_map(|(other, _)| {
        let (why, related) = if own == oldest {
            (format!("{other} receives part of its connections"), other)
        } else if own == other {
            (format!("it receives part of the connections of {oldest}"), oldest)
        } else {
            return None;
        };
        let verdict = Verdict::new(Code::RouteSharedAcrossNamespaces, own.at("spec"), why);
        Some(verdict.related_to(related.at("spec")))
    });
    verdicts.collect()
}

/// Whether a weight, which may be any number here, is more than those before it leave of a hundred.
fn exceeds(before: i64, own: i64) -> bool {
    own > 0 && own > 100 - before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_weight_is_too_large_to_be_reported() {
        for (before, own, expected) in
            [(0, 100, false), (40, 60, false), (40, 61, true), (1, i64::MAX, true), (200, i64::MIN, false)]
        {
            assert_eq!(exceeds(before, own), expected, "{before} {own}");
        }
    }

    #[test]
    fn weights_are_shares_of_a_hundred() {
        for (weights, expected) in [
            (vec![None], vec![100]),
            (vec![Some(10), Some(40), None], vec![10, 40, 50]),
            (vec![Some(10), None, None], vec![20, 90, 90]),
            (vec![Some(60), Some(60), None], vec![60, 40, 0]),
            (vec![Some(10), Some(30)], vec![10, 30]),
            (vec![Some(0), None], vec![0, 100]),
        ] {
            assert_eq!(shares(&weights), expected, "{weights:?}");
        }
    }
}
