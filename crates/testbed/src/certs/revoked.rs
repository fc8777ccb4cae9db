//! Revocation lists.

use std::time::{SystemTime, UNIX_EPOCH};

use rcgen::{
    CertificateRevocationListParams, Issuer, KeyIdMethod, KeyPair, RevocationReason, RevokedCertParams, SerialNumber,
};
use rustls::pki_types::CertificateRevocationListDer;

use super::{DAY, Leaf};

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

pub(super) fn list<'a>(
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
