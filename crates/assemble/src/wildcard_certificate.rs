//! Who is served under a wildcard's certificate: a host below it that has no certificate of its own, by right of the Secret.
//!
//! In: a host of a TLS listener, the TLS host above it, and for each object that has routes for the host whether its namespace may
//! use the Secret. Out: whether these routes join the wildcard's filter chain, and the verdict for those that do not: HTTPS for the
//! host then stays with the wildcard's routes. The right belongs to each object, because objects of several namespaces may have
//! routes for one host.

use crate::tls;
use model::{CertificateRef, Code, Fqdn, Host, ObjectRef, Origin, Verdict, route::Depth, tls::Termination};

/// The certificate of a wildcard above a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WildcardCertificate<'a> {
    /// The wildcard.
    pub wildcard: Host,
    certificate: &'a CertificateRef,
    every_route: bool,
    /// What the hosts of its chain have in common.
    pub termination: &'a Termination,
}

/// What decides whether the objects of a namespace may use the certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right<'a> {
    /// The Secret is theirs.
    Own,
    /// Whoever wrote the TLS host lets every route of the listener use it.
    OfEveryRoute,
    /// The owner of this Secret has to delegate it to them.
    ByDelegation(&'a ObjectRef),
    /// Sesame signed it itself: it belongs to the namespaces of the objects that asked for it.
    BySigning,
}

impl<'a> WildcardCertificate<'a> {
    /// The wildcards whose certificate a host may share, the nearest first. Wildcards are one label deep, except on a listener
    /// that has deep ones: there a host may lie at any depth, be a wildcard itself, and share that of the host for every name.
    pub fn above(host: &Host, is_deep: bool) -> Vec<Host> {
        let (name, nearest) = match host {
            Host::Exact(name) => (name, if is_deep { usize::MAX } else { 1 }),
            Host::Wildcard(name) if is_deep => (name, usize::MAX),
            Host::Wildcard(_) | Host::Any => return Vec::new(),
        };
        let above = std::iter::successors(name.as_str().split_once('.'), |(_, rest)| rest.split_once('.'));
        let above = above.map(|(_, rest)| Fqdn::parse(rest).ok().map(Host::Wildcard)).take(nearest);
        above.flatten().chain(is_deep.then_some(Host::Any)).collect()
    }

    /// The certificate that the nearest wildcard above a host shows; nothing where its connections are passed on, and where the
    /// host lies deeper below it than its certificate is for.
    pub fn of(host: &Host, wildcard: Host, shown: &'a tls::Assembled) -> Option<Self> {
        let is_near = Self::above(host, false).first() == Some(&wildcard) || wildcard == Host::Any;
        if !is_near && shown.covers.depth == Depth::OneLabel {
            return None;
        }
        let (certificate, termination) = (shown.certificate.as_ref()?, shown.mode.http()?);
        Some(Self { wildcard, certificate, every_route: shown.covers.every_route, termination })
    }

    /// What decides whether objects of a namespace may use it.
    pub fn right_of(&self, namespace: &str) -> Right<'a> {
        match self.certificate.secret() {
            _ if self.every_route => Right::OfEveryRoute,
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
    use model::{
        tls::{TlsMode, TlsVersions},
        translation::Covers,
    };

    fn secret() -> ObjectRef {
        ObjectRef::new(kinds::kind::SECRET, "ns", "wildcard")
    }

    fn shown(certificate: CertificateRef) -> tls::Assembled {
        let termination = Termination::new(certificate.clone(), TlsVersions::default());
        let (mode, covers) = (TlsMode::Http(termination), Covers::default());
        tls::Assembled { mode, certificate: Some(certificate), fallback: None, covers, lost: Vec::new() }
    }

    fn wildcard() -> Host {
        Host::parse("*.example.com").unwrap()
    }

    #[test]
    fn an_exact_host_is_one_label_below_its_wildcard() {
        let above = |host: &str| WildcardCertificate::above(&Host::parse(host).unwrap(), false);
        assert_eq!(above("a.example.com"), [wildcard()]);
        assert_eq!(above("a.b.example.com"), [Host::parse("*.b.example.com").unwrap()]);
        assert_eq!((above("*.example.com"), above("")), (vec![], vec![]));
    }

    #[test]
    fn on_a_listener_with_deep_wildcards_every_wildcard_above_counts_that_says_so() {
        let parsed = |hosts: &[&str]| hosts.iter().map(|host| Host::parse(host).unwrap()).collect::<Vec<_>>();
        let above = |host: &str| WildcardCertificate::above(&Host::parse(host).unwrap(), true);
        assert_eq!(above("a.b.example.com"), parsed(&["*.b.example.com", "*.example.com", "*.com", ""]));
        assert_eq!(above("*.b.example.com"), parsed(&["*.example.com", "*.com", ""]));
        let mut shown = shown(CertificateRef::Secret(secret()));
        let host = Host::parse("a.b.example.com").unwrap();
        assert_eq!(WildcardCertificate::of(&host, wildcard(), &shown), None);
        shown.covers = Covers { depth: Depth::AnyLabels, every_route: true };
        let found = WildcardCertificate::of(&host, wildcard(), &shown).unwrap();
        assert_eq!(found.right_of("other"), Right::OfEveryRoute);
    }

    #[test]
    fn the_owner_of_the_secret_decides() {
        let theirs = shown(CertificateRef::Secret(secret()));
        let signed = shown(CertificateRef::SelfSigned(wildcard()));
        let below = Host::parse("a.example.com").unwrap();
        let right = |shown, namespace| WildcardCertificate::of(&below, wildcard(), shown).unwrap().right_of(namespace);
        assert_eq!(right(&theirs, "ns"), Right::Own);
        assert_eq!(right(&theirs, "other"), Right::ByDelegation(&secret()));
        assert_eq!(right(&signed, "ns"), Right::BySigning);
    }

    #[test]
    fn who_may_not_use_it_is_told_at_its_own_route() {
        let (host, object) =
            (Host::parse("a.example.com").unwrap(), ObjectRef::new(kinds::kind::SERVICE, "other", "b"));
        let theirs = shown(CertificateRef::Secret(secret()));
        let certificate = WildcardCertificate::of(&host, wildcard(), &theirs).unwrap();
        let included = ObjectRef::new(kinds::kind::SERVICE, "other", "a").at("spec.routes[0]");
        let own = object.at("spec.rules[0]");
        let verdict = certificate.refused(&host, &object, [&included, &own]);
        assert_eq!((verdict.code, &verdict.origin), (Code::WildcardCertificate, &own));
        assert!(verdict.message.contains("Secret ns/wildcard of *.example.com is not delegated to namespace other"));
        assert_eq!(certificate.refused(&host, &object, []).origin, object.at("spec"));
    }
}
