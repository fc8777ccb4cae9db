//! Listeners that cannot be told apart, or cannot share a port.
//!
//! Listeners of one port share it if they speak the same protocol and differ in their host. Of a Gateway's own listeners that do
//! not, none is served; a listener of a ListenerSet loses against those before it. TCP and UDP have ports of their own.

use super::{Listener, Refused};
use model::{Host, PortProtocol};

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

/// Adds a listener behind those that win against it.
pub(super) fn add(listeners: &mut Vec<Listener>, mut listener: Listener) {
    if listener.refused.is_none() {
        listener.refused = listeners.iter().filter_map(|other| conflict(&listener, other)).next();
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
    let who = format!("listener {} of {}", other.name, other.owner);
    if own != theirs {
        let why = format!("{who} has port {} for another protocol", other.port);
        return Some(Refused::conflict("ProtocolConflict", "protocol", why));
    }
    let why = match (own, &other.host) {
        (PortProtocol::Tcp | PortProtocol::Udp, _) => {
            let why = format!("{who} has port {}", other.port);
            return Some(Refused::conflict("ProtocolConflict", "port", why));
        }
        (_, host) if *host != listener.host => return None,
        (_, Host::Any) => format!("{who} has port {} for every host", other.port),
        (_, host) => format!("{who} has port {} and host {host}", other.port),
    };
    Some(Refused::conflict("HostnameConflict", "hostname", why))
}

/// Marks TLS listeners of one port that have names in common.
pub(super) fn overlaps(listeners: &mut [Listener]) {
    let is_tls = |listener: &Listener| {
        listener.is_served() && listener.protocol.is_some_and(|it| it.on_port() == PortProtocol::Tls)
    };
    let marks: Vec<bool> = listeners
        .iter()
        .enumerate()
        .map(|(at, one)| {
            let mut others = listeners.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, other)| other);
            is_tls(one)
                && others.any(|other| is_tls(other) && other.bound == one.bound && has_common(&one.host, &other.host))
        })
        .collect();
    for (listener, overlaps) in listeners.iter_mut().zip(marks) {
        listener.overlaps = overlaps;
    }
}

/// Whether a name belongs to both hosts, at any depth below a wildcard.
pub fn has_common(one: &Host, other: &Host) -> bool {
    one == other
        || matches!((one, other), (Host::Any, _) | (_, Host::Any))
        || one.wildcards_above().contains(other)
        || other.wildcards_above().contains(one)
}
