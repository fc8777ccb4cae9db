//! A certificate and its key, from a Secret: checked as Envoy will check them, so that Envoy has nothing left to refuse.

pub(crate) mod pem;
pub(crate) mod x509;

use crate::Rejection;
use kinds::{Secret, secret};
use model::{Code, Host, ObjectRef, tls::KeyPair};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use std::fmt;
use x509_parser::{
    prelude::{FromDer, GeneralName, X509Certificate},
    public_key::PublicKey,
};

/// The entries with the chain and with the key.
const ENTRIES: [&str; 2] = ["tls.crt", "tls.key"];
/// The type of the Secrets that Istio writes, and what these entries are called there.
const ISTIO: &str = "istio.io/key-and-cert";
const ISTIO_ENTRIES: [&str; 2] = ["cert-chain.pem", "key.pem"];

/// A certificate that can be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The chain and the key, clean.
    pub pair: KeyPair,
    /// When it is valid.
    pub validity: Validity,
    /// The DNS names that it is for, in lower case, sorted, each once; of one that has none, its common name.
    pub names: Vec<Box<str>>,
}

impl Certificate {
    /// Whether clients accept it for a host. A wildcard stands for one label.
    pub fn covers(&self, host: &Host) -> bool {
        match host {
            Host::Exact(name) => {
                let above = name.as_str().split_once('.').map(|(_, above)| above);
                self.has(name.as_str()) || above.is_some_and(|above| self.has(&format!("*.{above}")))
            }
            Host::Wildcard(name) => self.has(&format!("*.{name}")),
            Host::Any => true,
        }
    }

    fn has(&self, name: &str) -> bool {
        self.names.binary_search_by(|own| (**own).cmp(name)).is_ok()
    }

    /// Why clients of a host refuse it, if they do.
    pub fn not_for(&self, id: &ObjectRef, host: &Host) -> Option<Rejection> {
        if self.covers(host) {
            return None;
        }
        let names = match self.names.iter().take(NAMES).map(|name| &**name).collect::<Vec<_>>() {
            none if none.is_empty() => "no DNS name".to_owned(),
            names => names.join(", "),
        };
        let more = if self.names.len() > NAMES { ", …" } else { "" };
        let why = format!("the certificate in {id} is for {names}{more}, not for {host}");
        Some(Rejection::new(Code::CertificateOtherHost, why))
    }
}

/// How many names of a certificate a message lists.
const NAMES: usize = 5;

/// The longest name that DNS has. A certificate may have longer ones, but no host is called that.
const LONGEST_NAME: usize = 253;

/// When a certificate or a CRL is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Validity {
    /// When it begins.
    pub not_before: i64,
    /// The last second.
    pub not_after: i64,
    /// From when on it is reported that it ends soon, if at all.
    pub notice: Option<i64>,
}

/// What is wrong with a certificate or a CRL at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutOfDate {
    /// It begins later.
    Before(i64),
    /// It ends soon.
    Soon(i64),
    /// It has ended.
    After(i64),
}

impl Validity {
    /// Whether it is out of date at a time.
    pub fn out_of_date(self, now: i64) -> Option<OutOfDate> {
        if now < self.not_before {
            Some(OutOfDate::Before(self.not_before))
        } else if now > self.not_after {
            Some(OutOfDate::After(self.not_after))
        } else {
            self.notice.filter(|&notice| now >= notice).map(|_| OutOfDate::Soon(self.not_after))
        }
    }

    /// When that changes next.
    pub fn next_change(self, now: i64) -> Option<i64> {
        let end = self.not_after.saturating_add(1);
        [self.not_before, end].into_iter().chain(self.notice).filter(|&at| at > now).min()
    }
}

impl fmt::Display for OutOfDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |seconds: i64| {
            jiff::Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |at| at.to_string())
        };
        match self {
            OutOfDate::Before(at) => write!(f, "is not valid before {}", time(*at)),
            OutOfDate::Soon(at) => write!(f, "expires at {}", time(*at)),
            OutOfDate::After(at) => write!(f, "expired at {}", time(*at)),
        }
    }
}

/// Whether a Secret's type is one that may hold a certificate.
pub fn may_hold_one(secret: &Secret) -> bool {
    matches!(secret.secret_type.ok(), Some(None))
        || type_of(secret).is_some_and(|t| t == secret::TLS || t == secret::OPAQUE || t == ISTIO)
}

/// Reads the certificate of a Secret.
pub fn read(secret: &Secret) -> Result<Certificate, Rejection> {
    let name = format!("Secret {}/{}", secret.meta.namespace, secret.meta.name);
    let reject = |code, why: &str| Rejection::new(code, format!("{name}: {why}"));
    if !may_hold_one(secret) {
        return Err(reject(Code::SecretType, &format!("type is {}", type_of(secret).unwrap_or("not readable"))));
    }
    let [chain_entry, key_entry] = if type_of(secret) == Some(ISTIO) { ISTIO_ENTRIES } else { ENTRIES };
    let entry = |key: &str| match secret.get(key) {
        Ok(Some(content)) if !content.is_empty() => Ok(content),
        Ok(_) => Err(reject(Code::SecretKeyMissing, &format!("{key} is missing"))),
        Err(fault) => Err(reject(Code::SecretKeyMissing, &fault.to_string())),
    };
    let chain = pem::certificates(entry(chain_entry)?)
        .map_err(|why| reject(Code::CertificateNotPem, &format!("{chain_entry} {why}")))?;
    let key = pem::private_key(entry(key_entry)?)
        .map_err(|why| reject(Code::PrivateKeyNotPem, &format!("{key_entry} {why}")))?;
    let mut usages = Vec::with_capacity(chain.len());
    for (index, certificate) in chain.iter().enumerate() {
        let unreadable = || {
            let why = format!("certificate {} in {chain_entry} is not valid X.509", index + 1);
            reject(Code::CertificateNotPem, &why)
        };
        usages.push(x509::read(certificate).ok_or_else(unreadable)?);
    }
    let (Some(leaf), Some(usage)) = (chain.first(), usages.first()) else {
        return Err(reject(Code::CertificateNotPem, &format!("{chain_entry} contains no certificate")));
    };
    let (_, leaf) = X509Certificate::from_der(leaf).map_err(|_| {
        reject(Code::CertificateNotPem, &format!("the first certificate in {chain_entry} is not valid X.509"))
    })?;
    strength(&leaf).map_err(|why| reject(Code::KeyTooWeak, &why))?;
    serves(usage, &leaf).map_err(|(code, why)| reject(code, why))?;
    let signer = any_supported_type(&key)
        .map_err(|_| reject(Code::PrivateKeyNotPem, &format!("{key_entry} is not a supported key")))?;
    if signer.public_key().as_deref() != Some(leaf.public_key().raw) {
        let why = format!("{key_entry} does not match the first certificate in {chain_entry}");
        return Err(reject(Code::KeyMismatch, &why));
    }
    Ok(Certificate {
        pair: KeyPair { chain: pem::text("CERTIFICATE", &chain).into(), key: pem::key_text(&key).into() },
        validity: Validity {
            not_before: leaf.validity().not_before.timestamp(),
            not_after: leaf.validity().not_after.timestamp(),
            notice: None,
        },
        names: names(&leaf),
    })
}

fn type_of(secret: &Secret) -> Option<&str> {
    secret.secret_type.ok().and_then(Option::as_deref)
}

/// The DNS names of a leaf, sorted, each once, so that a host is found among thousands. Its common name counts where it has no
/// alternative names at all, as many clients take it.
fn names(leaf: &X509Certificate<'_>) -> Vec<Box<str>> {
    let mut names = written_names(leaf);
    names.retain(|name| !name.is_empty() && name.len() <= LONGEST_NAME);
    names.sort_unstable();
    names.dedup();
    names.shrink_to_fit();
    names
}

fn written_names(leaf: &X509Certificate<'_>) -> Vec<Box<str>> {
    if let Ok(Some(alternatives)) = leaf.subject_alternative_name() {
        let names = alternatives.value.general_names.iter().filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase().into()),
            _ => None,
        });
        return names.collect();
    }
    let common = leaf.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    common.map(|name| name.to_ascii_lowercase().into()).collect()
}

/// Whether Envoy shows a certificate that it can read.
fn serves(usage: &x509::Usage, leaf: &X509Certificate<'_>) -> Result<(), (Code, &'static str)> {
    if !usage.common_name && !usage.server_name {
        return Err((
            Code::CertificateNoName,
            "the leaf certificate has neither a common name nor a DNS name, IP address or URI as subject alternative name",
        ));
    }
    if usage.needs_ocsp {
        return Err((
            Code::CertificateNotServed,
            "the leaf certificate requires OCSP stapling (must-staple), which is not supported",
        ));
    }
    if !usage.signs && matches!(leaf.public_key().parsed(), Ok(PublicKey::EC(_))) {
        return Err((Code::CertificateNotServed, "the key usage of the leaf certificate lacks digitalSignature"));
    }
    Ok(())
}

/// How many bits a number has that is written from its highest byte on.
fn bits(number: &[u8]) -> usize {
    let leading = number.iter().take_while(|byte| **byte == 0).count();
    let rest = &number[leading..];
    rest.first().map_or(0, |first| 8 * rest.len() - first.leading_zeros() as usize)
}

/// What Envoy's TLS library refuses to serve is refused here, where the Secret can be named. Both ends of the range of RSA, and
/// each of the curves, are shown to a real Envoy (`pipeline/tests/packing/certificates.rs`).
fn strength(leaf: &X509Certificate<'_>) -> Result<(), String> {
    match leaf.public_key().parsed() {
        Ok(PublicKey::RSA(key)) => match bits(key.modulus) {
            2048..=8192 => Ok(()),
            bits => Err(format!("the RSA key has {bits} bits")),
        },
        Ok(PublicKey::EC(point)) if matches!(point.key_size(), 256 | 384 | 521 | 528) => Ok(()),
        Ok(PublicKey::EC(point)) => Err(format!("the elliptic curve has {} bits", point.key_size())),
        _ => Err("the key is neither RSA nor ECDSA".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    //! Secrets good and bad.

    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use rcgen::{
        CertificateParams, CustomExtension, KeyPair as Keys, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
        PKCS_ECDSA_P521_SHA512, PKCS_ED25519, SanType, SignatureAlgorithm,
    };
    use serde_json::json;

    fn made(algorithm: &'static SignatureAlgorithm) -> (String, String) {
        let keys = Keys::generate_for(algorithm).unwrap();
        let certificate = CertificateParams::new(vec!["a.example.com".into()]).unwrap().self_signed(&keys).unwrap();
        (certificate.pem(), keys.serialize_pem())
    }

    fn secret(kind: &str, chain: &str, key: &str) -> Result<Certificate, Code> {
        secret_with(kind, &json!({ "tls.crt": chain, "tls.key": key }))
    }

    fn secret_with(kind: &str, entries: &serde_json::Value) -> Result<Certificate, Code> {
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": { "name": "cert", "namespace": "shop" },
            "stringData": entries,
        });
        let decoded = kinds::decode_json(kinds::kind::SECRET, object.to_string().as_bytes()).unwrap();
        read(decoded.object.get::<Secret>().unwrap()).map_err(|rejection| rejection.code)
    }

    #[test]
    fn a_good_pair_is_served_and_cleaned() {
        let (chain, key) = made(&PKCS_ECDSA_P256_SHA256);
        let parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
        let certificate =
            secret("kubernetes.io/tls", &format!("subject=a\n{chain}trailing"), &format!("{parameters}{key}")).unwrap();
        assert_eq!(certificate.pair.chain.replace('\n', ""), chain.replace("\r\n", "").replace('\n', ""));
        assert!(!certificate.pair.key.contains("PARAMETERS"));
        assert_eq!(secret("Opaque", &chain, &key), Ok(secret("kubernetes.io/tls", &chain, &key).unwrap()));
    }

    #[test]
    fn the_entries_of_istio_are_read_in_secrets_of_its_type_alone() {
        let (chain, key) = made(&PKCS_ECDSA_P256_SHA256);
        let (_, other) = made(&PKCS_ECDSA_P256_SHA256);
        let entries = |key: &str| json!({ "cert-chain.pem": chain, "key.pem": key });
        let found = secret_with("istio.io/key-and-cert", &entries(&key));
        assert_eq!(found, Ok(secret("kubernetes.io/tls", &chain, &key).unwrap()));
        for (found, expected) in [
            (secret_with("istio.io/key-and-cert", &entries(&other)), Code::KeyMismatch),
            (secret("istio.io/key-and-cert", &chain, &key), Code::SecretKeyMissing),
            (secret_with("kubernetes.io/tls", &entries(&key)), Code::SecretKeyMissing),
            (secret_with("Opaque", &entries(&key)), Code::SecretKeyMissing),
        ] {
            assert_eq!(found.map(|_| ()), Err(expected));
        }
    }

    #[test]
    fn each_fault_has_its_code() {
        let (chain, key) = made(&PKCS_ECDSA_P256_SHA256);
        let (_, other) = made(&PKCS_ECDSA_P256_SHA256);
        let (weak, weak_key) = made(&PKCS_ED25519);
        let tls = "kubernetes.io/tls";
        for (found, expected) in [
            (secret("helm.sh/release.v1", &chain, &key), Code::SecretType),
            (secret(tls, "", &key), Code::SecretKeyMissing),
            (secret(tls, &chain, ""), Code::SecretKeyMissing),
            (secret(tls, "garbage", &key), Code::CertificateNotPem),
            (
                secret(tls, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &key),
                Code::CertificateNotPem,
            ),
            (secret(tls, &chain, "garbage"), Code::PrivateKeyNotPem),
            (secret(tls, &chain, &format!("{key}{other}")), Code::PrivateKeyNotPem),
            (secret(tls, &chain, &other), Code::KeyMismatch),
            (secret(tls, &weak, &weak_key), Code::KeyTooWeak),
        ] {
            assert_eq!(found.map(|_| ()), Err(expected));
        }
    }

    /// A certificate that is changed before it is signed.
    fn changed(change: impl FnOnce(&mut CertificateParams)) -> Result<Certificate, Code> {
        let keys = Keys::generate().unwrap();
        let mut params = CertificateParams::new(vec!["a.example.com".into()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        change(&mut params);
        secret("Opaque", &params.self_signed(&keys).unwrap().pem(), &keys.serialize_pem())
    }

    /// All of them found by trying: Envoy 1.40 refuses what is refused here.
    #[test]
    fn what_envoy_does_not_serve_is_refused() {
        assert!(changed(|_| ()).is_ok());
        assert!(changed(|params| params.key_usages = vec![KeyUsagePurpose::DigitalSignature]).is_ok());
        let agreement = changed(|params| params.key_usages = vec![KeyUsagePurpose::KeyAgreement]);
        assert_eq!(agreement, Err(Code::CertificateNotServed));
        let feature = |number: u8| {
            let content = vec![0x30, 0x03, 0x02, 0x01, number];
            move |params: &mut CertificateParams| {
                let oid = [1, 3, 6, 1, 5, 5, 7, 1, 24];
                params.custom_extensions = vec![CustomExtension::from_oid_content(&oid, content)];
            }
        };
        assert_eq!(changed(feature(5)), Err(Code::CertificateNotServed));
        assert!(changed(feature(17)).is_ok());
        let names = |names: Vec<SanType>| changed(move |params| params.subject_alt_names = names);
        assert_eq!(names(vec![]), Err(Code::CertificateNoName));
        assert_eq!(names(vec![SanType::Rfc822Name("a@b.c".try_into().unwrap())]), Err(Code::CertificateNoName));
        assert!(names(vec![SanType::URI("spiffe://a/b".try_into().unwrap())]).is_ok());
        assert!(names(vec![SanType::IpAddress([10, 0, 0, 1].into())]).is_ok());
        let (chain, key) = made(&PKCS_ECDSA_P521_SHA512);
        assert!(secret("Opaque", &chain, &key).is_ok());
    }

    #[test]
    fn bits_are_counted_from_the_first_that_is_set() {
        assert_eq!([&[][..], &[0], &[0, 1], &[0x7f, 0xff], &[0, 0x80, 0]].map(bits), [0, 0, 1, 15, 16]);
    }

    /// Each certificate of a chain is read as strictly as the first.
    #[test]
    fn a_chain_is_read_to_its_end() {
        let (chain, key) = made(&PKCS_ECDSA_P256_SHA256);
        let good = pem::certificates(chain.as_bytes()).unwrap().remove(0);
        let broken = |change: fn(&mut Vec<u8>)| {
            let mut der = good.to_vec();
            change(&mut der);
            secret("Opaque", &format!("{chain}{}", pem::text("CERTIFICATE", &[der])), &key).map(|_| ())
        };
        assert_eq!(broken(|_| ()), Ok(()));
        assert_eq!(broken(|der| der.push(0)), Err(Code::CertificateNotPem), "something follows");
        let version = |der: &mut Vec<u8>| {
            let at = der.windows(5).position(|bytes| bytes == [0xa0, 3, 2, 1, 2]).unwrap();
            der[at + 4] = 1;
        };
        assert_eq!(broken(version), Err(Code::CertificateNotPem), "a version that has no extensions");
        let month = |der: &mut Vec<u8>| {
            let at = der.windows(2).position(|bytes| bytes == [0x17, 13]).unwrap();
            der[at + 4..at + 6].copy_from_slice(b"13");
        };
        assert_eq!(broken(month), Err(Code::CertificateNotPem), "the thirteenth month");
    }

    #[test]
    fn expiry_is_known() {
        let keys = Keys::generate().unwrap();
        let mut params = CertificateParams::new(vec!["a.example.com".into()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        let chain = params.self_signed(&keys).unwrap().pem();
        let certificate = secret("Opaque", &chain, &keys.serialize_pem()).unwrap();
        let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_second();
        let (begin, end) = (at("2020-01-01T00:00:00Z"), at("2021-01-01T00:00:00Z"));
        let validity = certificate.validity;
        assert_eq!(validity.out_of_date(begin - 1), Some(OutOfDate::Before(begin)));
        assert_eq!(validity.out_of_date(begin), None);
        assert_eq!(validity.out_of_date(end), None);
        assert_eq!(validity.out_of_date(end + 1), Some(OutOfDate::After(end)));
        let next = [begin - 1, begin, end, end + 1].map(|now| validity.next_change(now));
        assert_eq!(next, [Some(begin), Some(end + 1), Some(end + 1), None]);
        assert_eq!(OutOfDate::After(end).to_string(), "expired at 2021-01-01T00:00:00Z");
    }

    #[test]
    fn a_certificate_is_for_its_names_and_one_label_below_its_wildcards() {
        let keys = Keys::generate().unwrap();
        let names = vec!["a.Example.com".into(), "*.b.example.com".into()];
        let chain = CertificateParams::new(names).unwrap().self_signed(&keys).unwrap().pem();
        let certificate = secret("Opaque", &chain, &keys.serialize_pem()).unwrap();
        let covers = |host: &str| certificate.covers(&Host::parse(host).unwrap());
        for host in ["a.example.com", "x.b.example.com", "*.b.example.com"] {
            assert!(covers(host), "{host}");
        }
        for host in ["example.com", "x.a.example.com", "b.example.com", "x.y.b.example.com", "*.example.com"] {
            assert!(!covers(host), "{host}");
        }
    }

    #[test]
    fn names_are_sorted_and_those_that_no_host_can_have_are_left_out() {
        let keys = Keys::generate().unwrap();
        let made = |names: Vec<String>| {
            let chain = CertificateParams::new(names).unwrap().self_signed(&keys).unwrap().pem();
            secret("Opaque", &chain, &keys.serialize_pem()).unwrap()
        };
        let long = format!("{}example.com", "a.".repeat(500));
        let names = ["z.example.com", "*.example.com", "b.example.com", "Z.example.com", &long, "*.a.example.com", ""];
        let certificate = made(names.map(ToOwned::to_owned).into());
        let names: Vec<&str> = certificate.names.iter().map(|name| &**name).collect();
        assert_eq!(names, ["*.a.example.com", "*.example.com", "b.example.com", "z.example.com"]);
        let not_for = |certificate: &Certificate, host: &str| {
            let rejection =
                certificate.not_for(&ObjectRef::new(kinds::kind::SECRET, "shop", "cert"), &Host::parse(host).unwrap());
            rejection.map(|rejection| rejection.why.to_string())
        };
        for host in ["z.example.com", "c.example.com", "*.example.com", "x.a.example.com", "a.example.com"] {
            assert_eq!(not_for(&certificate, host), None, "{host}");
        }
        let why = "the certificate in Secret shop/cert is for no DNS name, not for example.com";
        assert_eq!(not_for(&made(vec![long]), "example.com").as_deref(), Some(why));
    }

    #[test]
    fn a_bundle_is_cleaned_too() {
        let (chain, _) = made(&PKCS_ECDSA_P256_SHA256);
        let bundle = crate::ca::bundle("Secret a/b", format!("# ours\n{chain}\n{chain}").as_bytes()).unwrap();
        assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), 2);
        assert_eq!(crate::ca::bundle("Secret a/b", b"nothing").unwrap_err().code, Code::CaNotValid);
    }
}
