//! Ports and the listeners on them: from settings, and from objects that ask for one.
//!
//! In: the settings of each fleet and the claims of translations. Out: [`Ports`], each an Envoy listener, and [`ActiveListeners`],
//! what hosts need to know about the listener they are attached to. Listeners on one address and port share it if they speak
//! the same protocol and differ in their host; else the stronger claim has the port (settings, then by precedence), and the others
//! get a verdict. A listener that lost serves nothing.

use crate::{
    settings::{Bind, FleetSettings, Fleets},
    translations::{TranslationRow, Translations},
};
use engine::{Derived, Index, Reads, Table};
use model::{
    ClusterId, Code, FleetId, Host, ListenerId, ObjectRef, Origin, Port, PortId, PortProtocol, Verdict,
    listener::{ListenerClaim, StreamPiece, StreamTarget},
    route::Precedence,
};
use std::{net::IpAddr, sync::Arc};

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
                let port = port_id(id.fleet(), protocol, bind, settings.map(|settings| &**settings));
                ListenerRow { bind, port, protocol, host: Host::Any, claim: None, lost: Vec::new() }
            }
            None => {
                let ListenerClaim { address, port, protocol, host, precedence, origin, .. } = claims.next()?;
                let bind = Bind { address: *address, port: *port };
                let port = port_id(id.fleet(), *protocol, bind, settings.map(|settings| &**settings));
                let claim = Some((precedence.clone(), origin.clone()));
                ListenerRow { bind, port, protocol: *protocol, host: host.clone(), claim, lost: Vec::new() }
            }
        };
        let winner = who(&row.claim);
        let lost = claims.map(|claim| {
            let why = format!("listener {id}: that of {winner} is in effect");
            Verdict::new(Code::ListenerConflict, claim.origin.clone(), why)
        });
        let mut lost: Vec<_> = lost.collect();
        lost.sort();
        Some(ListenerRow { lost, ..row })
    }
}

fn who(claim: &Option<(Precedence, Origin)>) -> String {
    claim.as_ref().map_or_else(|| "the settings".to_owned(), |(_, origin)| origin.to_string())
}

/// The port of an address: settings have names for theirs, others are named by what they are.
fn port_id(fleet: &FleetId, protocol: PortProtocol, bind: Bind, settings: Option<&FleetSettings>) -> PortId {
    let transport = if protocol == PortProtocol::Udp { "udp" } else { "tcp" };
    let mut listeners = settings.into_iter().flat_map(|settings| settings.listeners(fleet));
    if let Some((id, ..)) = listeners.find(|(.., own)| *own == bind && transport == "tcp") {
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

/// Listeners by their port.
pub struct ListenersByPort;

impl Index for ListenersByPort {
    type Of = Listeners;
    type Key = PortId;
    const NAME: &'static str = "by port";

    fn keys(_: &ListenerId, listener: &ListenerRow) -> impl IntoIterator<Item = PortId> {
        [listener.port.clone()]
    }
}

/// A port, and the listeners that share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRow {
    /// Where it listens.
    pub bind: Bind,
    /// What is spoken there.
    pub protocol: PortProtocol,
    /// The listeners on it, each with the hosts that it takes; sorted. None where Envoy needs the port for its own pages.
    pub listeners: Vec<(ListenerId, Host)>,
    /// A verdict for each listener that may not be there; sorted.
    pub lost: Vec<Verdict>,
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
        let keys: Vec<_> = reads.probe::<ListenersByPort>(id).collect();
        let mut rows: Vec<(&ListenerId, &Arc<ListenerRow>)> =
            keys.into_iter().filter_map(|key| Some((key, reads.get::<Listeners>(key)?))).collect();
        rows.sort_by(|a, b| (&a.1.claim, a.0).cmp(&(&b.1.claim, b.0)));
        let (first, winner) = *rows.first()?;
        let settings = reads.get::<Fleets>(id.fleet());
        let taken = settings.is_some_and(|settings| {
            let mut pages = settings.own_pages(id.fleet()).map(|(_, page)| page.bind());
            winner.protocol != PortProtocol::Udp && pages.any(|page| overlaps(page, winner.bind))
        });
        let mut row = PortRow { bind: winner.bind, protocol: winner.protocol, listeners: Vec::new(), lost: Vec::new() };
        for (listener, asked) in rows {
            let has_hosts = matches!(asked.protocol, PortProtocol::Http | PortProtocol::Tls);
            let rival = row.listeners.iter().find(|(_, host)| !has_hosts || *host == asked.host);
            let why = if taken {
                Some(format!("port {} is used for Envoy's own pages", asked.bind.port))
            } else if asked.protocol != winner.protocol {
                Some(format!("port {} is used for {} by listener {first}", asked.bind.port, winner.protocol))
            } else {
                rival.map(|(rival, host)| format!("listener {rival} has port {} and host {host}", asked.bind.port))
            };
            match (why, &asked.claim) {
                (None, _) => row.listeners.push((listener.clone(), asked.host.clone())),
                (Some(why), Some((_, origin))) => {
                    row.lost.push(Verdict::new(Code::ListenerConflict, origin.clone(), why));
                }
                // There is nobody to tell: whoever reads settings refuses such.
                (Some(_), None) => {}
            }
        }
        row.listeners.sort();
        row.lost.sort();
        Some(row)
    }
}

/// Whether two sockets exclude each other.
fn overlaps(a: Bind, b: Bind) -> bool {
    a.port == b.port && (a.address == b.address || a.address.is_unspecified() || b.address.is_unspecified())
}

/// The ports of plaintext HTTP.
pub struct PlaintextPorts;

impl Index for PlaintextPorts {
    type Of = Ports;
    type Key = PortId;
    const NAME: &'static str = "plaintext HTTP";

    fn keys(id: &PortId, port: &PortRow) -> impl IntoIterator<Item = PortId> {
        (port.protocol == PortProtocol::Http && !port.listeners.is_empty()).then(|| id.clone())
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
        let row = reads.get::<Ports>(id).filter(|row| !row.listeners.is_empty())?;
        let settings =
            reads.get::<Fleets>(id.fleet()).map(|settings| FleetSettings::clone(settings)).unwrap_or_default();
        let http = match row.protocol {
            PortProtocol::Http => settings.http_settings,
            PortProtocol::Tls | PortProtocol::Tcp | PortProtocol::Udp => settings.https_settings,
        };
        let Bind { address, port } = row.bind;
        let (id, protocol, connections) = (id.clone(), row.protocol, settings.connections);
        Some(Port { id, address, port, protocol, connections, http })
    }
}

/// A listener that is in effect, as its hosts see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveListener {
    /// Its port.
    pub port: PortId,
    /// What is spoken there.
    pub protocol: PortProtocol,
    /// Whether it is one of the settings'.
    pub from_settings: bool,
    /// The hosts that it takes,
    host: Host,
    /// except for those of narrower listeners on its port.
    narrower: Vec<Host>,
}

impl ActiveListener {
    /// Whether requests for a host are this listener's.
    pub fn takes(&self, host: &Host) -> bool {
        includes(&self.host, host) && !self.narrower.iter().any(|narrower| includes(narrower, host))
    }
}

/// Whether one host has all names of another; a wildcard has those at any depth.
fn includes(wide: &Host, narrow: &Host) -> bool {
    let below = |name: &str, above: &str| name.strip_suffix(above).is_some_and(|rest| rest.ends_with('.'));
    match (wide, narrow) {
        (Host::Any, _) => true,
        (_, Host::Any) | (Host::Exact(_), Host::Wildcard(_)) => false,
        (Host::Exact(own), Host::Exact(other)) => own == other,
        (Host::Wildcard(own), Host::Exact(other)) => below(other.as_str(), own.as_str()),
        (Host::Wildcard(own), Host::Wildcard(other)) => own == other || below(other.as_str(), own.as_str()),
    }
}

/// The listeners that are in effect.
pub struct ActiveListeners;

impl Table for ActiveListeners {
    type Key = ListenerId;
    type Value = ActiveListener;
    const NAME: &'static str = "active listeners";
}

impl Derived for ActiveListeners {
    fn compute(&self, id: &ListenerId, reads: &mut Reads<'_>) -> Option<ActiveListener> {
        let row = reads.get::<Listeners>(id)?;
        let port = reads.get::<Ports>(&row.port)?;
        port.listeners.iter().find(|(listener, _)| listener == id)?;
        let others = port.listeners.iter().filter(|(listener, _)| listener != id).map(|(_, host)| host);
        Some(ActiveListener {
            port: row.port.clone(),
            protocol: row.protocol,
            from_settings: row.claim.is_none(),
            host: row.host.clone(),
            narrower: others.filter(|host| includes(&row.host, host)).cloned().collect(),
        })
    }
}

/// Translations by the plain TCP and UDP listeners that they have targets for.
pub struct StreamsByListener;

impl Index for StreamsByListener {
    type Of = Translations;
    type Key = ListenerId;
    const NAME: &'static str = "by stream listener";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = ListenerId> {
        translation.streams.iter().map(|piece| piece.listener.clone()).collect::<Vec<_>>()
    }
}

/// Where a plain TCP or UDP listener leads, and who lost on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The port of the listener.
    pub port: PortId,
    /// What is spoken there.
    pub protocol: PortProtocol,
    /// Where it leads.
    pub target: Arc<StreamTarget>,
    /// The objects that say so, or would.
    pub objects: Vec<ObjectRef>,
    /// A verdict for each object that asked for something else; sorted.
    pub lost: Vec<Verdict>,
}

/// Where plain TCP and UDP listeners lead: a listener for which nobody says so leads nowhere.
pub struct Streams;

impl Table for Streams {
    type Key = ListenerId;
    type Value = Stream;
    const NAME: &'static str = "streams";
}

impl Derived for Streams {
    fn compute(&self, id: &ListenerId, reads: &mut Reads<'_>) -> Option<Stream> {
        let active = reads.get::<ActiveListeners>(id)?;
        if matches!(active.protocol, PortProtocol::Http | PortProtocol::Tls) {
            return None;
        }
        let translations: Vec<_> = reads.probe::<StreamsByListener>(id).collect();
        let translations = translations.into_iter().filter_map(|name| reads.get::<Translations>(name));
        let mut pieces: Vec<&StreamPiece> = translations.flat_map(|translation| translation.streams_of(id)).collect();
        pieces.sort_by(|a, b| (&a.precedence, &a.origin).cmp(&(&b.precedence, &b.origin)));
        let mut objects: Vec<_> = pieces.iter().map(|piece| piece.origin.object.clone()).collect();
        objects.sort();
        objects.dedup();
        let (target, lost) = match pieces.split_first() {
            None => (Arc::default(), Vec::new()),
            Some((winner, others)) => {
                let others = others.iter().filter(|piece| piece.target != winner.target);
                let why = format!("listener {id}: {} is served", winner.origin);
                let verdict =
                    |piece: &&StreamPiece| Verdict::new(Code::StreamConflict, piece.origin.clone(), why.clone());
                (winner.target.clone(), others.map(verdict).collect())
            }
        };
        let mut stream = Stream { port: active.port.clone(), protocol: active.protocol, target, objects, lost };
        stream.lost.sort();
        Some(stream)
    }
}

/// Where a UDP listener leads, and who says so.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UdpTarget {
    /// The listener.
    pub listener: ListenerId,
    /// The backends and their shares.
    pub clusters: Arc<[(ClusterId, u32)]>,
    /// The share of backends that cannot be used.
    pub unavailable: u32,
    /// The objects that say so, or would.
    pub objects: Arc<[ObjectRef]>,
}

impl UdpTarget {
    /// That of a listener, if it is one of UDP.
    pub fn of(listener: &ListenerId, stream: &Stream) -> Option<Self> {
        let StreamTarget { clusters, unavailable, .. } = &*stream.target;
        (stream.protocol == PortProtocol::Udp).then(|| Self {
            listener: listener.clone(),
            clusters: clusters.as_slice().into(),
            unavailable: *unavailable,
            objects: stream.objects.as_slice().into(),
        })
    }
}

/// Streams by where they lead, for those of UDP: one that leads elsewhere has another key, so whoever has a row for each needs to
/// read nothing of the stream.
pub struct UdpTargets;

impl Index for UdpTargets {
    type Of = Streams;
    type Key = UdpTarget;
    const NAME: &'static str = "by UDP target";

    fn keys(listener: &ListenerId, stream: &Stream) -> impl IntoIterator<Item = UdpTarget> {
        UdpTarget::of(listener, stream)
    }
}

macro_rules! losers {
    ($($index:ident of $table:ident, $doc:literal;)*) => {
        $(
            #[doc = $doc]
            pub struct $index;

            impl Index for $index {
                type Of = $table;
                type Key = ObjectRef;
                const NAME: &'static str = "by loser";

                fn keys(
                    _: &<$table as Table>::Key,
                    row: &<$table as Table>::Value,
                ) -> impl IntoIterator<Item = ObjectRef> {
                    row.lost.iter().map(|verdict| verdict.origin.object.clone()).collect::<Vec<_>>()
                }
            }
        )*
    };
}

losers! {
    ListenerLosers of Listeners, "Listeners by the objects that ask for another of the same name.";
    PortLosers of Ports, "Ports by the objects whose listener may not be there.";
    StreamLosers of Streams, "Streams by the objects that wanted them to lead elsewhere.";
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.derived(Listeners).per::<ListenersOfSettings>().per::<ClaimsByListener>();
    pipeline.derived(Ports).per::<ListenersByPort>();
    pipeline.derived(PortSettings).each::<Ports>();
    pipeline.derived(ActiveListeners).each::<Listeners>();
    pipeline.derived(Streams).each::<ActiveListeners>();
    pipeline.index::<StreamsByListener>().index::<UdpTargets>();
    pipeline.index::<PlaintextPorts>();
    pipeline.index::<ListenerLosers>().index::<PortLosers>().index::<StreamLosers>();
}
