//! Listeners that cannot be told apart, or cannot share a port.
//!
//! Listeners of one port share it if they speak the same protocol and differ in their host. Of a Gateway's own listeners that do
//! not, none is served; a listener of a ListenerSet loses against those before it. TCP and UDP have ports of their own.

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
}

/// The first conflict of a listener with another.
fn first(listeners: &[Listener], listener: &Listener, at: usize) -> Option<Refused> {
    let others = listeners.iter().enumerate().filter(|(other, _)| *other != at);
    others.filter_map(|(_, other)| conflict(listener, other)).next()
}

/// Adds a listener of a ListenerSet behind those that win against it. One of another set that lost wins against nobody.
pub(super) fn add(listeners: &mut Vec<Listener>, mut listener: Listener) {
    if listener.refused.is_none() {
        let others = listeners.iter().filter(|other| other.refused.is_none() || other.owner.kind == kind::GATEWAY);
        listener.refused = others.filter_map(|other| conflict(&listener, other)).next();
    }
    listeners.push(listener);
}

fn conflict(listener: &Listener, other: &Listener) -> Option<Refused> {
    let (own, theirs) = (listener.protocol?.on_port(), other.protocol?.on_port());
    let is_udp = |protocol: PortProtocol| protocol == PortProtocol::Udp;
    let apart = listener.bound != other.bound || is_udp(own) != is_udp(theirs);
    let is_read = |listener: &Listener| listener.refused.as_ref().is_none_or(|refused| refused.is_conflict);
    if apart || !is_read(listener) || !is_read(other) {
        return None;
    }
    let who = || format!("listener {} of {}", other.name, other.owner);
    if own != theirs {
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
        listener.is_served() && listener.protocol.is_some_and(|it| it.on_port() == PortProtocol::Tls)
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
