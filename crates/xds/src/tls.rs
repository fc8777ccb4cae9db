//! TLS for the server, and for replicas that connect to it: 1.3 only, client certificates required, files read again when they change.
//!
//! In: paths. Out: a configuration per handshake. Before each handshake the files' stamps are compared (three `stat`
//! calls); if one differs, all are read again. That needs no watcher and no timer, follows the symlink swaps of mounted
//! Secrets, and leaves running streams alone. Files that do not fit together, as in the middle of a rotation, leave the
//! last good configuration in place until they change again.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use thiserror::Error;
use tracing::{info, warn};

use crate::identity::SERVER_NAMES;

pub(crate) mod expiry;

use expiry::Expiry;

/// Where the server's certificate, its key and the clients' CA are, all PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The CA that client certificates must come from.
    pub ca: PathBuf,
    /// The server's certificate chain.
    pub certificate: PathBuf,
    /// The key of that certificate.
    pub key: PathBuf,
}

/// Why TLS could not be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {0}")]
    Read(PathBuf, #[source] io::Error),
    /// A file is not PEM, or has not in it what it should.
    #[error("{0} holds no usable PEM")]
    Pem(PathBuf, #[source] pem::Error),
    /// A file has no certificates.
    #[error("{0} holds no certificate")]
    Empty(PathBuf),
    /// A certificate and its key cannot be used, or not together.
    #[error("certificate {certificate} and key {key} cannot be used")]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// A certificate of the CA cannot be used.
    #[error("CA {0} holds a certificate that cannot be used")]
    Root(PathBuf, #[source] rustls::Error),
    /// The CA cannot be used.
    #[error("CA {0} cannot be used")]
    Authority(PathBuf, #[source] VerifierBuilderError),
}

#[derive(PartialEq, Eq, Clone)]
struct Stamp([(u64, i64, i64, u64); 3]);

/// Files and the configuration made from them.
pub struct Tls {
    files: TlsFiles,
    clients: Clients,
    current: Mutex<Current>,
}

/// Which clients TLS lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clients {
    /// Those with a certificate.
    Certificate,
    /// Those without one, too: their requests must have tokens.
    CertificateOrToken,
}

/// What was last read, and from which files.
struct Current {
    stamp: Option<Stamp>,
    config: Arc<ServerConfig>,
    expiry: Expiry,
}

impl Tls {
    /// Reads the files for the first time. Every client needs a certificate.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        Self::load_for(files, Clients::Certificate)
    }

    /// The same, where clients without a certificate are let in, too: [`crate::Config::authenticator`] decides about their tokens.
    pub fn accepting_tokens(files: TlsFiles) -> Result<Self, TlsError> {
        Self::load_for(files, Clients::CertificateOrToken)
    }

    fn load_for(files: TlsFiles, clients: Clients) -> Result<Self, TlsError> {
        let stamp = files.stamp();
        let (config, expiry) = files.read(clients)?;
        Ok(Self { files, clients, current: Mutex::new(Current { stamp, config, expiry }) })
    }

    /// The configuration for the next handshake.
    pub fn config(&self) -> Arc<ServerConfig> {
        let stamp = self.files.stamp();
        let mut current = self.current.lock();
        if current.stamp != stamp {
            match self.files.read(self.clients) {
                Ok((config, expiry)) => {
                    info!(certificate = %self.files.certificate.display(), "read the certificates again");
                    *current = Current { stamp, config, expiry };
                }
                Err(error) => {
                    warn!(error = &error as &dyn std::error::Error, "kept the certificates read earlier");
                    // Not tried again for the same files: a flood of handshakes must not read them over and over.
                    current.stamp = stamp;
                }
            }
        }
        current.config.clone()
    }

    /// When the certificates expire that were last read.
    pub(crate) fn expiry(&self) -> Expiry {
        self.current.lock().expiry
    }

    pub(crate) fn files(&self) -> &TlsFiles {
        &self.files
    }
}

impl TlsFiles {
    fn stamp(&self) -> Option<Stamp> {
        let stat = |path: &Path| {
            let meta = fs::metadata(path).ok()?;
            Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len()))
        };
        Some(Stamp([stat(&self.ca)?, stat(&self.certificate)?, stat(&self.key)?]))
    }

    fn read(&self, clients: Clients) -> Result<(Arc<ServerConfig>, Expiry), TlsError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let (ca, chain) = (certificates(&self.ca)?, certificates(&self.certificate)?);
        let expiry = Expiry::of(&ca, &chain);
        let mut roots = RootCertStore::empty();
        for certificate in ca {
            roots.add(certificate).map_err(|error| TlsError::Root(self.ca.clone(), error))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let verifier = match clients {
            Clients::Certificate => verifier,
            Clients::CertificateOrToken => verifier.allow_unauthenticated(),
        };
        let verifier = verifier.build().map_err(|error| TlsError::Authority(self.ca.clone(), error))?;
        let pair = |source| TlsError::Pair { certificate: self.certificate.clone(), key: self.key.clone(), source };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(pair)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key(&self.key)?)
            .map_err(pair)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        // A resumed session would outlive the certificate that it was made with.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok((Arc::new(config), expiry))
    }
}

impl TlsFiles {
    /// What a replica shows and expects when it connects to another: the server's certificate on both sides.
    pub(crate) fn client(&self) -> Result<ClientConfig, TlsError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.ca)? {
            roots.add(certificate).map_err(|error| TlsError::Root(self.ca.clone(), error))?;
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|error| TlsError::Authority(self.ca.clone(), error))?;
        let pair = |source| TlsError::Pair { certificate: self.certificate.clone(), key: self.key.clone(), source };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(pair)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(EitherName(verifier)))
            .with_client_auth_cert(certificates(&self.certificate)?, key(&self.key)?)
            .map_err(pair)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        config.resumption = Resumption::disabled();
        Ok(config)
    }
}

/// Verifies a server as ever, by whichever of its two names it has.
#[derive(Debug)]
struct EitherName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for EitherName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let mut verified = Err(rustls::Error::General("no name to go by".into()));
        for name in SERVER_NAMES {
            let name = ServerName::try_from(name).map_err(|error| rustls::Error::General(error.to_string()))?;
            verified = self.0.verify_server_cert(end_entity, intermediates, &name, ocsp, now);
            if verified.is_ok() {
                break;
            }
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = fs::read(path).map_err(|error| TlsError::Read(path.to_owned(), error))?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| TlsError::Pem(path.to_owned(), error))?;
    if certificates.is_empty() { Err(TlsError::Empty(path.to_owned())) } else { Ok(certificates) }
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = fs::read(path).map_err(|error| TlsError::Read(path.to_owned(), error))?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| TlsError::Pem(path.to_owned(), error))
}
