//! Listeners that cannot be told apart, or cannot share a port.
//!
//! Listeners of one port share it if they speak the same protocol and differ in their host. Of a Gateway's own listeners that do
//! not, none is served; a listener of a ListenerSet loses against those before it. TCP and UDP have ports of their own.
//!
//! Two ports may be one port of the proxies, where ports are moved ([`PortShift`](crate::PortShift)). Listeners of both do not conflict in the
//! sense of the API. One of the two ports is not available: clients of one would be served what is written for the other.

use super::{Listener, Refused};
use kinds::kind;
use model::{Host, PortProtocol};
use std::collections::HashMap;

/// Decides between listeners of one object: each that conflicts with another is refused.
pub(super) fn among(listeners: &mut [Listener]) {
    let refused: Vec<_> = (0..listeners.len()).map(|at| first(listeners, &listeners[at], at)).collect();
    for (listener, refused) in listeners.iter_mut().zip(refused) {
        listener.refused = listener.refused.take().or(refused);
    }
    refuse_moved(listeners);
}

/// The first conflict of a listener with another.
fn first(listeners: &[Listener], listener: &Listener, at: usize) -> Option<Refused> {
    let others = listeners.iter().enumerate().filter(|(other, _)| *other != at);
    others.filter_map(|(_, other)| conflict(listener, other)).next()
}

/// Refuses the listeners of one object whose port is moved to one that is in use for another port. A listener whose port is not moved
/// keeps it, and of several that are moved the first has the port.
fn refuse_moved(listeners: &mut [Listener]) {
    let mut order: Vec<usize> = (0..listeners.len()).filter(|at| listeners[*at].has_port()).collect();
    order.sort_by_key(|at| listeners[*at].bound != listeners[*at].port);
    let mut holders: HashMap<(u16, bool), usize> = HashMap::new();
    for at in order {
        let listener = &listeners[at];
        let holder = *holders.entry((listener.bound, is_udp(listener))).or_insert(at);
        let refused = in_use(listener, &listeners[holder]);
        if refused.is_some() {
            listeners[at].refused = refused;
        }
    }
}

/// Adds a listener of a ListenerSet behind those that win against it. One of another set that lost wins against nobody.
pub(super) fn add(listeners: &mut Vec<Listener>, mut listener: Listener) {
    if listener.has_port() {
        let others = listeners.iter().filter(|other| other.has_port() || other.owner.kind == kind::GATEWAY);
        let refused = others.filter_map(|other| conflict(&listener, other).or_else(|| in_use(&listener, other))).next();
        listener.refused = refused.or(listener.refused);
    }
    listeners.push(listener);
}

fn is_udp(listener: &Listener) -> bool {
    listener.protocol.is_some_and(|protocol| protocol.on_port().is_udp())
}

/// Why a listener cannot be bound where another is that has another port.
fn in_use(listener: &Listener, other: &Listener) -> Option<Refused> {
    let is_shared = listener.bound == other.bound && is_udp(listener) == is_udp(other);
    let is_in_use = is_shared && listener.port != other.port && other.has_port();
    is_in_use.then(|| {
        let holder = format!("listener {} of {} has for port {}", other.name, other.owner, other.port);
        let (port, bound) = (listener.port, listener.bound);
        Refused::port_unavailable(format!("port {port} is port {bound} of the proxies, which {holder}"))
    })
}

fn conflict(listener: &Listener, other: &Listener) -> Option<Refused> {
    let (own, theirs) = (listener.protocol?.on_port(), other.protocol?.on_port());
    let apart = listener.port != other.port || own.is_udp() != theirs.is_udp();
    let is_conflict = |listener: &Listener| listener.refused.as_ref().is_some_and(|refused| refused.is_conflict);
    let keeps_host = |listener: &Listener| listener.refused.as_ref().is_some_and(|refused| refused.keeps_host);
    let counts = |listener: &Listener| listener.is_served() || is_conflict(listener) || keeps_host(listener);
    if apart || !counts(listener) || !counts(other) {
        return None;
    }
    let who = || format!("listener {} of {}", other.name, other.owner);
    if own != theirs {
        // One that is refused and has no hostname to keep takes nothing from another protocol.
        let holds = |listener: &Listener| listener.has_port() || is_conflict(listener);
        if !holds(listener) || !holds(other) {
            return None;
        }
        let why = format!("{} has port {} for another protocol", who(), other.port);
        return Some(Refused::conflict("ProtocolConflict", "protocol", why));
    }
    let why = match (own, &other.host) {
        (PortProtocol::Tcp | PortProtocol::Udp, _) => {
            let why = format!("{} has port {}", who(), other.port);
            return Some(Refused::conflict("ProtocolConflict", "port", why));
        }
        (_, host) if *host != listener.host => return None,
        (_, Host::Any) => format!("{} has port {} for every host", who(), other.port),
        (_, host) => format!("{} has port {} and host {host}", who(), other.port),
    };
    Some(Refused::conflict("HostnameConflict", "hostname", why))
}

/// Marks TLS listeners of one port that have names in common: one is for every name, or lies below another.
pub(super) fn overlaps(listeners: &mut [Listener]) {
    let is_tls = |listener: &&Listener| {
        listener.has_port() && listener.protocol.is_some_and(|it| it.on_port() == PortProtocol::Tls)
    };
    /// How many listeners of a port have a host, and how many lie below it.
    #[derive(Default)]
    struct Count {
        on: usize,
        below: usize,
    }
    let above = |host: &Host| {
        let every = (*host != Host::Any).then_some(Host::Any);
        host.wildcards_above().into_iter().chain(every)
    };
    let mut counts: HashMap<(u16, Host), Count> = HashMap::new();
    for listener in listeners.iter().filter(is_tls) {
        counts.entry((listener.bound, listener.host.clone())).or_default().on += 1;
        for host in above(&listener.host) {
            counts.entry((listener.bound, host)).or_default().below += 1;
        }
    }
    let overlapping = |listener: &Listener| {
        let count = |host: Host| counts.get(&(listener.bound, host));
        count(listener.host.clone()).is_some_and(|own| own.on > 1 || own.below > 0)
            || above(&listener.host).any(|host| count(host).is_some_and(|wide| wide.on > 0))
    };
    let marks: Vec<bool> = listeners.iter().map(|listener| is_tls(&listener) && overlapping(listener)).collect();
    for (listener, overlaps) in listeners.iter_mut().zip(marks) {
        listener.overlaps = overlaps;
    }
}
