//! Secrets good and bad.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use rcgen::{CertificateParams, KeyPair as Keys, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, SignatureAlgorithm};
use serde_json::json;

fn made(algorithm: &'static SignatureAlgorithm) -> (String, String) {
    let keys = Keys::generate_for(algorithm).unwrap();
    let certificate = CertificateParams::new(vec!["a.example.com".into()]).unwrap().self_signed(&keys).unwrap();
    (certificate.pem(), keys.serialize_pem())
}

fn secret(kind: &str, chain: &str, key: &str) -> Result<Certificate, Code> {
    let object = json!({
        "apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": { "name": "cert", "namespace": "shop" },
        "stringData": { "tls.crt": chain, "tls.key": key },
    });
    let decoded = kinds::decode_json(kinds::Kind::Secret, object.to_string().as_bytes()).unwrap();
    read(decoded.object.get::<Secret>().unwrap()).map_err(|no| no.code)
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
        (secret(tls, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &key), Code::CertificateNotPem),
        (secret(tls, &chain, "garbage"), Code::PrivateKeyNotPem),
        (secret(tls, &chain, &format!("{key}{other}")), Code::PrivateKeyNotPem),
        (secret(tls, &chain, &other), Code::KeyMismatch),
        (secret(tls, &weak, &weak_key), Code::KeyTooWeak),
    ] {
        assert_eq!(found.map(|_| ()), Err(expected));
    }
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
    assert!(certificate.is_valid_at(at("2020-06-01T00:00:00Z")));
    assert!(!certificate.is_valid_at(at("2021-06-01T00:00:00Z")));
}

#[test]
fn a_bundle_is_cleaned_too() {
    let (chain, _) = made(&PKCS_ECDSA_P256_SHA256);
    let bundle = crate::ca::bundle("Secret a/b", format!("# ours\n{chain}\n{chain}").as_bytes()).unwrap();
    assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), 2);
    assert_eq!(crate::ca::bundle("Secret a/b", b"nothing").unwrap_err().code, Code::CaNotValid);
}
