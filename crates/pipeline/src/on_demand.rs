//! On-demand certificates: which TLS hosts have them, and which of their server names a listener lists.
//!
//! In: the TLS hosts of a listener. Out: for each whether it joins the on-demand chain of its settings, and the server names
//! that must lead there. A listener has one on-demand chain that takes every name which no other chain lists, so that a
//! host that comes or goes leaves the listener alone. Its hosts below a wildcard of another chain are listed: else the wildcard
//! would take them. Where there is a fallback certificate or a host for every name, unlisted names are for that one, and all names
//! are listed. Envoy asks for such a certificate by the server name alone, so they are for the listener of the settings; listeners
//! that objects claim, and hosts with several certificates, have chains of their own.

use crate::{
    certificates::Certificates as CertificateTable,
    hosts::{Groups, TlsHosts},
    isolation, partition,
    ports::{ActiveListeners, Ports},
    settings::Certificates,
    translations::HostKey,
};
use engine::{Derived, Index, Reads, Table};
use envoy::{listener::jwt::JwtSlots, name};
use model::{
    CertificateRef, ChainId, Host, ListenerId,
    tls::{Termination, TlsVersion},
};
use std::{cmp::Reverse, sync::Arc};
use xds::{Kind, Ref};

/// Whether a host of the settings' listener that terminates TLS so has its certificate on demand. A wildcard has a chain: the
/// names below it are without number, so no cluster can hold them.
pub(crate) fn is_on_demand(
    setting: Certificates,
    host: &Host,
    termination: &Termination,
    reads: &mut Reads<'_>,
) -> bool {
    let Host::Exact(host) = host else { return false };
    if !termination.additional.is_empty() {
        return false;
    }
    match setting {
        Certificates::PerChain => false,
        Certificates::OnDemand => true,
        // Browsers send requests for several hosts on one connection if its certificate is valid for all of them: such
        // certificates keep a chain, whose hosts share connections.
        Certificates::Auto => match &termination.certificate {
            CertificateRef::SelfSigned(_) | CertificateRef::OnDemand => true,
            CertificateRef::Secret(secret) => match reads.get::<CertificateTable>(secret).map(AsRef::as_ref) {
                Some(Ok(certificate)) => matches!(&*certificate.names, [only] if **only == *host.as_str()),
                _ => false,
            },
        },
    }
}

/// The on-demand chains by listener.
pub struct OnDemandGroups;

impl Index for OnDemandGroups {
    type Of = Groups;
    type Key = ListenerId;
    const NAME: &'static str = "on demand, by listener";

    fn keys(chain: &ChainId, (): &()) -> impl IntoIterator<Item = ListenerId> {
        chain.termination.is_on_demand().then(|| chain.listener.clone())
    }
}

/// The chains of fallback certificates by listener.
pub struct FallbackGroups;

impl Index for FallbackGroups {
    type Of = Groups;
    type Key = ListenerId;
    const NAME: &'static str = "fallback, by listener";

    fn keys(chain: &ChainId, (): &()) -> impl IntoIterator<Item = ListenerId> {
        chain.is_fallback.then(|| chain.listener.clone())
    }
}

/// The chain of each listener that takes every server name which no chain of its port lists: of those on demand the one with the
/// plainest settings, unless there is a fallback certificate or a host for every name. A host with settings of its own does not
/// take the names of all others, which would have to be listed then.
pub struct ChainsForUnlisted;

impl Table for ChainsForUnlisted {
    type Key = ListenerId;
    type Value = ChainId;
    const NAME: &'static str = "chains for unlisted names";
}

impl Derived for ChainsForUnlisted {
    fn compute(&self, listener: &ListenerId, reads: &mut Reads<'_>) -> Option<ChainId> {
        let active = reads.get::<ActiveListeners>(listener)?;
        let port = reads.get::<Ports>(&active.port)?;
        if isolation::tls_for_every_name(&active.port, reads).is_some()
            || port.listeners.iter().any(|(listener, _)| reads.probe::<FallbackGroups>(listener).len() > 0)
        {
            return None;
        }
        let plainness = |chain: &&ChainId| {
            let Termination { clients, parameters, lowest, highest, .. } = &*chain.termination;
            (clients.clone(), parameters.clone(), *lowest < TlsVersion::V1_2, *lowest, Reverse(*highest))
        };
        reads.probe::<OnDemandGroups>(listener).min_by_key(plainness).cloned()
    }
}

/// Whether a chain takes every server name that no chain of its port lists.
pub(crate) fn takes_unlisted(chain: &ChainId, reads: &mut Reads<'_>) -> bool {
    reads.get::<ChainsForUnlisted>(&chain.listener).is_some_and(|it| **it == *chain)
}

/// What a proxy needs before the name of a host leads to its chain: the listener that lists it, and what the chain warms with. Nothing
/// where names that are not listed lead there.
pub(crate) fn listed_by((listener, _): &HostKey, termination: &Termination, reads: &mut Reads<'_>) -> Vec<Ref> {
    let Some(active) = reads.get::<ActiveListeners>(listener) else { return Vec::new() };
    let chain = ChainId { listener: listener.clone(), termination: Arc::new(termination.clone()), is_fallback: false };
    if takes_unlisted(&chain, reads) {
        return Vec::new();
    }
    let trust = termination.clients.as_ref().map(|clients| name::client_trust(&clients.trust));
    let slots = JwtSlots::of_chain(&name::chain(&chain), true).prefix();
    [Ref::To(Kind::Listener, name::port(&active.port).into()), Ref::Under(Kind::Extension, slots.into())]
        .into_iter()
        .chain(trust.map(|trust| Ref::To(Kind::Secret, trust.into())))
        .collect()
}

/// The hosts with on-demand certificates that lie below a wildcard, with their chain.
pub struct HostsBelowWildcards;

impl Table for HostsBelowWildcards {
    type Key = HostKey;
    type Value = ChainId;
    const NAME: &'static str = "on-demand hosts below wildcards";
}

impl Derived for HostsBelowWildcards {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<ChainId> {
        let (listener, host) = key;
        let termination = reads.get::<TlsHosts>(key)?.mode.http().filter(|termination| termination.is_on_demand())?;
        let mut above = host.wildcards_above().into_iter().map(|above| (listener.clone(), above));
        let is_below = above.any(|above| reads.get::<TlsHosts>(&above).is_some());
        let termination = Arc::new(termination.clone());
        is_below.then(|| ChainId { listener: listener.clone(), termination, is_fallback: false })
    }

    fn partition(&self, key: &Self::Key) -> Option<u64> {
        Some(partition::of_host(key))
    }
}

/// These hosts by their chain.
pub struct BelowWildcardsByChain;

impl Index for BelowWildcardsByChain {
    type Of = HostsBelowWildcards;
    type Key = ChainId;
    const NAME: &'static str = "by chain";

    fn keys(_: &HostKey, chain: &ChainId) -> impl IntoIterator<Item = ChainId> {
        [chain.clone()]
    }
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.derived(HostsBelowWildcards).each::<TlsHosts>();
    pipeline.index::<BelowWildcardsByChain>().index::<FallbackGroups>();
    pipeline.derived(ChainsForUnlisted).per::<OnDemandGroups>();
}
