//! What [`assemble::wildcard_certificate`] needs to know of a host, read through the engine, so that a delegation that comes or
//! goes is a change of the hosts that it is about, and of no others.

use crate::{
    certificates,
    hosts::TlsHosts,
    translations::{HostKey, TlsByHost},
};
use assemble::wildcard_certificate::{Right, WildcardCertificate};
use engine::Reads;
use model::ListenerId;

/// The certificate of a wildcard that a client of the host is shown; nothing in plaintext, for a host with a certificate of its own,
/// and where the connections of the wildcard are passed on.
pub(crate) fn for_host<'r>((listener, host): &HostKey, reads: &mut Reads<'r>) -> Option<WildcardCertificate<'r>> {
    if *listener == ListenerId::http() {
        return None;
    }
    let wildcard = WildcardCertificate::above(host)?;
    if reads.get::<TlsHosts>(&(listener.clone(), host.clone())).is_some() {
        return None;
    }
    let shown = reads.get::<TlsHosts>(&(listener.clone(), wildcard.clone()))?;
    WildcardCertificate::of(wildcard, shown)
}

/// Whether objects of a namespace may use it on a listener.
pub(crate) fn is_usable_from(
    found: &WildcardCertificate<'_>,
    listener: &ListenerId,
    namespace: &str,
    reads: &mut Reads<'_>,
) -> bool {
    match found.right_of(namespace) {
        Right::Own => true,
        Right::ByDelegation(secret) => certificates::is_delegated(secret, namespace, reads),
        Right::BySigning => {
            let owners = &(listener.clone(), found.wildcard.clone());
            reads.probe::<TlsByHost>(owners).any(|owner| *owner.namespace == *namespace)
        }
    }
}
