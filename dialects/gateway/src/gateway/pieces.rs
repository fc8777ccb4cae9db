//! What the listeners of one object ask for, a Gateway or a ListenerSet, and what its status says about each.

use super::{
    Unresolved, clients,
    overlap::{self, ShownAt},
    tls,
};
use crate::{
    GatewayView, Listener, Protocol, Settings,
    listeners::Refused,
    precedence,
    status::{self, conditions},
};
use conditions::{ACCEPTED, CONFLICTED, OVERLAPPING_TLS, PROGRAMMED, RESOLVED_REFS};
use kinds::{Gateway, List, Meta, gateway::listener, kind};
use model::{
    Code, FieldPath, FleetId, Host, ListenerId, ObjectRef, PortProtocol, Route, Translation, Verdict, VerdictList,
    listener::ListenerClaim,
    route::{Action, Depth, DirectResponse, Path, PathMatch, Precedence},
    status::{Condition, Entry, Scope, StatusFacts, StatusValue, Truth},
    tls::{CertificateRef, TlsMode},
    translation::{Covers, PendingPart, RoutePiece, TlsPiece},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

/// What listeners ask for.
#[derive(Debug, Default)]
pub struct Pieces {
    hosts: Vec<(ListenerId, Host)>,
    claims: Vec<ListenerClaim>,
    /// What answers for the hosts of listeners that are closed.
    routes: Vec<RoutePiece>,
    tls: Vec<TlsPiece>,
    entries: Vec<Entry>,
    /// What those of them show that terminate TLS, by their place.
    shown: Vec<(usize, ShownAt)>,
    verdicts: VerdictList,
    /// The listeners that refer to something that has not been read yet.
    pub pending_parts: Vec<PendingPart>,
    /// How many listeners there are.
    pub all: usize,
    /// How many of them are accepted.
    pub accepted: usize,
    /// How many of those can be served: they have the certificates that they need.
    pub usable: usize,
    /// How many have references that are not resolved.
    pub unresolved: usize,
    /// The code of the first listener that is not accepted.
    pub not_accepted: Option<Code>,
    /// The code of the first listener that cannot be served.
    pub not_usable: Option<Code>,
    /// The code of the first listener that has references that are not resolved.
    pub not_resolved: Option<Code>,
}

/// What the listeners of an object ask for, which are listeners of the Gateway.
pub fn of<'l>(
    gateway: &Gateway,
    meta: &Meta,
    owner: &ObjectRef,
    specs: &List<listener::Listener>,
    listeners: impl Iterator<Item = &'l Listener>,
    view: &mut impl GatewayView,
    settings: &Settings,
) -> Pieces {
    let mut pieces = Pieces { all: specs.len(), ..Pieces::default() };
    let mut read = vec![false; specs.len()];
    for listener in listeners {
        read[listener.index] = true;
        if let Some(spec) = specs.get(listener.index).and_then(|spec| spec.ok()) {
            pieces.add(gateway, meta, listener, spec, view, settings);
        }
    }
    for (index, spec) in specs.iter().enumerate().filter(|(index, _)| !read[*index]) {
        let why = match spec.get() {
            Ok(spec) => format!("another listener has the name {}", spec.name),
            Err(fault) => fault.to_string(),
        };
        let at = owner.at(FieldPath::from("spec.listeners").index(index));
        pieces.verdicts.push(Verdict::new(Code::GatewayListener, at, why));
        pieces.not_accepted.get_or_insert(Code::GatewayListener);
        pieces.not_usable.get_or_insert(Code::GatewayListener);
    }
    pieces.compare_certificates(view);
    pieces
}

impl Pieces {
    fn add(
        &mut self,
        gateway: &Gateway,
        meta: &Meta,
        listener: &Listener,
        spec: &listener::Listener,
        view: &mut impl GatewayView,
        settings: &Settings,
    ) {
        self.verdicts.extend(listener.verdict());
        let shown = match listener.protocol {
            Some(protocol) if protocol.is_terminated() => {
                let shown = tls::resolve(listener, spec, view, settings);
                Some(asking(shown, gateway, listener, view))
            }
            _ => None,
        };
        if let Some(shown) = &shown {
            // One that is refused is not what it was before.
            if listener.is_served() && shown.is_kept() {
                let (listener, field) = (Some(listener.id.clone()), listener.at("tls").field);
                self.pending_parts.push(PendingPart { listener, field });
            }
            self.verdicts.extend(shown.verdicts.iter().cloned());
        }
        if let Some(why) = &listener.wrong_kinds {
            self.verdicts.push(Verdict::new(Code::GatewayRouteKinds, listener.at("allowedRoutes.kinds"), why.clone()));
        }
        let termination = shown.as_ref().map(|shown| shown.termination.as_ref());
        let is_usable = listener.is_served() && termination != Some(None);
        let conditions = conditions_of(listener, shown.as_ref(), is_usable);
        let unresolved = shown.as_ref().and_then(|shown| shown.unresolved.as_ref()).map(|unresolved| unresolved.code);
        let unresolved = unresolved.or(listener.wrong_kinds.as_ref().map(|_| Code::GatewayRouteKinds));
        self.unresolved += usize::from(unresolved.is_some());
        self.not_resolved = self.not_resolved.or(unresolved);
        let lacks_ca = shown.as_ref().is_some_and(|shown| shown.lacks_ca);
        let is_accepted = listener.is_served() && !lacks_ca;
        self.accepted += usize::from(is_accepted);
        self.usable += usize::from(is_usable);
        let code = code_of(listener, lacks_ca);
        self.not_accepted = self.not_accepted.or((!is_accepted).then_some(code));
        self.not_usable = self.not_usable.or((!is_usable).then_some(code));
        let kinds = listener.kinds.iter().map(|kind| {
            StatusValue::Record(vec![
                ("group", StatusValue::text(kind.group())),
                ("kind", StatusValue::text(kind.name())),
            ])
        });
        self.entries.push(Entry {
            identity: vec![("name", StatusValue::text(&*listener.name))],
            scope: Scope {
                values: vec![("supportedKinds", StatusValue::List(kinds.collect()))],
                conditions,
                ..Scope::default()
            },
        });
        let Some(protocol) = listener.protocol.filter(|_| listener.has_port()) else { return };
        let termination = termination.filter(|_| listener.is_served());
        if let Some(Some(termination)) = termination {
            let secrets = termination.certificates().filter_map(CertificateRef::secret).cloned().collect();
            self.shown.push((self.entries.len() - 1, ShownAt { bound: listener.bound, secrets }));
        }
        if settings.ports.privileged_only && listener.is_served() && listener.bound != listener.port {
            let why = format!("port {} is served on port {}", listener.port, listener.bound);
            self.verdicts.push(Verdict::new(Code::GatewayPortMoved, listener.at("port"), why));
        }
        let precedence = precedence(meta, listener.index);
        if listener.is_claimed {
            self.claims.push(ListenerClaim {
                listener: listener.id.clone(),
                // A pod's own address is nobody's business.
                address: match listener.id.fleet() {
                    FleetId::Shared => settings.address,
                    FleetId::Named(_) => Ipv4Addr::UNSPECIFIED.into(),
                },
                port: listener.bound,
                protocol: protocol.on_port(),
                host: listener.host.clone(),
                // The fleet is the Gateway's own, or the operator has bound the Gateway to the shared one.
                owner: None,
                plaintext_of: None,
                overrides: Default::default(),
                precedence: precedence.clone(),
                origin: listener.at(""),
            });
        }
        if protocol.is_http() {
            self.hosts.push((listener.id.clone(), listener.host.clone()));
        }
        if listener.is_closed() && protocol == Protocol::Http {
            self.routes.push(unavailable(listener, precedence.clone()));
        }
        let mode = match termination {
            // Connections for its hosts are closed: they are none of a wider listener's.
            _ if listener.is_closed() => Some(TlsMode::closed()),
            Some(Some(termination)) => Some(TlsMode::Http(termination.clone())),
            Some(None) if listener.is_claimed => Some(TlsMode::closed()),
            _ => None,
        };
        // Connections of other TLS listeners are those of routes, as long as the listener is served.
        let has_tls = match listener.is_closed() {
            true => protocol.on_port() == PortProtocol::Tls,
            false => protocol == Protocol::Https,
        };
        if let Some(mode) = mode.filter(|_| has_tls) {
            self.tls.push(TlsPiece {
                listener: listener.id.clone(),
                host: listener.host.clone(),
                mode,
                fallback: None,
                covers: Covers { depth: Depth::AnyLabels, every_route: true },
                precedence,
                origin: listener.at("tls"),
            });
        }
    }

    /// States of the listeners whose certificates have names in common that they do; hostnames in common say more.
    fn compare_certificates(&mut self, view: &mut impl GatewayView) {
        let (places, shown): (Vec<usize>, Vec<ShownAt>) = std::mem::take(&mut self.shown).into_iter().unzip();
        if shown.len() < 2 {
            return;
        }
        let secrets: BTreeSet<&ObjectRef> = shown.iter().flat_map(|shown| &shown.secrets).collect();
        let certificates: BTreeMap<&ObjectRef, _> =
            secrets.into_iter().filter_map(|secret| Some((secret, view.certificate(secret)?))).collect();
        let names = |secret: &ObjectRef| match certificates.get(secret).map(|found| &**found) {
            Some(Ok(certificate)) => certificate.names.as_slice(),
            _ => &[],
        };
        let overlapping = overlap::of(&shown, names);
        for (place, _) in places.into_iter().zip(overlapping).filter(|(_, overlaps)| *overlaps) {
            let conditions = &mut self.entries[place].scope.conditions;
            if conditions.iter().all(|stated| stated.kind != OVERLAPPING_TLS) {
                let why = "A certificate of another TLS listener of the port is for a name that one of this listener is \
                           for, too; requests over its connections answer 421.";
                conditions.push(conditions::new(OVERLAPPING_TLS, Truth::True, "OverlappingCertificates", why));
            }
        }
    }

    /// The translation of the object, with what its status says about itself.
    pub fn into_translation(self, subject: ObjectRef, object: Scope, mut verdicts: VerdictList) -> Translation {
        let Pieces { hosts, claims, routes, tls, entries, verdicts: own, pending_parts, .. } = self;
        // What a Gateway asks for on several of its listeners is told once.
        let mut own = own.into_sorted();
        own.dedup();
        verdicts.extend(own);
        let facts = StatusFacts { object, lists: vec![(status::LISTENERS, entries)] };
        let pending = if pending_parts.is_empty() { Vec::new() } else { vec![subject.clone()] };
        Translation {
            hosts,
            listeners: claims,
            routes,
            tls,
            facts: Some(facts.into()),
            pending,
            pending_parts,
            verdicts: verdicts.into_sorted(),
            ..Translation::empty(subject)
        }
        .sorted()
    }
}

/// What answers all requests for the host of a listener that is closed: 503.
fn unavailable(listener: &Listener, precedence: Precedence) -> RoutePiece {
    let route = Route {
        path: PathMatch::Prefix(Path::root()),
        conditions: Default::default(),
        depth: Depth::AnyLabels,
        action: Action::DirectResponse(DirectResponse::unavailable()),
        policy: Default::default(),
        precedence,
        origin: listener.at(""),
        fraction: None,
        combined: None,
    };
    RoutePiece { listener: listener.id.clone(), host: listener.host.clone(), route: route.into() }
}

/// With the client certificates that the Gateway asks for on the port of an HTTPS listener.
fn asking(shown: tls::Shown, gateway: &Gateway, listener: &Listener, view: &mut impl GatewayView) -> tls::Shown {
    if listener.protocol != Some(Protocol::Https) || !listener.is_served() {
        return shown;
    }
    // Of a listener that is served it can be read.
    let Ok(Some(frontend)) = clients::of_port(gateway, listener.port) else { return shown };
    let id = ObjectRef::new(kind::GATEWAY, gateway.meta.namespace.clone(), gateway.meta.name.clone());
    shown.asking(clients::resolve(&id, listener, &frontend, view))
}

/// The code of what is in the way of a listener that cannot be served.
fn code_of(listener: &Listener, lacks_ca: bool) -> Code {
    match &listener.refused {
        Some(refused) => refused.code,
        None if lacks_ca => Code::GatewayClientCa,
        None => Code::GatewayCertificateRef,
    }
}

fn conditions_of(listener: &Listener, shown: Option<&tls::Shown>, is_usable: bool) -> Vec<Condition> {
    let refused = listener.refused.as_ref();
    let lacks_ca = shown.is_some_and(|shown| shown.lacks_ca);
    let no_ca = "Client certificates are requested, but no CA certificate is valid.";
    let because =
        |kind, reason, refused: &Refused| conditions::refused(kind, reason, refused.code, refused.why.as_ref());
    let accepted = match refused {
        None if lacks_ca => conditions::refused(ACCEPTED, "NoValidCACertificate", Code::GatewayClientCa, no_ca),
        None => conditions::accepted("The listener is valid."),
        Some(refused) => because(ACCEPTED, refused.reason, refused),
    };
    let conflicted = match refused.filter(|refused| refused.is_conflict) {
        None => conditions::new(CONFLICTED, Truth::False, "NoConflicts", "The listener has no conflicts."),
        Some(refused) => Condition { status: Truth::True, ..because(CONFLICTED, refused.reason, refused) },
    };
    let unresolved = shown.and_then(|shown| shown.unresolved.as_ref());
    let resolved = match (unresolved, &listener.wrong_kinds) {
        (Some(Unresolved { reason, code, why }), _) => conditions::refused(RESOLVED_REFS, reason, *code, why),
        (None, Some(why)) => {
            conditions::refused(RESOLVED_REFS, "InvalidRouteKinds", Code::GatewayRouteKinds, why.as_ref())
        }
        (None, None) => conditions::resolved(),
    };
    let mut all = vec![accepted, resolved, conflicted];
    match refused {
        _ if is_usable => {}
        Some(refused) if refused.is_conflict => all.push(because(PROGRAMMED, refused.reason, refused)),
        Some(refused) => all.push(because(PROGRAMMED, "Invalid", refused)),
        None if lacks_ca => all.push(conditions::refused(PROGRAMMED, "Invalid", Code::GatewayClientCa, no_ca)),
        None => {
            let why = "The listener has no certificate.";
            all.push(conditions::refused(PROGRAMMED, "Invalid", Code::GatewayCertificateRef, why));
        }
    }
    if listener.overlaps {
        let why = "Another TLS listener of the port has hostnames in common; requests over its connections answer 421.";
        all.push(conditions::new(OVERLAPPING_TLS, Truth::True, "OverlappingHostnames", why));
    }
    all
}
