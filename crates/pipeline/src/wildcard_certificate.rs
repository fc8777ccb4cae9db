//! Who is served under a wildcard's certificate: a host below it that has no certificate of its own, by right of the Secret.
//!
//! In: a host of a TLS listener, and the namespaces of the objects that have routes for it. Out: whether their routes join the
//! wildcard's filter chain, and the verdict for those that do not: HTTPS for the host then stays with the wildcard's routes. The
//! right belongs to each object, because objects of several namespaces may have routes for one host. It is read through the
//! engine, so that a delegation that comes or goes is a change of the hosts that it is about, and of no others.

use crate::{
    certificates,
    hosts::TlsHosts,
    translations::{HostKey, TlsByHost},
};
use engine::Reads;
use model::{
    Code, Fqdn, Host, ListenerId, ObjectRef, Route, SecretId, Verdict,
    tls::{SELF_SIGNED, Termination},
};
use std::sync::Arc;

/// The certificate of a wildcard above a host.
pub(crate) struct WildcardCertificate<'r> {
    wildcard: HostKey,
    certificate: &'r SecretId,
    /// What the hosts of its chain have in common.
    pub termination: &'r Termination,
}

impl<'r> WildcardCertificate<'r> {
    /// The one that a client of the host is shown; nothing in the clear, for a host with a certificate of its own, and where no
    /// wildcard has requests looked at. Wildcards are one label deep.
    pub fn for_host(key: &HostKey, reads: &mut Reads<'r>) -> Option<Self> {
        let (listener, host) = key;
        if *listener == ListenerId::http() {
            return None;
        }
        let Host::Exact(name) = host else { return None };
        let above = Fqdn::parse(name.as_str().split_once('.')?.1).ok()?;
        if reads.get::<TlsHosts>(key).is_some() {
            return None;
        }
        let wildcard = (listener.clone(), Host::Wildcard(above));
        let found = reads.get::<TlsHosts>(&wildcard)?;
        Some(Self { certificate: found.certificate.as_ref()?, termination: found.mode.http()?, wildcard })
    }

    /// Whether objects of a namespace may use it: the Secret is in their namespace or delegated to it. A certificate that we
    /// signed ourselves belongs to those who asked for it.
    pub fn is_usable_from(&self, namespace: &str, reads: &mut Reads<'r>) -> bool {
        if self.is_self_signed() {
            return reads.probe::<TlsByHost>(&self.wildcard).any(|owner| *owner.namespace == *namespace);
        }
        *self.certificate.namespace == *namespace || certificates::is_delegated(self.certificate, namespace, reads)
    }

    fn is_self_signed(&self) -> bool {
        *self.certificate.namespace == *SELF_SIGNED
    }

    /// What an object is told that may not use it, and has these routes for the host.
    pub fn refused(&self, host: &Host, object: &ObjectRef, routes: &[Arc<Route>]) -> Verdict {
        let Self { wildcard: (_, wildcard), certificate, .. } = self;
        let namespace = &object.namespace;
        let theirs = if self.is_self_signed() {
            format!("the certificate of {wildcard} was signed for a namespace other than {namespace}")
        } else {
            format!("Secret {certificate} of {wildcard} is not delegated to namespace {namespace}")
        };
        let why = format!(
            "host {host} has no certificate that can be used, and {theirs}: HTTPS requests for it get the routes of {wildcard}"
        );
        let own = routes.iter().map(|route| &route.origin).filter(|origin| origin.object == *object);
        let origin = own.min().cloned().unwrap_or_else(|| object.at("spec"));
        Verdict::new(Code::WildcardCertificate, origin, why)
    }
}
