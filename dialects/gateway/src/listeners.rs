//! The listeners of a Gateway: its own and those of the ListenerSets that attach to it, after conflicts were decided.
//!
//! In: a Gateway and its ListenerSets. Out: [`Listeners`], in which each listener has what routes must know to attach to it, or
//! the reason why it is not served. Certificates and grants are left to the translations of Gateways and ListenerSets: a route need
//! not hear of a renewed certificate.

mod conflict;
mod namespaces;
mod read;

pub use namespaces::Namespaces;

use crate::{GatewayView, Settings, fleet, gateway};
use kinds::{Gateway, Kind, ListenerSet, kind};
use model::{Code, FieldPath, Host, ListenerId, ObjectRef, Origin, PortProtocol, Verdict, translation::Section};
use resolve::annotation::foreign;
use std::sync::Arc;

/// The most listeners of a Gateway, with those of its ListenerSets.
pub const LIMIT: usize = 1_000;

/// The listeners of a Gateway and of its ListenerSets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listeners {
    /// The Gateway.
    pub gateway: ObjectRef,
    /// The listeners: those of the Gateway in their order, then those of its ListenerSets, the oldest first.
    pub listeners: Vec<Listener>,
    /// Whose ListenerSets may attach to it. Those that may not leave no trace here: whoever reads this does not hear of them.
    pub allowed_sets: Namespaces,
    /// Why nothing of the Gateway is served, in words.
    pub refused: Option<String>,
}

impl Listeners {
    /// The listeners of one object, the Gateway or a ListenerSet. A route that names the Gateway attaches to none of a set.
    pub fn of<'l>(&'l self, owner: &'l ObjectRef) -> impl Iterator<Item = &'l Listener> {
        self.listeners.iter().filter(move |listener| listener.owner == *owner)
    }

    /// The listeners of one object without what routes do not ask for: why a listener is not served, what is wrong with its kinds,
    /// and which others have names in common with it.
    pub fn for_routes(&self, owner: &ObjectRef) -> Vec<Listener> {
        let without = |listener: &Listener| Listener {
            refused: listener.refused.as_ref().map(|_| Refused::value("", "")),
            wrong_kinds: None,
            overlaps: false,
            ..listener.clone()
        };
        self.of(owner).map(without).collect()
    }
}

/// One listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The Gateway or ListenerSet that has it.
    pub owner: ObjectRef,
    /// Its place in `spec.listeners` there.
    pub index: usize,
    /// Its name, unique in its owner.
    pub name: Arc<str>,
    /// What routes and certificates are attached to.
    pub id: ListenerId,
    /// Whether the listener has to be claimed; otherwise it is one that the fleet has by its settings.
    pub is_claimed: bool,
    /// The hosts that it takes, at any depth below a wildcard.
    pub host: Host,
    /// The port that clients connect to.
    pub port: u16,
    /// The port that proxies bind.
    pub bound: u16,
    /// What is spoken there; nothing where that is not supported.
    pub protocol: Option<Protocol>,
    /// The kinds of routes that may attach.
    pub kinds: Vec<Kind>,
    /// What is wrong with the kinds that it asks for.
    pub wrong_kinds: Option<Box<str>>,
    /// The namespaces whose routes may attach.
    pub namespaces: Namespaces,
    /// Why it is not served, as far as its owners' specifications tell.
    pub refused: Option<Refused>,
    /// Whether another TLS listener of its port has names in common with it.
    pub overlaps: bool,
}

impl Listener {
    /// Whether routes that attach to it are served.
    pub fn is_served(&self) -> bool {
        self.refused.is_none()
    }

    /// Whether it is refused and keeps its hostname: requests and connections for that are refused, and go to no wider listener.
    /// What is for every host has no wider listener.
    pub fn is_closed(&self) -> bool {
        self.host != Host::Any && self.refused.as_ref().is_some_and(|refused| refused.keeps_host)
    }

    /// Whether it has a port of the proxies: it is served, or closed.
    pub fn has_port(&self) -> bool {
        self.is_served() || self.is_closed()
    }

    /// Refuses it because of the object that it is a part of, unless it is refused already. It keeps its hostname where the object
    /// asks for protection that it does not get.
    fn refuse(&mut self, why: &str, is_unprotected: bool) {
        let has_hosts = self.protocol.is_some_and(|protocol| protocol.on_port().has_hosts());
        let keeps_host = is_unprotected && has_hosts;
        self.refused.get_or_insert_with(|| Refused { keeps_host, ..Refused::value("", why) });
    }

    /// The listener as what a route is attached to.
    pub fn section(&self) -> Section {
        Section { object: self.owner.clone(), name: self.name.clone() }
    }

    /// A field of it.
    pub fn at(&self, field: &str) -> Origin {
        let listener = FieldPath::from("spec.listeners").index(self.index);
        self.owner.at(if field.is_empty() { listener } else { listener.field(field) })
    }

    /// What is told about a listener that is not served.
    pub fn verdict(&self) -> Option<Verdict> {
        let Refused { code, field, why, .. } = self.refused.as_ref()?;
        let why: Box<str> = match self.is_closed() {
            true => format!("{why}; nothing is served for {}", self.host).into(),
            false => why.clone(),
        };
        Some(Verdict::new(*code, self.at(field), why))
    }
}

/// Why a listener is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The reason, in the word of the API.
    pub reason: &'static str,
    /// Whether another listener is in its way.
    pub is_conflict: bool,
    /// Whether its port and hostname are known and stay its own: what is not supported of it may be what protects them.
    pub keeps_host: bool,
    /// The row of the table of codes.
    pub code: Code,
    /// The field of the listener.
    pub field: &'static str,
    /// This very case.
    pub why: Box<str>,
}

impl Refused {
    fn value(field: &'static str, why: impl Into<Box<str>>) -> Self {
        let (reason, code, why) = ("UnsupportedValue", Code::GatewayListener, why.into());
        Self { reason, is_conflict: false, keeps_host: false, code, field, why }
    }

    fn conflict(reason: &'static str, field: &'static str, why: impl Into<Box<str>>) -> Self {
        Self { reason, is_conflict: true, code: Code::GatewayListenerConflict, ..Self::value(field, why) }
    }

    /// That the port of the proxies which is bound for its port is another listener's.
    fn port_unavailable(why: impl Into<Box<str>>) -> Self {
        Self { reason: "PortUnavailable", code: Code::ListenerConflict, ..Self::value("port", why) }
    }
}

/// What is spoken on a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP over plaintext.
    Http,
    /// HTTP over TLS.
    Https,
    /// TLS that is terminated; what is inside goes to a backend as a stream of bytes.
    TlsTerminate,
    /// TLS that is passed through to a backend.
    TlsPassthrough,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// What Envoy's listener speaks.
    pub fn on_port(self) -> PortProtocol {
        match self {
            Protocol::Http => PortProtocol::Http,
            Protocol::Https | Protocol::TlsTerminate | Protocol::TlsPassthrough => PortProtocol::Tls,
            Protocol::Tcp => PortProtocol::Tcp,
            Protocol::Udp => PortProtocol::Udp,
        }
    }

    /// The kinds of routes that suit it.
    pub fn route_kinds(self) -> &'static [Kind] {
        match self {
            Protocol::Http | Protocol::Https => &[kind::HTTP_ROUTE, kind::GRPC_ROUTE],
            Protocol::TlsTerminate | Protocol::TlsPassthrough => &[kind::TLS_ROUTE],
            Protocol::Tcp => &[kind::TCP_ROUTE],
            Protocol::Udp => &[kind::UDP_ROUTE],
        }
    }

    /// Whether its requests are looked at.
    pub fn is_http(self) -> bool {
        matches!(self, Protocol::Http | Protocol::Https)
    }

    /// Whether connections are decrypted.
    pub fn is_terminated(self) -> bool {
        matches!(self, Protocol::Https | Protocol::TlsTerminate)
    }
}

/// The listeners of a Gateway that is ours.
pub fn merge(gateway: &Gateway, view: &mut impl GatewayView, settings: &Settings) -> Listeners {
    let owner = ObjectRef::new(kind::GATEWAY, gateway.meta.namespace.clone(), gateway.meta.name.clone());
    let reader = read::Reader { gateway, settings, fleet: fleet::of(gateway, settings) };
    let mut listeners = reader.all(&owner, &gateway.spec.listeners, 0);
    conflict::among(&mut listeners);
    let mut sets = view.sets_of(&owner);
    let age = |set: &ListenerSet| (set.meta.created, set.meta.namespace.clone(), set.meta.name.clone());
    sets.sort_by_key(|set| age(set));
    let allowed = namespaces::of_sets(gateway);
    for set in sets {
        let owner = ObjectRef::new(kind::LISTENER_SET, set.meta.namespace.clone(), set.meta.name.clone());
        if !allowed.allow(&owner.namespace, view) {
            continue;
        }
        let protection = foreign::look(&set.meta, &owner).verdicts;
        let unprotected = crate::unprotected(&protection, settings);
        for mut listener in reader.all(&owner, &set.spec.listeners, listeners.len()) {
            if let Some(verdict) = unprotected {
                listener.refuse(&verdict.message, true);
            }
            conflict::add(&mut listeners, listener);
        }
    }
    let refusal = gateway::refusal(gateway, view, settings);
    if let Some(refusal) = &refusal {
        let why = format!("the Gateway is not accepted: {}", refusal.why);
        let is_unprotected = refusal.code == Code::ForeignProtection;
        listeners.iter_mut().for_each(|listener| listener.refuse(&why, is_unprotected));
    }
    conflict::overlaps(&mut listeners);
    let refused = refusal.map(|refusal| refusal.why);
    Listeners { gateway: owner, listeners, allowed_sets: allowed, refused }
}

/// The Gateway that a ListenerSet names as its parent, if it names one.
pub fn parent(set: &ListenerSet) -> Option<ObjectRef> {
    let parent = set.spec.parent_ref.ok()?.as_ref()?;
    let is_gateway = parent.group.as_deref().is_none_or(|group| group == crate::GROUP)
        && parent.kind.as_deref().is_none_or(|kind| kind == kind::GATEWAY.name());
    let namespace = parent.namespace.as_deref().unwrap_or(&set.meta.namespace);
    is_gateway.then(|| ObjectRef::new(kind::GATEWAY, namespace, &*parent.name))
}
