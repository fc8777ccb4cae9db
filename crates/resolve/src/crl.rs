//! Certificate revocation lists: which client certificates are not good any more.
//!
//! In: a Secret. Out: the lists in it, when they are in effect, and whose they are. A CA without a list, or with one that is out
//! of date, has its certificates refused, all of them: see [`uncovered`] and [`RevocationLists::validity`].

use crate::{
    Rejection,
    certificate::{
        Validity, pem,
        x509::{self, crl::Unsupported},
    },
};
use kinds::Secret;
use model::Code;
use std::sync::Arc;
use x509_parser::{
    certificate::X509Certificate, prelude::FromDer, revocation_list::CertificateRevocationList, x509::X509Name,
};

/// The entry of a Secret that holds the lists.
pub const ENTRY: &str = "crl.pem";

/// The largest entry that is read: 1 MiB, as with Contour.
const LARGEST: usize = 1 << 20;

/// A list is reported before its successor is due: when a fifth of its time is left, at most so many seconds.
const LONGEST_NOTICE: i64 = 7 * 24 * 3600;

/// The lists of some CAs, one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationLists {
    /// The lists, clean, PEM.
    pub pem: Arc<str>,
    /// When all of them are in effect.
    pub validity: Validity,
    /// The names of their CAs, DER; sorted.
    issuers: Vec<Box<[u8]>>,
}

/// The lists in a Secret.
pub fn read(secret: &Secret) -> Result<RevocationLists, Rejection> {
    let name = format!("Secret {}/{}", secret.meta.namespace, secret.meta.name);
    let reject = |code, why: String| Rejection::new(code, format!("{name}: {why}"));
    let text = match secret.get(ENTRY) {
        Ok(Some(content)) if !content.is_empty() => content,
        Ok(_) => return Err(reject(Code::SecretKeyMissing, format!("{ENTRY} is missing"))),
        Err(fault) => return Err(reject(Code::SecretKeyMissing, fault.to_string())),
    };
    let not_valid = |why: String| reject(Code::CrlNotValid, why);
    if text.len() > LARGEST {
        return Err(not_valid(format!("{ENTRY} has {} bytes; the limit is {LARGEST}", text.len())));
    }
    let lists = pem::revocation_lists(text).map_err(|why| not_valid(format!("{ENTRY} {why}")))?;
    if lists.is_empty() {
        return Err(not_valid(format!("{ENTRY} contains no `X509 CRL` block")));
    }
    let mut validity = Validity { not_before: i64::MIN, not_after: i64::MAX, notice: None };
    let mut issuers = Vec::with_capacity(lists.len());
    for (index, list) in lists.iter().enumerate() {
        let unusable = |why: &str| not_valid(format!("CRL {} in {ENTRY} {why}", index + 1));
        match x509::crl::read(list) {
            Some(Ok(())) => {}
            None => return Err(unusable("is not a valid X.509 CRL")),
            Some(Err(Unsupported::Delta)) => return Err(unusable("is a delta CRL; use a complete one")),
            Some(Err(Unsupported::Scope)) => {
                return Err(unusable("has an issuing distribution point that is not supported; use a complete CRL"));
            }
            Some(Err(Unsupported::Critical)) => {
                return Err(unusable("has a critical extension that is not supported"));
            }
        }
        let (_, list) = CertificateRevocationList::from_der(list).map_err(|_| unusable("is not a valid X.509 CRL"))?;
        issuers.push(raw(list.issuer()));
        let begin = list.last_update().timestamp();
        validity.not_before = validity.not_before.max(begin);
        if let Some(end) = list.next_update().map(|end| end.timestamp())
            && end < validity.not_after
        {
            let notice = end.saturating_sub((end.saturating_sub(begin) / 5).clamp(0, LONGEST_NOTICE));
            (validity.not_after, validity.notice) = (end, Some(notice));
        }
    }
    issuers.sort_unstable();
    issuers.dedup();
    Ok(RevocationLists { pem: pem::text("X509 CRL", &lists).into(), validity, issuers })
}

fn raw(name: &X509Name<'_>) -> Box<[u8]> {
    name.as_raw().into()
}

/// The CAs of a bundle for which there is no list: the subjects, in their order. The certificates that they signed are refused.
pub fn uncovered(bundle: &str, lists: &RevocationLists) -> Vec<Box<str>> {
    let certificates = pem::certificates(bundle.as_bytes()).unwrap_or_default();
    let subject = |certificate: &[u8]| {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let subject = certificate.subject();
        let is_covered = lists.issuers.binary_search(&raw(subject)).is_ok();
        (!is_covered).then(|| subject.to_string().into())
    };
    certificates.iter().filter_map(|certificate| subject(certificate)).collect()
}

#[cfg(test)]
mod tests {
    //! Lists good and bad.

    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use rcgen::{
        CertificateParams, CertificateRevocationListParams, CrlDistributionPoint, CrlIssuingDistributionPoint,
        CrlScope, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
    };
    use serde_json::json;

    struct Authority {
        params: CertificateParams,
        keys: KeyPair,
    }

    impl Authority {
        fn new(name: &str) -> Self {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.distinguished_name.push(rcgen::DnType::CommonName, name);
            params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::CrlSign];
            Self { params, keys: KeyPair::generate().unwrap() }
        }

        fn pem(&self) -> String {
            self.params.self_signed(&self.keys).unwrap().pem()
        }

        fn list(&self, change: impl FnOnce(&mut CertificateRevocationListParams)) -> String {
            let mut list = CertificateRevocationListParams {
                this_update: date_time_ymd(2024, 1, 1),
                next_update: date_time_ymd(2024, 1, 11),
                crl_number: SerialNumber::from(1),
                issuing_distribution_point: None,
                revoked_certs: Vec::new(),
                key_identifier_method: KeyIdMethod::Sha256,
            };
            change(&mut list);
            list.signed_by(&Issuer::from_params(&self.params, &self.keys)).unwrap().pem().unwrap()
        }
    }

    fn secret(text: &str) -> Result<RevocationLists, (Code, String)> {
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "crl", "namespace": "shop" },
            "stringData": { "crl.pem": text },
        });
        let decoded = kinds::decode_json(kinds::kind::SECRET, object.to_string().as_bytes()).unwrap();
        read(decoded.object.get::<Secret>().unwrap()).map_err(|rejection| (rejection.code, rejection.why.into()))
    }

    #[test]
    fn a_list_is_read_with_its_dates() {
        let ca = Authority::new("one");
        let revoked = |list: &mut CertificateRevocationListParams| {
            list.revoked_certs = vec![RevokedCertParams {
                serial_number: SerialNumber::from(7),
                revocation_time: date_time_ymd(2024, 1, 1),
                reason_code: Some(rcgen::RevocationReason::KeyCompromise),
                invalidity_date: Some(date_time_ymd(2024, 1, 1)),
            }];
        };
        let found = secret(&format!("ours\n{}", ca.list(revoked))).unwrap();
        let day = 24 * 3600;
        let begin = 1_704_067_200;
        let validity = Validity { not_before: begin, not_after: begin + 10 * day, notice: Some(begin + 8 * day) };
        assert_eq!(found.validity, validity);
        assert_eq!(uncovered(&ca.pem(), &found), []);
    }

    #[test]
    fn the_notice_is_a_week_at_most_and_of_the_list_that_ends_first() {
        let (one, two) = (Authority::new("one"), Authority::new("two"));
        let until =
            |year| move |list: &mut CertificateRevocationListParams| list.next_update = date_time_ymd(year, 1, 1);
        let found = secret(&format!("{}{}", one.list(until(2026)), two.list(until(2025)))).unwrap();
        assert_eq!(found.validity.not_after, 1_735_689_600);
        assert_eq!(found.validity.notice, Some(1_735_689_600 - LONGEST_NOTICE));
    }

    #[test]
    fn cas_without_a_list_are_named() {
        let (one, two) = (Authority::new("one"), Authority::new("two"));
        let found = secret(&one.list(|_| ())).unwrap();
        let bundle = format!("{}{}", one.pem(), two.pem());
        let names = uncovered(&bundle, &found);
        assert!(matches!(&names[..], [name] if name.contains("CN=two")), "{names:?}");
    }

    #[test]
    fn what_cannot_be_used_is_refused_in_words() {
        let ca = Authority::new("one");
        let good = ca.list(|_| ());
        let point = |scope| {
            ca.list(|list| {
                let distribution_point = CrlDistributionPoint { uris: vec!["http://a.example.com/".into()] };
                list.issuing_distribution_point = Some(CrlIssuingDistributionPoint { distribution_point, scope });
            })
        };
        assert!(secret(&point(None)).is_ok());
        assert!(secret(&point(Some(CrlScope::UserCertsOnly))).is_ok());
        for (text, part) in [
            ("garbage".to_owned(), "contains no `X509 CRL` block"),
            (ca.pem(), "contains no `X509 CRL` block"),
            (good.replace("END X509", "END X.509"), "is missing"),
            (format!("{good}{}", pem::text("X509 CRL", &[[0x30, 0]])), "CRL 2 in crl.pem is not a valid X.509 CRL"),
            (format!("{good}{}", " ".repeat(LARGEST)), "the limit is 1048576"),
        ] {
            let (code, why) = secret(&text).unwrap_err();
            assert_eq!(code, Code::CrlNotValid, "{why}");
            assert!(why.contains(part), "{why}");
        }
        assert_eq!(secret("").unwrap_err().0, Code::SecretKeyMissing);
    }

    /// Changes an extension of a list before it is put together again, without a signature that fits.
    #[test]
    fn extensions_that_envoy_would_stumble_over_are_refused() {
        let list = Authority::new("one").list(|_| ());
        let der = pem::revocation_lists(list.as_bytes()).unwrap().remove(0).to_vec();
        let number = [0x06, 0x03, 0x55, 0x1d, 0x14];
        let at = der.windows(number.len()).position(|bytes| bytes == number).unwrap() + number.len() - 1;
        let with = |id: u8| {
            let mut der = der.clone();
            der[at] = id;
            secret(&pem::text("X509 CRL", &[der])).map(|_| ()).map_err(|(_, why)| why)
        };
        assert_eq!(with(0x14), Ok(()));
        assert!(with(0x1b).unwrap_err().contains("delta CRL"));
        assert!(with(0x1c).unwrap_err().contains("issuing distribution point"));
        assert!(with(0x23).unwrap_err().contains("not a valid X.509 CRL"), "two of one type");
    }
}
