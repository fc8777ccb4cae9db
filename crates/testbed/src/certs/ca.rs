//! Certificate authorities: roots and what stands between a root and a leaf, and the lists of what they revoked.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, IsCa, Issuer, KeyIdMethod, KeyPair,
    KeyUsagePurpose, RevocationReason, RevokedCertParams, SerialNumber,
};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};

use super::{DAY, KeyType, Leaf, LeafBuilder, params, valid};

/// An authority that signs leaves, other authorities and revocation lists.
#[derive(Clone, Debug)]
pub struct Ca(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    params: CertificateParams,
    key: KeyPair,
    der: CertificateDer<'static>,
    pem: String,
    /// The authorities between a leaf of this one and the root, nearest first.
    between: Vec<(CertificateDer<'static>, String)>,
}

impl Ca {
    /// A root with a P-256 key, valid for ten years. Two roots of one name are different roots: their keys differ.
    pub fn new(name: &str) -> Ca {
        Ca::with_key(name, KeyType::default())
    }

    /// A root with a key of this kind.
    pub fn with_key(name: &str, key: KeyType) -> Ca {
        let (params, key) = (authority(name), key.generate());
        let cert = params.self_signed(&key).expect("the parameters are our own");
        let (der, pem) = (cert.der().clone(), cert.pem());
        Ca(Arc::new(Inner { params, key, der, pem, between: Vec::new() }))
    }

    /// An authority that this one vouches for. Its leaves carry it in their chains.
    pub fn intermediate(&self, name: &str) -> Ca {
        let (params, key) = (authority(name), KeyType::default().generate());
        let cert = params.signed_by(&key, &self.issuer()).expect("the parameters are our own");
        let (der, pem) = (cert.der().clone(), cert.pem());
        let between = [(der.clone(), pem.clone())].into_iter().chain(self.0.between.iter().cloned()).collect();
        Ca(Arc::new(Inner { params, key, der, pem, between }))
    }

    /// The same authority with a new certificate over a new key, as after a rotation: same name, nothing else.
    pub fn rotated(&self) -> Ca {
        let (params, key) = (self.0.params.clone(), KeyType::default().generate());
        let cert = params.self_signed(&key).expect("the parameters are our own");
        let (der, pem) = (cert.der().clone(), cert.pem());
        Ca(Arc::new(Inner { params, key, der, pem, between: Vec::new() }))
    }

    /// A certificate for a server or a client with this DNS name; see [`LeafBuilder`] for the rest.
    pub fn leaf(&self, dns: &str) -> LeafBuilder {
        LeafBuilder::new(self.clone(), dns).dns(dns)
    }

    /// A certificate with this common name and no other names.
    pub fn nameless_leaf(&self, common_name: &str) -> LeafBuilder {
        LeafBuilder::new(self.clone(), common_name)
    }

    /// A list that says which of this authority's certificates are no longer good; it may name none.
    pub fn crl<'a>(&self, revoked: impl IntoIterator<Item = &'a Leaf>) -> Crl {
        revocation_list(&self.issuer(), revoked, SystemTime::now() + 30 * DAY)
    }

    /// A list whose successor should have come yesterday.
    pub fn stale_crl<'a>(&self, revoked: impl IntoIterator<Item = &'a Leaf>) -> Crl {
        revocation_list(&self.issuer(), revoked, SystemTime::now() - DAY)
    }

    /// Its certificate as PEM: what verifiers are given.
    pub fn pem(&self) -> &str {
        &self.0.pem
    }

    /// Its certificate as DER.
    pub fn der(&self) -> &CertificateDer<'static> {
        &self.0.der
    }

    /// A rustls store that trusts this authority alone.
    pub fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der.clone()).expect("an authority's certificate can be trusted");
        Arc::new(roots)
    }

    pub(super) fn issuer(&self) -> Issuer<'_, &KeyPair> {
        Issuer::from_params(&self.0.params, &self.0.key)
    }

    pub(super) fn between(&self) -> &[(CertificateDer<'static>, String)] {
        &self.0.between
    }
}

fn authority(name: &str) -> CertificateParams {
    let mut params = params(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    let now = SystemTime::now();
    valid(&mut params, now - DAY * 400, now + DAY * 3650);
    params
}

/// A list of certificates that their authority has revoked.
#[derive(Clone, Debug)]
pub struct Crl {
    pem: String,
    der: CertificateRevocationListDer<'static>,
}

impl Crl {
    /// As PEM: `crl.pem` of a Secret.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// As DER.
    pub fn der(&self) -> &CertificateRevocationListDer<'static> {
        &self.der
    }
}

fn revocation_list<'a>(
    issuer: &Issuer<'_, &KeyPair>,
    revoked: impl IntoIterator<Item = &'a Leaf>,
    next_update: SystemTime,
) -> Crl {
    let since_epoch = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = |time: SystemTime| rcgen::date_time_ymd(1970, 1, 1) + since_epoch(time);
    let this_update = SystemTime::now() - 2 * DAY;
    let revoked_certs = revoked.into_iter().map(|leaf| RevokedCertParams {
        serial_number: leaf.serial(),
        revocation_time: at(this_update),
        reason_code: Some(RevocationReason::KeyCompromise),
        invalidity_date: None,
    });
    let list = CertificateRevocationListParams {
        this_update: at(this_update),
        next_update: at(next_update),
        // Seconds grow, and that is all a list's number must do.
        crl_number: SerialNumber::from(since_epoch(SystemTime::now()).as_secs()),
        issuing_distribution_point: None,
        revoked_certs: revoked_certs.collect(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let list = list.signed_by(issuer).expect("an authority may sign lists");
    Crl { pem: list.pem().expect("a list can be written as PEM"), der: list.der().clone() }
}
