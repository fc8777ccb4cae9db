//! How a backend speaks TLS, and what it tells about a session.
//!
//! In: PEM files, a ready rustls configuration, or nothing (then a certificate is made on the spot). Out: an acceptor's
//! configuration, and a [`TlsSeen`] for each session. Unless told to verify clients, the backend asks for a client
//! certificate, takes any and reports it: it is there to tell what a proxy presents, not to judge it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CommonState, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, ServerConnection,
    SignatureScheme,
};

use crate::{CertificateSeen, TlsSeen};

/// What a backend presents and asks for on its TLS ports.
#[derive(Clone, Debug)]
pub struct Tls(Arc<ServerConfig>);

/// Why there is no TLS configuration.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A PEM file cannot be read, or holds nothing of the kind wanted.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rustls::pki_types::pem::Error,
    },
    /// Certificate and key don't fit, or cannot be used.
    #[error("certificate or key: {0}")]
    Rustls(#[from] rustls::Error),
    /// The certificates that clients are to be verified with are of no use.
    #[error("client CA: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// No certificate could be made.
    #[error("making a certificate: {0}")]
    Make(#[from] rcgen::Error),
}

impl Tls {
    /// A certificate that the backend signs itself, for these names. Clients need not present one.
    pub fn self_signed(names: impl IntoIterator<Item = impl Into<String>>) -> Result<Tls, TlsError> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let made = rcgen::generate_simple_self_signed(names)?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Tls::build(vec![made.cert.der().clone()], key.into(), any_client())
    }

    /// A certificate (its chain after it) and its key from PEM files; with `client_ca`, clients must present a
    /// certificate that one of the CAs in that file has signed.
    pub fn from_files(cert: &Path, key: &Path, client_ca: Option<&Path>) -> Result<Tls, TlsError> {
        let verifier = match client_ca {
            None => any_client(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for ca in certificates(path)? {
                    roots.add(ca)?;
                }
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build()?
            }
        };
        let key =
            PrivateKeyDer::from_pem_file(key).map_err(|source| TlsError::File { path: key.to_owned(), source })?;
        Tls::build(certificates(cert)?, key, verifier)
    }

    /// Anything else that rustls can do. ALPN stays as it is there.
    pub fn from_config(config: Arc<ServerConfig>) -> Tls {
        Tls(config)
    }

    /// The configuration, to build on.
    pub fn into_config(self) -> Arc<ServerConfig> {
        self.0
    }

    fn build(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        verifier: Arc<dyn ClientCertVerifier>,
    ) -> Result<Tls, TlsError> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls(Arc::new(config)))
    }

    /// For ports that carry HTTP.
    pub(crate) fn http(&self) -> Arc<ServerConfig> {
        self.0.clone()
    }

    /// For ports that carry bytes: no HTTP protocol is agreed on.
    pub(crate) fn bytes(&self) -> Arc<ServerConfig> {
        let mut config = ServerConfig::clone(&self.0);
        config.alpn_protocols.clear();
        Arc::new(config)
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let file = |source| TlsError::File { path: path.to_owned(), source };
    let all: Vec<_> = CertificateDer::pem_file_iter(path).map_err(file)?.collect::<Result<_, _>>().map_err(file)?;
    if all.is_empty() {
        return Err(file(rustls::pki_types::pem::Error::NoItemsFound));
    }
    Ok(all)
}

/// What the server's end of a session knows.
pub(crate) fn seen(session: &ServerConnection) -> TlsSeen {
    TlsSeen { sni: session.server_name().map(str::to_owned), ..TlsSeen::of(session) }
}

impl TlsSeen {
    /// What either end of a session knows; the server name is left to the caller.
    pub fn of(session: &CommonState) -> TlsSeen {
        let version = session.protocol_version().map(|v| format!("{v:?}").replace('_', "."));
        TlsSeen {
            version: version.unwrap_or_default(),
            cipher: session.negotiated_cipher_suite().map(|s| format!("{:?}", s.suite())).unwrap_or_default(),
            sni: None,
            alpn: session.alpn_protocol().map(|p| String::from_utf8_lossy(p).into_owned()),
            peer: session.peer_certificates().unwrap_or_default().iter().map(|c| CertificateSeen::of(c)).collect(),
        }
    }
}

/// Takes whatever certificate a client presents, or none.
#[derive(Debug)]
struct AnyClient(Arc<CryptoProvider>);

fn any_client() -> Arc<dyn ClientCertVerifier> {
    Arc::new(AnyClient(provider()))
}

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
