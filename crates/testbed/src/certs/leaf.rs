//! Leaves: the certificates that servers and clients present, with their keys; and what people put into Secrets by
//! mistake, with the odd forms that are no mistake.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{
    CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, SanType,
    SerialNumber,
};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::{ClientCertVerifierBuilder, WebPkiClientVerifier};

use super::{Ca, Crl, DAY, KeyType, params, valid};

/// A leaf to be made: good for servers and clients, with a P-256 key, for a year from now, unless told otherwise.
#[derive(Clone, Debug)]
pub struct LeafBuilder {
    ca: Ca,
    params: CertificateParams,
    key: KeyType,
}

impl LeafBuilder {
    pub(super) fn new(ca: Ca, common_name: &str) -> LeafBuilder {
        let mut params = params(common_name);
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        LeafBuilder { ca, params, key: KeyType::default() }
    }

    /// One more DNS name; `*.example.com` is fine.
    pub fn dns(self, name: &str) -> LeafBuilder {
        self.san(SanType::DnsName(name.try_into().expect("a DNS name is ASCII")))
    }

    /// One more IP address.
    pub fn ip(self, ip: impl Into<IpAddr>) -> LeafBuilder {
        self.san(SanType::IpAddress(ip.into()))
    }

    /// One more URI, such as `spiffe://sesame/fleet/a/b`.
    pub fn uri(self, uri: &str) -> LeafBuilder {
        self.san(SanType::URI(uri.try_into().expect("a URI is ASCII")))
    }

    fn san(mut self, name: SanType) -> LeafBuilder {
        self.params.subject_alt_names.push(name);
        self
    }

    /// The organisation in the subject.
    pub fn organisation(mut self, name: &str) -> LeafBuilder {
        self.params.distinguished_name.push(DnType::OrganizationName, name);
        self
    }

    /// The kind of key.
    pub fn key(mut self, key: KeyType) -> LeafBuilder {
        self.key = key;
        self
    }

    /// Good only to present as a client.
    pub fn client_only(mut self) -> LeafBuilder {
        self.params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self
    }

    /// Good only to present as a server.
    pub fn server_only(mut self) -> LeafBuilder {
        self.params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self
    }

    /// Only good with an OCSP response in each handshake.
    pub fn must_staple(mut self) -> LeafBuilder {
        // The TLS feature `status_request` (RFC 7633).
        const TLS_FEATURE: [u64; 9] = [1, 3, 6, 1, 5, 5, 7, 1, 24];
        let feature = CustomExtension::from_oid_content(&TLS_FEATURE, vec![0x30, 0x03, 0x02, 0x01, 0x05]);
        self.params.custom_extensions.push(feature);
        self
    }

    /// Its key may agree on keys, but not sign.
    pub fn key_agreement_only(mut self) -> LeafBuilder {
        self.params.key_usages = vec![KeyUsagePurpose::KeyAgreement];
        self
    }

    /// Good from one time to another.
    pub fn valid(mut self, from: SystemTime, until: SystemTime) -> LeafBuilder {
        valid(&mut self.params, from, until);
        self
    }

    /// Good from a minute ago until `lifetime` from now.
    pub fn lifetime(self, lifetime: Duration) -> LeafBuilder {
        let now = SystemTime::now();
        self.valid(now - Duration::from_secs(60), now + lifetime)
    }

    /// Good until yesterday.
    pub fn expired(self) -> LeafBuilder {
        let now = SystemTime::now();
        self.valid(now - 30 * DAY, now - DAY)
    }

    /// Good from tomorrow on.
    pub fn not_yet_valid(self) -> LeafBuilder {
        let now = SystemTime::now();
        self.valid(now + DAY, now + 30 * DAY)
    }

    /// Makes it.
    pub fn make(self) -> Leaf {
        let key = self.key.generate();
        let cert = self.params.signed_by(&key, &self.ca.issuer()).expect("the parameters are our own");
        let mut chain = vec![cert.der().clone()];
        let mut chain_pem = cert.pem();
        for (der, pem) in self.ca.between() {
            chain.push(der.clone());
            chain_pem.push_str(pem);
        }
        let serial = self.params.serial_number.expect("every certificate has a serial number of its own");
        let key_pem = key.serialize_pem();
        Leaf(Arc::new(Inner { chain, cert_pem: cert.pem(), chain_pem, key, key_pem, kind: self.key, serial }))
    }
}

/// A certificate with its key and the authorities between it and its root.
#[derive(Clone, Debug)]
pub struct Leaf(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    chain: Vec<CertificateDer<'static>>,
    cert_pem: String,
    chain_pem: String,
    key: KeyPair,
    key_pem: String,
    kind: KeyType,
    serial: SerialNumber,
}

impl Leaf {
    /// The certificate alone, as PEM.
    pub fn cert_pem(&self) -> &str {
        &self.0.cert_pem
    }

    /// The certificate and what stands between it and its root, as PEM: `tls.crt` of a Secret.
    pub fn chain_pem(&self) -> &str {
        &self.0.chain_pem
    }

    /// The key as PKCS#8 PEM: `tls.key` of a Secret.
    pub fn key_pem(&self) -> &str {
        &self.0.key_pem
    }

    /// The chain as DER, the certificate first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.0.chain
    }

    /// The key as DER.
    pub fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::from_pem_slice(self.0.key_pem.as_bytes()).expect("the key was just made")
    }

    /// A server that presents it, speaks `h2` and `http/1.1`, and asks clients for nothing.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("aws-lc-rs has every version")
            .with_no_client_auth();
        self.finish(config)
    }

    /// A server that presents it, and lets in only clients that `ca` vouches for and none of the lists revokes.
    pub fn server_config_for_clients(&self, ca: &Ca, crls: &[Crl]) -> Arc<ServerConfig> {
        self.server_config_with(ca, crls, |verifier| verifier)
    }

    /// A server that presents it, and asks clients for a certificate that `ca` vouches for, but needs none.
    pub fn server_config_asking(&self, ca: &Ca) -> Arc<ServerConfig> {
        self.server_config_with(ca, &[], ClientCertVerifierBuilder::allow_unauthenticated)
    }

    fn server_config_with(
        &self,
        ca: &Ca,
        crls: &[Crl],
        change: impl FnOnce(ClientCertVerifierBuilder) -> ClientCertVerifierBuilder,
    ) -> Arc<ServerConfig> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let lists: Vec<CertificateRevocationListDer<'static>> = crls.iter().map(|crl| crl.der().clone()).collect();
        let verifier = WebPkiClientVerifier::builder_with_provider(ca.roots(), provider.clone())
            .with_crls(lists)
            .allow_unknown_revocation_status();
        let verifier = change(verifier).build().expect("the authority is a root");
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("aws-lc-rs has every version")
            .with_client_cert_verifier(verifier);
        self.finish(config)
    }

    fn finish(
        &self,
        config: rustls::ConfigBuilder<ServerConfig, rustls::server::WantsServerCert>,
    ) -> Arc<ServerConfig> {
        let mut config =
            config.with_single_cert(self.0.chain.clone(), self.key()).expect("the key is the certificate's own");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Arc::new(config)
    }

    pub(super) fn serial(&self) -> SerialNumber {
        self.0.serial.clone()
    }

    pub(super) fn key_pair(&self) -> &KeyPair {
        &self.0.key
    }

    pub(super) fn kind(&self) -> KeyType {
        self.0.kind
    }
}

/// The curve P-256, as an object identifier in DER.
const P256: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

impl Leaf {
    /// The PEM of a key that is not this certificate's.
    pub fn wrong_key_pem(&self) -> String {
        self.kind().generate().serialize_pem()
    }

    /// A certificate whose PEM breaks off in the middle, as after a bad copy.
    pub fn truncated_pem(&self) -> String {
        let pem = self.cert_pem();
        pem[..pem.len() / 2].to_owned()
    }

    /// PEM that frames something that is no certificate.
    pub fn garbage_pem(&self) -> String {
        pem("CERTIFICATE", b"this is not a certificate")
    }

    /// The key as OpenSSL writes it: an `EC PARAMETERS` block, then the key in its own form. Valid, and tripped over by
    /// readers that take the first block for the key.
    ///
    /// # Panics
    /// When the key is not on P-256.
    pub fn openssl_key_pem(&self) -> String {
        format!("{}{}", pem("EC PARAMETERS", &P256), self.sec1_key_pem())
    }

    /// The key as an `EC PRIVATE KEY` block.
    ///
    /// # Panics
    /// When the key is not on P-256.
    pub fn sec1_key_pem(&self) -> String {
        assert_eq!(self.kind(), KeyType::P256, "only keys on P-256 are written in this form");
        // In PKCS#8 the secret number stands at a fixed place: everything before it has a fixed length.
        let pkcs8 = self.key_pair().serialized_der();
        let secret = &pkcs8[36..68];
        let point = self.key_pair().public_key_raw();
        let mut der = vec![0x30, 0x77, 0x02, 0x01, 0x01, 0x04, 0x20];
        der.extend(secret);
        der.extend([0xa0, 0x0a]);
        der.extend(P256);
        der.extend([0xa1, 0x44, 0x03, 0x42, 0x00]);
        der.extend(point);
        pem("EC PRIVATE KEY", &der)
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64.encode(der);
    let lines: Vec<&str> = text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
