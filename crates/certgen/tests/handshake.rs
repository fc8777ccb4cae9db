//! A set works in earnest: both sides authenticate, and others are refused.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use certgen::{Certificates, Pair, Request};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

fn set() -> Certificates {
    Certificates::issue(&Request {
        namespace: "gateways".to_owned(),
        fleet: None,
        lifetime: Duration::from_secs(3600),
        now: SystemTime::now(),
    })
    .unwrap()
}

fn roots(ca: &str) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
    Arc::new(roots)
}

fn identity(pair: &Pair) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
    (vec![certificate], PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap())
}

/// A handshake over memory: the server with one identity, the client with another, each with its CA.
fn handshake(server_ca: &str, server: &Pair, client_ca: &str, client: &Pair, name: &str) -> Result<(), rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots(server_ca), provider.clone()).build().unwrap();
    let (chain, key) = identity(server);
    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    let (chain, key) = identity(client);
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots(client_ca))
        .with_client_auth_cert(chain, key)?;
    let mut server = ServerConnection::new(Arc::new(server))?;
    let mut client = ClientConnection::new(Arc::new(client), ServerName::try_from(name.to_owned()).unwrap())?;
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets()?;
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut wire.as_slice()).unwrap();
        client.process_new_packets()?;
    }
    Ok(())
}

#[test]
fn server_and_envoy_accept_each_other_under_every_name() {
    let set = set();
    for name in ["sesame", "sesame.gateways", "sesame.gateways.svc.cluster.local", "contour", "contour.gateways.svc"] {
        handshake(&set.ca, &set.server, &set.ca, &set.envoy, name).unwrap();
    }
}

#[test]
fn certificates_of_another_set_are_refused_by_either_side() {
    let (ours, theirs) = (set(), set());
    handshake(&ours.ca, &ours.server, &ours.ca, &theirs.envoy, "sesame").unwrap_err();
    handshake(&ours.ca, &theirs.server, &ours.ca, &ours.envoy, "sesame").unwrap_err();
}

#[test]
fn an_envoy_cannot_serve_in_a_servers_place() {
    let set = set();
    handshake(&set.ca, &set.envoy, &set.ca, &set.envoy, "envoy").unwrap_err();
}

#[test]
fn servers_connect_to_each_other() {
    let set = set();
    handshake(&set.ca, &set.server, &set.ca, &set.server, "sesame").unwrap();
}

#[test]
fn a_name_that_is_not_the_servers_is_refused() {
    let set = set();
    handshake(&set.ca, &set.server, &set.ca, &set.envoy, "sesame.elsewhere").unwrap_err();
}
