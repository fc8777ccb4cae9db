//! Who is served under a wildcard's certificate: a host below it that has no certificate of its own, by right of the Secret.
//!
//! In: a host of a TLS listener, the TLS host above it, and for each object that has routes for the host whether its namespace may
//! use the Secret. Out: whether these routes join the wildcard's filter chain, and the verdict for those that do not: HTTPS for the
//! host then stays with the wildcard's routes. The right belongs to each object, because objects of several namespaces may have
//! routes for one host.

use crate::tls;
use model::{CertificateRef, Code, Fqdn, Host, ObjectRef, Origin, Verdict, tls::Termination};

/// The certificate of a wildcard above a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WildcardCertificate<'a> {
    /// The wildcard.
    pub wildcard: Host,
    certificate: &'a CertificateRef,
    /// What the hosts of its chain have in common.
    pub termination: &'a Termination,
}

/// What decides whether the objects of a namespace may use the certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right<'a> {
    /// The Secret is theirs.
    Own,
    /// The owner of this Secret has to delegate it to them.
    ByDelegation(&'a ObjectRef),
    /// Sesame signed it itself: it belongs to the namespaces of the objects that asked for it.
    BySigning,
}

impl<'a> WildcardCertificate<'a> {
    /// The wildcard whose certificate a host may share. Wildcards are one label deep.
    pub fn above(host: &Host) -> Option<Host> {
        let Host::Exact(name) = host else { return None };
        Fqdn::parse(name.as_str().split_once('.')?.1).ok().map(Host::Wildcard)
    }

    /// The certificate that a wildcard shows; nothing where its connections are passed on.
    pub fn of(wildcard: Host, host: &'a tls::Assembled) -> Option<Self> {
        Some(Self { wildcard, certificate: host.certificate.as_ref()?, termination: host.mode.http()? })
    }

    /// What decides whether objects of a namespace may use it.
    pub fn right_of(&self, namespace: &str) -> Right<'a> {
        match self.certificate.secret() {
            None => Right::BySigning,
            Some(secret) if *secret.namespace == *namespace => Right::Own,
            Some(secret) => Right::ByDelegation(secret),
        }
    }

    /// What an object is told that may not use it, and has routes of these origins for the host.
    pub fn refused<'o>(
        &self,
        host: &Host,
        object: &ObjectRef,
        routes: impl IntoIterator<Item = &'o Origin>,
    ) -> Verdict {
        let Self { wildcard, certificate, .. } = self;
        let namespace = &object.namespace;
        let theirs = match certificate.secret() {
            Some(secret) => format!("{secret} of {wildcard} is not delegated to namespace {namespace}"),
            None => format!("the certificate of {wildcard} was signed for a namespace other than {namespace}"),
        };
        let why = format!(
            "host {host} has no certificate that can be used, and {theirs}: HTTPS requests for it get the routes of {wildcard}"
        );
        let own = routes.into_iter().filter(|origin| origin.object == *object);
        let origin = own.min().cloned().unwrap_or_else(|| object.at("spec"));
        Verdict::new(Code::WildcardCertificate, origin, why)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use model::tls::{TlsMode, TlsVersion};

    fn secret() -> ObjectRef {
        ObjectRef::new(kinds::kind::SECRET, "ns", "wildcard")
    }

    fn shown(certificate: CertificateRef) -> tls::Assembled {
        let termination =
            Termination { certificate: certificate.clone(), lowest: TlsVersion::V1_2, highest: TlsVersion::V1_3 };
        tls::Assembled { mode: TlsMode::Http(termination), certificate: Some(certificate), lost: Vec::new() }
    }

    fn wildcard() -> Host {
        Host::parse("*.example.com").unwrap()
    }

    #[test]
    fn an_exact_host_is_one_label_below_its_wildcard() {
        let above = |host: &str| WildcardCertificate::above(&Host::parse(host).unwrap());
        assert_eq!(above("a.example.com"), Some(wildcard()));
        assert_eq!(above("a.b.example.com"), Some(Host::parse("*.b.example.com").unwrap()));
        assert_eq!((above("*.example.com"), above("")), (None, None));
    }

    #[test]
    fn the_owner_of_the_secret_decides() {
        let theirs = shown(CertificateRef::Secret(secret()));
        let signed = shown(CertificateRef::SelfSigned(wildcard()));
        let right = |host, namespace| WildcardCertificate::of(wildcard(), host).unwrap().right_of(namespace);
        assert_eq!(right(&theirs, "ns"), Right::Own);
        assert_eq!(right(&theirs, "other"), Right::ByDelegation(&secret()));
        assert_eq!(right(&signed, "ns"), Right::BySigning);
    }

    #[test]
    fn who_may_not_use_it_is_told_at_its_own_route() {
        let (host, object) =
            (Host::parse("a.example.com").unwrap(), ObjectRef::new(kinds::kind::SERVICE, "other", "b"));
        let theirs = shown(CertificateRef::Secret(secret()));
        let certificate = WildcardCertificate::of(wildcard(), &theirs).unwrap();
        let included = ObjectRef::new(kinds::kind::SERVICE, "other", "a").at("spec.routes[0]");
        let own = object.at("spec.rules[0]");
        let verdict = certificate.refused(&host, &object, [&included, &own]);
        assert_eq!((verdict.code, &verdict.origin), (Code::WildcardCertificate, &own));
        assert!(verdict.message.contains("Secret ns/wildcard of *.example.com is not delegated to namespace other"));
        assert_eq!(certificate.refused(&host, &object, []).origin, object.at("spec"));
    }
}
