//! What [`assemble::wildcard_certificate`] needs to know of a host, read through the engine, so that a delegation that comes or
//! goes is a change of the hosts that it is about, and of no others.

use crate::{
    certificates,
    hosts::{ListenersWithDeepTls, TlsHosts},
    ports::ActiveListener,
    translations::{HostKey, TlsByHost},
};
use assemble::wildcard_certificate::{Right, WildcardCertificate};
use engine::Reads;
use model::ListenerId;

/// The certificate of a wildcard that a client of the host is shown; nothing on a plaintext listener, for a host with a certificate
/// of its own, and where the connections of the wildcard are passed on.
pub(crate) fn for_host<'r>(
    key: &HostKey,
    active: &ActiveListener,
    reads: &mut Reads<'r>,
) -> Option<WildcardCertificate<'r>> {
    let (listener, host) = key;
    if !active.protocol.is_tls() {
        return None;
    }
    let is_deep = reads.get::<ListenersWithDeepTls>(listener).is_some();
    let mut above = WildcardCertificate::above(host, is_deep).into_iter().peekable();
    above.peek()?;
    if reads.get::<TlsHosts>(key).is_some() {
        return None;
    }
    above.find_map(|wildcard| {
        let shown = reads.get::<TlsHosts>(&(listener.clone(), wildcard.clone()))?;
        Some(WildcardCertificate::of(host, wildcard, shown))
    })?
}

/// Whether objects of a namespace may use it on a listener.
pub(crate) fn is_usable_from(
    found: &WildcardCertificate<'_>,
    listener: &ListenerId,
    namespace: &str,
    reads: &mut Reads<'_>,
) -> bool {
    match found.right_of(namespace) {
        Right::Own | Right::OfEveryRoute => true,
        Right::ByDelegation(secret) => certificates::is_delegated(secret, namespace, reads),
        Right::BySigning => {
            let owners = &(listener.clone(), found.wildcard.clone());
            reads.probe::<TlsByHost>(owners).any(|owner| *owner.namespace == *namespace)
        }
    }
}
