//! Ports and the listeners on them: from settings, and from objects that ask for one.
//!
//! In: the settings of each fleet and the claims of translations. Out: [`Ports`], each an Envoy listener, and [`ActiveListeners`],
//! what hosts need to know about the listener they are attached to. Listeners on one address and port share it if they have the
//! same owner, speak the same protocol and differ in their host; else the stronger claim has the port (settings, then by precedence),
//! and the others get a verdict. A listener that lost serves nothing. A narrower listener takes hosts from a wider one, so nobody
//! shares a port with settings, or with another's listeners, whom the operator has not bound to the fleet. An address and all of its
//! family exclude each other on one port number.
//!
//! A TLS port may take plaintext connections as well. Those have a port of their own, with its hosts, routes and settings, which is
//! a filter chain of the TLS port's Envoy listener.

mod numbers;
mod streams;

pub use numbers::{ListenersByNumber, NumbersByPort, PortNumber, PortNumbers, PortsOfNumber};
pub use streams::{Stream, Streams, StreamsByListener, UdpTarget, UdpTargets};

use crate::{
    emissary::logs,
    losers::Losers,
    settings::{Bind, FleetSettings, Fleets},
    tracers::Tracers,
    translations::{TranslationRow, Translations},
};
use engine::{Derived, Index, Reads, Table};
use model::{
    Code, FleetId, Host, ListenerId, ObjectRef, Origin, Port, PortId, PortProtocol, Verdict,
    listener::{ListenerClaim, PortOverrides},
    route::Precedence,
};
use std::net::IpAddr;

/// Fleets by the listeners that their settings ask for.
pub struct ListenersOfSettings;

impl Index for ListenersOfSettings {
    type Of = Fleets;
    type Key = ListenerId;
    const NAME: &'static str = "by listener";

    fn keys(fleet: &FleetId, settings: &FleetSettings) -> impl IntoIterator<Item = ListenerId> {
        settings.listeners(fleet).map(|(id, ..)| id).collect::<Vec<_>>()
    }
}

/// Translations by the listeners that they ask for.
pub struct ClaimsByListener;

impl Index for ClaimsByListener {
    type Of = Translations;
    type Key = ListenerId;
    const NAME: &'static str = "by claimed listener";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = ListenerId> {
        translation.listeners.iter().map(|claim| claim.listener.clone()).collect::<Vec<_>>()
    }
}

/// A listener that somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerRow {
    /// Where it listens.
    pub bind: Bind,
    /// The port that is.
    pub port: PortId,
    /// What is spoken there.
    pub protocol: PortProtocol,
    /// The hosts that it takes.
    pub host: Host,
    /// Whose listeners it shares the port with; nothing for settings and for whom the operator has bound to the fleet.
    pub owner: Option<ObjectRef>,
    /// The TLS listener whose plaintext connections it takes.
    pub plaintext_of: Option<ListenerId>,
    /// What it has of its own where its port has settings.
    pub overrides: PortOverrides,
    /// The object that asks for it; nothing for settings, which are stronger than any object.
    pub claim: Option<(Precedence, Origin)>,
    /// A verdict for each object that asks for another listener of this name; sorted.
    pub lost: Vec<Verdict>,
}

/// The listeners that somebody asks for, each by the strongest claim to its name.
pub struct Listeners;

impl Table for Listeners {
    type Key = ListenerId;
    type Value = ListenerRow;
    const NAME: &'static str = "listeners";
}

impl Derived for Listeners {
    fn compute(&self, id: &ListenerId, reads: &mut Reads<'_>) -> Option<ListenerRow> {
        let settings = reads.get::<Fleets>(id.fleet());
        let translations: Vec<_> = reads.probe::<ClaimsByListener>(id).collect();
        let translations = translations.into_iter().filter_map(|name| reads.get::<Translations>(name));
        let mut claims: Vec<&ListenerClaim> = translations.flat_map(|translation| translation.claims_of(id)).collect();
        claims.sort_by(|a, b| (&a.precedence, &a.origin).cmp(&(&b.precedence, &b.origin)));
        let own = settings.and_then(|settings| settings.listeners(id.fleet()).find(|(listener, ..)| listener == id));
        let mut claims = claims.into_iter();
        let row = match own {
            Some((_, protocol, bind)) => {
                let bind = bind.canonical();
                let port = port_id(id.fleet(), protocol, bind, settings.map(|settings| &**settings));
                ListenerRow {
                    bind,
                    port,
                    protocol,
                    host: Host::Any,
                    owner: None,
                    plaintext_of: None,
                    overrides: PortOverrides::default(),
                    claim: None,
                    lost: Vec::new(),
                }
            }
            None => {
                let claim = claims.next()?;
                let bind = Bind { address: claim.address, port: claim.port }.canonical();
                let port = port_id(id.fleet(), claim.protocol, bind, settings.map(|settings| &**settings));
                ListenerRow {
                    bind,
                    port: if claim.plaintext_of.is_some() { plaintext_port(&port) } else { port },
                    protocol: claim.protocol,
                    host: claim.host.clone(),
                    owner: claim.owner.clone(),
                    plaintext_of: claim.plaintext_of.clone(),
                    overrides: claim.overrides.clone(),
                    claim: Some((claim.precedence.clone(), claim.origin.clone())),
                    lost: Vec::new(),
                }
            }
        };
        let winner = claimant(&row.claim);
        let lost = claims.map(|claim| {
            let why = format!("listener {id}: that of {winner} is in effect");
            Verdict::new(Code::ListenerConflict, claim.origin.clone(), why)
        });
        let mut lost: Vec<_> = lost.collect();
        lost.sort();
        Some(ListenerRow { lost, ..row })
    }
}

/// The object that claims a listener, or the settings.
fn claimant(claim: &Option<(Precedence, Origin)>) -> String {
    claim.as_ref().map_or_else(|| "the settings".to_owned(), |(_, origin)| origin.to_string())
}

/// The port of an address: settings have names for theirs, others are named by what they are. While a listener that an object asks
/// for shares the address of one of the settings' both are one Envoy listener, so settings that come to its address, or leave it,
/// rename its port: of two listeners one has to go, and keeping the object's name would rename the port of all hosts of the settings.
fn port_id(fleet: &FleetId, protocol: PortProtocol, bind: Bind, settings: Option<&FleetSettings>) -> PortId {
    let transport = if protocol.is_udp() { "udp" } else { "tcp" };
    let mut listeners = settings.into_iter().flat_map(|settings| settings.listeners(fleet));
    if let Some((id, ..)) = listeners.find(|(.., own)| own.canonical() == bind && transport == "tcp") {
        return PortId::new(fleet.clone(), id.name().clone());
    }
    let Bind { address, port } = bind;
    PortId::new(
        fleet.clone(),
        match address {
            IpAddr::V4(address) if address.is_unspecified() => format!("{transport}-{port}"),
            address => format!("{transport}-{port}-{address}"),
        },
    )
}

/// The port of the plaintext connections of a TLS port. No other is called so: no address is.
fn plaintext_port(tls: &PortId) -> PortId {
    PortId::new(tls.fleet().clone(), format!("{tls}-plaintext"))
}

/// A port, and the listeners that share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRow {
    /// Where it listens.
    pub bind: Bind,
    /// What is spoken there.
    pub protocol: PortProtocol,
    /// What its listeners have of their own where it has settings.
    pub overrides: PortOverrides,
    /// The listeners on it, each with the hosts that it takes; sorted.
    pub listeners: Vec<(ListenerId, Host)>,
    /// The port of its plaintext connections, if it is one of TLS that takes them.
    pub plaintext: Option<PortId>,
    /// The TLS port whose plaintext connections it has: there is no Envoy listener for it.
    pub plaintext_of: Option<PortId>,
}

impl PortRow {
    /// One that no listener is on yet.
    fn of(listener: &ListenerRow) -> Self {
        Self {
            bind: listener.bind,
            protocol: listener.protocol,
            overrides: listener.overrides.clone(),
            listeners: Vec::new(),
            plaintext: None,
            plaintext_of: None,
        }
    }
}

/// Ports.
pub struct Ports;

impl Table for Ports {
    type Key = PortId;
    type Value = PortRow;
    const NAME: &'static str = "ports";
}

impl Derived for Ports {
    fn compute(&self, id: &PortId, reads: &mut Reads<'_>) -> Option<PortRow> {
        let number = reads.probe::<NumbersByPort>(id).next()?;
        reads.get::<PortNumbers>(number)?.ports.get(id).cloned()
    }
}

/// The ports of plaintext HTTP.
pub struct PlaintextPorts;

impl Index for PlaintextPorts {
    type Of = Ports;
    type Key = PortId;
    const NAME: &'static str = "plaintext HTTP";

    fn keys(id: &PortId, port: &PortRow) -> impl IntoIterator<Item = PortId> {
        (port.protocol == PortProtocol::Http).then(|| id.clone())
    }
}

/// Ports with what holds for their connections and requests.
pub struct PortSettings;

impl Table for PortSettings {
    type Key = PortId;
    type Value = Port;
    const NAME: &'static str = "port settings";
}

impl Derived for PortSettings {
    fn compute(&self, id: &PortId, reads: &mut Reads<'_>) -> Option<Port> {
        let row = reads.get::<Ports>(id)?;
        let settings =
            reads.get::<Fleets>(id.fleet()).map(|settings| FleetSettings::clone(settings)).unwrap_or_default();
        let http = match row.protocol {
            PortProtocol::Http if row.plaintext_of.is_none() => settings.http_settings,
            PortProtocol::Http | PortProtocol::Tls | PortProtocol::Tcp | PortProtocol::Udp | PortProtocol::Quic => {
                settings.https_settings
            }
        };
        let mut http = row.overrides.applied(http);
        if let Some(servers) = logs::of_fleet(id.fleet(), reads) {
            http.access_log.servers = servers;
        }
        let tracer = match row.protocol.has_hosts() {
            true => reads.get::<Tracers>(id.fleet()).map(|row| row.tracer.clone()),
            false => None,
        };
        let Bind { address, port } = row.bind;
        let (id, protocol) = (id.clone(), row.protocol);
        let connections = row.overrides.of_connections(settings.connections);
        Some(Port { id, address, port, protocol, connections, http, tracer })
    }
}

/// Ports by the listeners that are in effect there.
pub struct PortsByListener;

impl Index for PortsByListener {
    type Of = Ports;
    type Key = ListenerId;
    const NAME: &'static str = "by listener in effect";

    fn keys(_: &PortId, port: &PortRow) -> impl IntoIterator<Item = ListenerId> {
        port.listeners.iter().map(|(listener, _)| listener.clone()).collect::<Vec<_>>()
    }
}

/// A listener that is in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveListener {
    /// Its port.
    pub port: PortId,
    /// Where that listens.
    pub bind: Bind,
    /// The port that clients reach it at.
    pub public_port: u16,
    /// What is spoken there.
    pub protocol: PortProtocol,
    /// Whether it is one of the settings'.
    pub from_settings: bool,
    /// The hosts that it takes, except for those of narrower listeners on its port: see [`crate::isolation`].
    pub host: Host,
}

impl ActiveListener {
    /// Whether it has hosts, and not every name.
    pub fn has_own_host(&self) -> bool {
        self.protocol.has_hosts() && self.host != Host::Any
    }

    /// Whether a host is the one that it is for. It is placed whether there are routes or a certificate for it or not.
    pub fn is_own_host(&self, host: &Host) -> bool {
        self.has_own_host() && self.host == *host
    }
}

/// The listeners that are in effect. One that comes or goes on a port wakes no other.
pub struct ActiveListeners;

impl Table for ActiveListeners {
    type Key = ListenerId;
    type Value = ActiveListener;
    const NAME: &'static str = "active listeners";
}

impl Derived for ActiveListeners {
    fn compute(&self, id: &ListenerId, reads: &mut Reads<'_>) -> Option<ActiveListener> {
        let row = reads.get::<Listeners>(id)?;
        let port = reads.probe::<PortsByListener>(id).find(|port| **port == row.port)?;
        Some(ActiveListener {
            port: port.clone(),
            bind: row.bind,
            public_port: row.overrides.public_port.unwrap_or(row.bind.port),
            protocol: row.protocol,
            from_settings: row.claim.is_none(),
            host: row.host.clone(),
        })
    }
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.derived(Listeners).per::<ListenersOfSettings>().per::<ClaimsByListener>();
    pipeline.derived(PortNumbers).per::<ListenersByNumber>();
    pipeline.derived(Ports).per::<NumbersByPort>();
    pipeline.derived(PortSettings).each::<Ports>();
    pipeline.index::<PortsByListener>();
    pipeline.derived(ActiveListeners).each::<Listeners>();
    pipeline.derived(Streams).each::<ActiveListeners>();
    pipeline.index::<StreamsByListener>().index::<UdpTargets>();
    pipeline.index::<PlaintextPorts>();
    pipeline.parts::<Losers<Listeners>>().parts::<Losers<PortNumbers>>().parts::<Losers<Streams>>();
}
