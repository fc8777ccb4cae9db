//! Which hosts of TLS ports are served by HTTP/3 as well: their responses tell clients.
//!
//! In: the HTTP/3 listeners that are in effect, and their TLS hosts. Out: the port at which clients reach the same host by HTTP/3, for a
//! host of a TLS port with the same number and address. A host that is not served there says nothing: a client would try in vain. Nor does
//! one that shows another certificate there: it is somebody else's, as only some kinds of objects have hosts over HTTP/3, and whose
//! certificate a host shows decides about its responses.

use super::TlsHosts;
use crate::{
    ports::{ActiveListener, ActiveListeners},
    translations::HostKey,
};
use engine::{Index, Reads};
use model::{FleetId, ListenerId, PortProtocol};

/// HTTP/3 listeners by their fleet and the number of their port.
pub struct Http3Listeners;

impl Index for Http3Listeners {
    type Of = ActiveListeners;
    type Key = (FleetId, u16);
    const NAME: &'static str = "HTTP/3 by port number";

    fn keys(id: &ListenerId, listener: &ActiveListener) -> impl IntoIterator<Item = (FleetId, u16)> {
        (listener.protocol == PortProtocol::Quic).then(|| (id.fleet().clone(), listener.bind.port))
    }
}

/// The port at which clients of a listener reach one of its hosts by HTTP/3, if they do.
pub(super) fn port_of((own, host): &HostKey, active: &ActiveListener, reads: &mut Reads<'_>) -> Option<u16> {
    if active.protocol != PortProtocol::Tls {
        return None;
    }
    let shown = reads.get::<TlsHosts>(&(own.clone(), host.clone()))?.certificate.as_ref()?;
    let number = (active.port.fleet().clone(), active.bind.port);
    let listeners: Vec<&ListenerId> = reads.probe::<Http3Listeners>(&number).collect();
    listeners.into_iter().find_map(|listener| {
        let http3 = reads.get::<ActiveListeners>(listener).filter(|http3| http3.bind.overlaps(active.bind))?;
        let tls = reads.get::<TlsHosts>(&(listener.clone(), host.clone()))?;
        tls.mode.http().filter(|_| tls.certificate.as_ref() == Some(shown)).map(|_| http3.public_port)
    })
}
