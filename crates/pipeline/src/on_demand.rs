//! On-demand certificates: which TLS hosts have them, and which of their server names a listener lists.
//!
//! In: the TLS hosts of a listener. Out: for each whether it joins the on-demand chain of its settings, and the server names
//! that must lead there. A listener has one on-demand chain that takes every name which no other chain lists, so that a
//! host that comes or goes leaves the listener alone. Its hosts below a wildcard of another chain are listed: else the wildcard
//! would take them. Where there is a fallback certificate, unlisted names are for that one, and all names are listed.

use crate::{
    certificates::Certificates as CertificateTable,
    hosts::{Groups, GroupsByListener, TlsHosts},
    packing::wildcards_above,
    settings::Certificates,
    translations::HostKey,
};
use engine::{Derived, Index, Reads, Table};
use model::{CertificateRef, Host, ListenerId, RouteTableId, tls::Termination};
use std::sync::Arc;

/// Whether a host that terminates TLS with this certificate has it on demand. A wildcard has a chain: the names below it are
/// without number, so no cluster can hold them. The fallback certificate is for clients that send no server name.
pub(crate) fn is_on_demand(
    setting: Certificates,
    key: &HostKey,
    certificate: &CertificateRef,
    reads: &mut Reads<'_>,
) -> bool {
    let (listener, Host::Exact(host)) = key else { return false };
    if *listener == ListenerId::fallback() {
        return false;
    }
    match setting {
        Certificates::PerChain => false,
        Certificates::OnDemand => true,
        // Browsers send requests for several hosts on one connection if its certificate is valid for all of them: such
        // certificates keep a chain, whose hosts share connections.
        Certificates::Auto => match certificate {
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

    fn keys(table: &RouteTableId, (): &()) -> impl IntoIterator<Item = ListenerId> {
        table.termination.as_deref().is_some_and(Termination::is_on_demand).then(|| table.listener.clone())
    }
}

/// Whether a chain takes every server name that no chain of its listener lists: the first of those on demand, unless there is
/// a fallback certificate.
pub(crate) fn takes_unlisted(chain: &RouteTableId, reads: &mut Reads<'_>) -> bool {
    reads.probe::<OnDemandGroups>(&chain.listener).next() == Some(chain)
        && reads.probe::<GroupsByListener>(&ListenerId::fallback()).len() == 0
}

/// The hosts with on-demand certificates that lie below a wildcard, with their chain.
pub struct HostsBelowWildcards;

impl Table for HostsBelowWildcards {
    type Key = HostKey;
    type Value = RouteTableId;
    const NAME: &'static str = "on-demand hosts below wildcards";
}

impl Derived for HostsBelowWildcards {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<RouteTableId> {
        let (listener, host) = key;
        let termination = reads.get::<TlsHosts>(key)?.mode.http().filter(|termination| termination.is_on_demand())?;
        let mut above = wildcards_above(host).into_iter().map(|above| (listener.clone(), above));
        let is_below = above.any(|above| reads.get::<TlsHosts>(&above).is_some());
        is_below.then(|| RouteTableId { listener: listener.clone(), termination: Some(Arc::new(termination.clone())) })
    }
}

/// These hosts by their chain.
pub struct BelowWildcardsByChain;

impl Index for BelowWildcardsByChain {
    type Of = HostsBelowWildcards;
    type Key = RouteTableId;
    const NAME: &'static str = "by chain";

    fn keys(_: &HostKey, chain: &RouteTableId) -> impl IntoIterator<Item = RouteTableId> {
        [chain.clone()]
    }
}

/// Declares the table.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.derived(HostsBelowWildcards).each::<TlsHosts>();
    pipeline.index::<BelowWildcardsByChain>().index::<OnDemandGroups>();
}
