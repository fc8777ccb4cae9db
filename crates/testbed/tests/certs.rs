//! Certificates in real handshakes: the good ones pass, and each bad one fails for its own reason.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, SystemTime};

use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::{AlertDescription, CertificateError, Error};
use testbed::certs::{Ca, KeyType, Leaf};
use testbed::{Backend, Client};

const NAME: &str = "a.example.com";

/// A backend that presents this certificate, and what a client that trusts `ca` makes of it.
async fn presented(leaf: &Leaf, ca: &Ca) -> Result<Vec<String>, Error> {
    let backend = Backend::named("a").tls(leaf).start().await.unwrap();
    match Client::new(backend.https()).host(NAME).trust(ca).get("/").await {
        Ok(answer) => Ok(answer.tls.unwrap().peer.into_iter().map(|cert| cert.subject).collect()),
        Err(failure) => Err(failure.tls().unwrap_or_else(|| panic!("{failure:?}")).clone()),
    }
}

#[tokio::test]
async fn every_kind_of_key_serves() {
    for key in KeyType::ALL {
        let ca = Ca::with_key("ca", key);
        let leaf = ca.leaf(NAME).key(key).make();
        assert_eq!(presented(&leaf, &ca).await.unwrap(), [format!("CN={NAME}")], "{key:?}");
        assert!(leaf.key_pem().starts_with("-----BEGIN PRIVATE KEY-----"), "{key:?}");
    }
}

#[tokio::test]
async fn a_chain_reaches_its_root() {
    let root = Ca::new("root");
    let leaf = root.intermediate("upper").intermediate("lower").leaf(NAME).make();
    assert_eq!(presented(&leaf, &root).await.unwrap(), [format!("CN={NAME}"), "CN=lower".into(), "CN=upper".into()]);
    assert_eq!(leaf.chain_pem().matches("BEGIN CERTIFICATE").count(), 3);
    assert_eq!(leaf.cert_pem().matches("BEGIN CERTIFICATE").count(), 1);
}

#[tokio::test]
async fn bad_ones_fail_for_their_own_reason() {
    let ca = Ca::new("ca");
    let reason = async |leaf: &Leaf, ca: &Ca| match presented(leaf, ca).await.unwrap_err() {
        Error::InvalidCertificate(reason) => reason,
        other => panic!("{other}"),
    };
    let good = ca.leaf(NAME).make();
    assert!(matches!(reason(&ca.leaf(NAME).expired().make(), &ca).await, CertificateError::ExpiredContext { .. }));
    assert!(matches!(
        reason(&ca.leaf(NAME).not_yet_valid().make(), &ca).await,
        CertificateError::NotValidYetContext { .. }
    ));
    assert!(matches!(
        reason(&ca.leaf("b.example.com").make(), &ca).await,
        CertificateError::NotValidForNameContext { .. }
    ));
    assert_eq!(reason(&good, &Ca::new("another")).await, CertificateError::UnknownIssuer);
    // Of one name, but another authority all the same.
    assert!(matches!(
        reason(&good, &ca.rotated()).await,
        CertificateError::UnknownIssuer | CertificateError::BadSignature
    ));
    let client = ca.leaf(NAME).client_only().make();
    assert!(matches!(reason(&client, &ca).await, CertificateError::InvalidPurposeContext { .. }));
}

#[tokio::test]
async fn names_of_every_kind() {
    let ca = Ca::new("ca");
    let backend_ip = testbed::Net::here().unwrap().address();
    let leaf = ca.leaf("*.example.com").ip(backend_ip).uri("spiffe://example/a").make();
    let backend = Backend::named("a").tls(&leaf).address(backend_ip).start().await.unwrap();
    let client = Client::new(backend.https()).trust(&ca);
    for host in ["x.example.com".to_owned(), backend_ip.to_string()] {
        let answer = client.clone().host(&host).get("/").await.unwrap();
        let sans = &answer.certificate().unwrap().sans;
        assert_eq!(sans, &["DNS:*.example.com".into(), format!("IP:{backend_ip}"), "URI:spiffe://example/a".into()]);
    }
}

#[tokio::test]
async fn a_revoked_client_is_refused_and_the_others_are_not() {
    let ca = Ca::new("ca");
    let (alice, bob) = (ca.nameless_leaf("alice").make(), ca.nameless_leaf("bob").make());
    let server = ca.leaf(NAME).make();
    for list in [ca.crl([&bob]), ca.stale_crl([&bob])] {
        assert!(list.pem().starts_with("-----BEGIN X509 CRL-----"));
        let config = server.server_config_for_clients(&ca, &[list]);
        let backend = Backend::named("a").tls_config(config).start().await.unwrap();
        let client = Client::new(backend.https()).https();
        assert_eq!(client.clone().identity(&alice).get("/").await.unwrap().status, 200);
        let refused = client.identity(&bob).get("/").await.unwrap_err();
        assert_eq!(refused.alert(), Some(AlertDescription::CertificateRevoked), "{refused:?}");
    }
}

#[tokio::test]
async fn a_lifetime_ends_when_it_says() {
    let ca = Ca::new("ca");
    let start = SystemTime::now() - Duration::from_secs(3600);
    let over = ca.leaf(NAME).valid(start, SystemTime::now() - Duration::from_secs(5)).make();
    assert!(presented(&over, &ca).await.is_err());
    let short = ca.leaf(NAME).lifetime(Duration::from_secs(30)).make();
    assert!(presented(&short, &ca).await.is_ok());
}

#[test]
fn odd_and_broken_pem() {
    let leaf = Ca::new("ca").leaf(NAME).make();
    let key = |pem: &str| PrivateKeyDer::from_pem_slice(pem.as_bytes());
    let fits = |pem: &str| {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        rustls::sign::CertifiedKey::from_der(leaf.chain().to_vec(), key(pem).unwrap(), &provider)
    };
    assert!(fits(leaf.key_pem()).is_ok());
    assert!(fits(&leaf.sec1_key_pem()).is_ok());
    assert!(leaf.openssl_key_pem().starts_with("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n"));
    assert!(fits(&leaf.openssl_key_pem()).is_ok());
    assert!(matches!(fits(&leaf.wrong_key_pem()), Err(Error::InconsistentKeys(_))));
    let certificate = |pem: &str| rustls::pki_types::CertificateDer::from_pem_slice(pem.as_bytes());
    assert!(certificate(&leaf.truncated_pem()).is_err());
    let garbage = certificate(&leaf.garbage_pem()).unwrap();
    assert!(rustls::RootCertStore::empty().add(garbage).is_err());
}
