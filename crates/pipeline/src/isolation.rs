//! Listener isolation: which listener of a port a host belongs to.
//!
//! In: the listeners that are in effect, and the hosts that objects attach to them. Out: for each of these hosts whether it
//! belongs to its listener, and one more host for each listener that is not for every name: its own, which answers where it has
//! no routes ([`OwnHosts`]). A request belongs to the narrowest listener of its port, whether that has routes for it or not. A host
//! asks for its own name and for the wildcards above it, so a listener that comes or goes wakes the hosts that it includes and no
//! others. The answer has no rows of its own: whoever needs it asks, and depends on what it asked for. Whoever attached something to a
//! host that belongs to another listener is told.

use crate::{
    ports::{ActiveListener, ActiveListeners},
    translations::{HostKey, TlsByHost, TranslationsByHost},
};
use engine::{Index, Reads};
use model::{Code, Host, ListenerId, ObjectRef, Origin, PortId, Verdict};
use std::collections::BTreeMap;

/// Listeners of ports that have hosts, by port and host; one for each.
pub struct ListenersByHost;

impl Index for ListenersByHost {
    type Of = ActiveListeners;
    type Key = (PortId, Host);
    const NAME: &'static str = "by port and host";

    fn keys(_: &ListenerId, listener: &ActiveListener) -> impl IntoIterator<Item = (PortId, Host)> {
        listener.protocol.has_hosts().then(|| (listener.port.clone(), listener.host.clone()))
    }
}

/// Listeners by the host that they are for, except for those for every name: what they have no route or certificate for is no
/// wider listener's.
pub struct OwnHosts;

impl Index for OwnHosts {
    type Of = ActiveListeners;
    type Key = HostKey;
    const NAME: &'static str = "by own host";

    fn keys(id: &ListenerId, listener: &ActiveListener) -> impl IntoIterator<Item = HostKey> {
        listener.has_own_host().then(|| (id.clone(), listener.host.clone()))
    }
}

/// Who has a host that objects attach to a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostOwner {
    /// The listener.
    Own,
    /// A narrower listener of its port.
    Narrower(ListenerId),
    /// Not the listener: it is for other hosts.
    Outside,
}

/// Who has a host that objects attach to a listener; nothing while the listener is not in effect.
pub(crate) fn owner((listener, host): &HostKey, reads: &mut Reads<'_>) -> Option<HostOwner> {
    let active = reads.get::<ActiveListeners>(listener)?;
    let mut including = from_narrowest(host);
    let Some(own) = including.iter().position(|it| *it == active.host) else { return Some(HostOwner::Outside) };
    let narrower = including.drain(..own).find_map(|narrower| {
        let key = (active.port.clone(), narrower);
        reads.probe::<ListenersByHost>(&key).next().cloned()
    });
    Some(narrower.map_or(HostOwner::Own, HostOwner::Narrower))
}

/// The hosts of listeners that include a host, the narrowest first; a wildcard has names at any depth.
fn from_narrowest(host: &Host) -> Vec<Host> {
    let every = (*host != Host::Any).then_some(Host::Any);
    std::iter::once(host.clone()).chain(host.wildcards_above()).chain(every).collect()
}

/// A verdict for each object that attaches routes or TLS to a host of a listener that is not the listener's; sorted. Under TLS
/// only where somebody asks for TLS for the host or above it: else nobody was served there anyway.
pub(crate) fn lost(key: &HostKey, owner: &HostOwner, reads: &mut Reads<'_>) -> Vec<Verdict> {
    let (listener, host) = key;
    let why = match owner {
        HostOwner::Own => return Vec::new(),
        HostOwner::Narrower(narrower) => {
            format!("listener {listener}: host {host} belongs to listener {narrower} of the same port")
        }
        HostOwner::Outside => format!("listener {listener} is not for host {host}"),
    };
    let is_tls = reads.get::<ActiveListeners>(listener).is_some_and(|active| active.protocol.is_tls());
    let mut including = from_narrowest(host).into_iter().map(|host| (listener.clone(), host));
    if is_tls && !including.any(|including| reads.probe::<TlsByHost>(&including).len() > 0) {
        return Vec::new();
    }
    let routes = reads.parts::<TranslationsByHost>(key).into_iter().flat_map(|(_, contribution)| contribution.routes);
    let tls = reads.parts::<TlsByHost>(key).into_iter().flat_map(|(_, pieces)| pieces);
    let mut origins: BTreeMap<&ObjectRef, &Origin> = BTreeMap::new();
    for origin in routes.map(|piece| &piece.route.origin).chain(tls.map(|piece| &piece.origin)) {
        let first = origins.entry(&origin.object).or_insert(origin);
        *first = origin.min(first);
    }
    let lost = origins.into_values();
    lost.map(|origin| Verdict::new(Code::HostOfOtherListener, origin.clone(), why.clone())).collect()
}

/// The listener of a port that has TLS for every name, and so for clients that send none.
pub(crate) fn tls_for_every_name<'r>(port: &PortId, reads: &mut Reads<'r>) -> Option<&'r ListenerId> {
    let listener = reads.probe::<ListenersByHost>(&(port.clone(), Host::Any)).next()?;
    (reads.probe::<TlsByHost>(&(listener.clone(), Host::Any)).len() > 0).then_some(listener)
}

/// Whether a host belongs to its listener.
pub(crate) fn is_own(key: &HostKey, reads: &mut Reads<'_>) -> bool {
    owner(key, reads) == Some(HostOwner::Own)
}

/// Declares the index.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.index::<ListenersByHost>();
}
