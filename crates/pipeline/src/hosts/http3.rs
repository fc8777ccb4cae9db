//! Which hosts of TLS ports are served by HTTP/3 as well: their responses tell clients.
//!
//! In: the HTTP/3 listeners that are in effect, and their TLS hosts. Out: the port at which clients reach the same host by HTTP/3, for a
//! host of a TLS port with the same number and address. A host that is not served there says nothing: a client would try in vain. Nor does
//! one that shows another certificate there, which is somebody else's, as whose certificate a host shows decides about its responses; nor one
//! with routes of an object that has no part in it there: a client would find other routes, and other protections, than here.

use super::TlsHosts;
use crate::{
    ports::{ActiveListener, ActiveListeners},
    translations::{HostKey, TranslationsByHost},
};
use engine::{Index, Reads};
use model::{FleetId, ListenerId, ObjectRef, PortProtocol};
use std::collections::BTreeSet;

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
pub(super) fn port_of(here: &HostKey, active: &ActiveListener, reads: &mut Reads<'_>) -> Option<u16> {
    let (_, host) = here;
    if active.protocol != PortProtocol::Tls {
        return None;
    }
    let shown = reads.get::<TlsHosts>(here)?.certificate.as_ref()?;
    let number = (active.port.fleet().clone(), active.bind.port);
    let listeners: Vec<&ListenerId> = reads.probe::<Http3Listeners>(&number).collect();
    listeners.into_iter().find_map(|listener| {
        let http3 = reads.get::<ActiveListeners>(listener).filter(|http3| http3.bind.overlaps(active.bind))?;
        let there = (listener.clone(), host.clone());
        let tls = reads.get::<TlsHosts>(&there)?;
        let is_shown = tls.mode.http().is_some() && tls.certificate.as_ref() == Some(shown);
        (is_shown && is_alike(here, &there, reads)).then_some(http3.public_port)
    })
}

/// Whether each object with routes of its own for a host contributes to another. Routes that are shared are those of both.
fn is_alike(here: &HostKey, there: &HostKey, reads: &mut Reads<'_>) -> bool {
    let objects: BTreeSet<&ObjectRef> = reads.probe::<TranslationsByHost>(there).collect();
    let contributions = reads.parts::<TranslationsByHost>(here);
    contributions.iter().all(|(object, part)| part.routes.is_empty() || objects.contains(object))
}
