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
        let now = SystemTime::now();
        self.issue_between(names, now - Duration::from_secs(60), now + lifetime)
    }

    fn issue_between(&self, names: &[&str], from: SystemTime, until: SystemTime) -> (String, String) {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.subject_alt_names = names
            .iter()
            .map(|name| {
                let text = (*name).try_into().unwrap();
                if name.contains("://") { SanType::URI(text) } else { SanType::DnsName(text) }
            })
            .collect();
        params.not_before = from.into();
        params.not_after = until.into();
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

/// Certificates that no Envoy accepts leave the last good one in place, and a start with one of them fails in words.
#[tokio::test]
async fn a_renewed_certificate_that_no_envoy_accepts_does_not_replace_the_good_one() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let running = secure(&authority, folder.path()).await;
    running.publish(vec![resource(Kind::Listener, "a", "1")], &[]);
    let file = |name: &str| folder.path().join(name);
    let write = |(certificate, key): (String, String)| {
        fs::write(file("tls.crt"), certificate).unwrap();
        fs::write(file("tls.key"), key).unwrap();
    };
    let connect = || running.secure_channel(authority.client(&["envoy"]));
    let is_refused = || crate::handshakes::metrics(&running).contains("\nsesame_xds_certificates_invalid 1\n");
    connect().await.unwrap();
    assert!(!is_refused());

    let now = SystemTime::now();
    let (_, stranger) = authority.issue(&["sesame"], HOUR);
    let cases = [
        ("expired on", authority.issue_between(&["sesame"], now - 2 * HOUR, now - HOUR)),
        ("is not valid before", authority.issue_between(&["sesame"], now + HOUR, now + 2 * HOUR)),
        ("cannot be used", (authority.issue(&["sesame"], HOUR).0, stranger)),
        ("has none of the DNS names that clients verify: sesame, contour", authority.issue(&["example.com"], HOUR)),
    ];
    for (words, pair) in cases {
        write(pair);
        connect().await.unwrap_or_else(|error| panic!("{words}: the last good certificate is gone: {error:?}"));
        assert!(is_refused(), "{words}");
        let files = TlsFiles { ca: file("ca.crt"), certificate: file("tls.crt"), key: file("tls.key") };
        let error = Tls::load(files).map(drop).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("tls.crt"), "{error}");
    }
    // Contour's name will do.
    write(authority.issue(&["contour"], HOUR));
    running.secure_channel(authority.client(&["envoy"]).domain_name("contour")).await.unwrap();
    assert!(!is_refused());
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
