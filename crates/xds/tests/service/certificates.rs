//! Certificates for tests, and their rotation.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use tonic::transport::{Certificate, ClientTlsConfig, Identity};
use xds::{Config, Kind, Security, Tls, TlsFiles};

use crate::client::{DELTA_ADS, Delta, Running, names, node, resource};

/// A certificate authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for DNS names and URIs, valid for so long, and its key.
    pub fn issue(&self, names: &[&str], lifetime: Duration) -> (String, String) {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.subject_alt_names = names
            .iter()
            .map(|name| {
                let text = (*name).try_into().unwrap();
                if name.contains("://") { SanType::URI(text) } else { SanType::DnsName(text) }
            })
            .collect();
        params.not_before = (SystemTime::now() - Duration::from_secs(60)).into();
        params.not_after = (SystemTime::now() + lifetime).into();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// The TLS of a client with such a certificate.
    pub fn client(&self, names: &[&str]) -> ClientTlsConfig {
        let (certificate, key) = self.issue(names, HOUR);
        self.trust().identity(Identity::from_pem(certificate, key))
    }

    /// The TLS of a client without a certificate.
    pub fn trust(&self) -> ClientTlsConfig {
        ClientTlsConfig::new().ca_certificate(Certificate::from_pem(self.pem())).domain_name("sesame")
    }

    /// Writes a server's files.
    pub fn write(&self, folder: &Path) -> TlsFiles {
        let files =
            TlsFiles { ca: folder.join("ca.crt"), certificate: folder.join("tls.crt"), key: folder.join("tls.key") };
        let (certificate, key) = self.issue(&["sesame"], HOUR);
        fs::write(&files.ca, self.pem()).unwrap();
        fs::write(&files.certificate, certificate).unwrap();
        fs::write(&files.key, key).unwrap();
        files
    }
}

pub const HOUR: Duration = Duration::from_secs(3600);

/// A server with TLS from files in that folder.
pub async fn secure(authority: &Authority, folder: &Path) -> Running {
    let tls = Tls::load(authority.write(folder)).unwrap();
    Running::start(Config::default(), Security::Tls(Arc::new(tls))).await
}

#[tokio::test]
async fn new_files_are_used_for_new_connections_and_old_streams_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (Authority::new(), Authority::new());
    let running = secure(&old, folder.path()).await;
    running.publish(vec![resource(Kind::Listener, "a", "1")], &[]);
    let channel = running.secure_channel(old.client(&["envoy"])).await.unwrap();
    let mut stream = Delta::open(channel, DELTA_ADS).await.unwrap();
    stream.subscribe(Some(node("a", "shared")), Kind::Listener, &[]).await;
    let first = stream.next().await;
    assert!(running.secure_channel(new.client(&["envoy"])).await.is_err(), "another authority's client");

    // Half a rotation: the certificate is there, its key is not. What was read before is used on.
    let (certificate, key) = new.issue(&["sesame"], HOUR);
    fs::write(folder.path().join("tls.crt"), certificate).unwrap();
    running.secure_channel(old.client(&["envoy"])).await.unwrap();
    fs::write(folder.path().join("tls.key"), key).unwrap();
    fs::write(folder.path().join("ca.crt"), new.pem()).unwrap();
    assert!(running.secure_channel(old.client(&["envoy"])).await.is_err(), "the old authority's client");
    let channel = running.secure_channel(new.client(&["envoy"])).await.unwrap();
    let mut second = Delta::open(channel, DELTA_ADS).await.unwrap();
    second.subscribe(Some(node("b", "shared")), Kind::Listener, &[]).await;
    assert_eq!(names(&second.next().await), ["a"]);

    stream.ack(&first).await;
    running.publish(vec![resource(Kind::Listener, "b", "1")], &[]);
    assert_eq!(names(&stream.next().await), ["b"], "the stream that the old certificate opened");
}

#[tokio::test]
async fn a_stream_ends_when_its_certificate_does() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let running = secure(&authority, folder.path()).await;
    running.publish(vec![], &[]);
    let (certificate, key) = authority.issue(&["envoy"], Duration::from_secs(2));
    let tls = authority.trust().identity(Identity::from_pem(certificate, key));
    let mut stream = Delta::open(running.secure_channel(tls).await.unwrap(), DELTA_ADS).await.unwrap();
    stream.subscribe(Some(node("a", "shared")), Kind::Listener, &[]).await;
    assert_eq!(stream.end().await.code(), tonic::Code::Unauthenticated);
}
