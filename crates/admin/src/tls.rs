//! Pages over TLS: a certificate from files, clients with or without certificates, files read again when they change.
//!
//! In: paths. Out: a configuration for each handshake. Before each, the stamps of the files are compared; if one differs, all
//! are read again. Files that do not fit together, as in the middle of a rotation, leave the last good ones in effect.

use parking_lot::Mutex;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};
use tracing::{info, warn};

/// Where the certificate of pages, its key and the CA of their clients are, all PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// The key of that certificate.
    pub key: PathBuf,
    /// The CA that client certificates must come from; clients need none where this is absent.
    pub ca: Option<PathBuf>,
}

/// Why files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {0}")]
    Read(PathBuf, #[source] io::Error),
    /// A file is not PEM, or has not in it what it should.
    #[error("{0} contains no usable PEM")]
    Pem(PathBuf, #[source] pem::Error),
    /// A file has no certificates.
    #[error("{0} contains no certificate")]
    Empty(PathBuf),
    /// A certificate and its key cannot be used, or not together.
    #[error("certificate {0} and key {1} cannot be used")]
    Pair(PathBuf, PathBuf, #[source] rustls::Error),
    /// The CA cannot be used.
    #[error("CA {0} cannot be used")]
    Root(PathBuf, #[source] rustls::Error),
    /// The CA cannot be used.
    #[error("CA {0} cannot be used")]
    Authority(PathBuf, #[source] VerifierBuilderError),
}

/// Inode, modification time and size of each file.
type Stamp = Vec<Option<(u64, i64, i64, u64)>>;

/// Files and the configuration made from them.
pub struct Tls {
    files: TlsFiles,
    current: Mutex<(Stamp, Arc<ServerConfig>)>,
}

impl Tls {
    /// Reads the files for the first time.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let stamp = files.stamp();
        let config = files.read()?;
        Ok(Self { files, current: Mutex::new((stamp, config)) })
    }

    /// The configuration for the next handshake.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        let stamp = self.files.stamp();
        let mut current = self.current.lock();
        if current.0 != stamp {
            match self.files.read() {
                Ok(config) => {
                    info!(certificate = %self.files.certificate.display(), "read the certificate of metrics again");
                    current.1 = config;
                }
                Err(error) => {
                    warn!(error = &error as &dyn std::error::Error, "kept the certificate of metrics read earlier");
                }
            }
            // Not tried again for the same files.
            current.0 = stamp;
        }
        current.1.clone()
    }
}

impl TlsFiles {
    fn stamp(&self) -> Stamp {
        let stat = |path: &PathBuf| {
            let meta = fs::metadata(path).ok()?;
            Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len()))
        };
        [&self.certificate, &self.key].into_iter().chain(&self.ca).map(stat).collect()
    }

    fn read(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let pair = |source| TlsError::Pair(self.certificate.clone(), self.key.clone(), source);
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder =
            builder.with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12]).map_err(pair)?;
        let builder = match &self.ca {
            None => builder.with_no_client_auth(),
            Some(ca) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(ca)? {
                    roots.add(certificate).map_err(|error| TlsError::Root(ca.clone(), error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(
                    verifier.build().map_err(|error| TlsError::Authority(ca.clone(), error))?,
                )
            }
        };
        let text = fs::read(&self.key).map_err(|error| TlsError::Read(self.key.clone(), error))?;
        let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| TlsError::Pem(self.key.clone(), error))?;
        let mut config = builder.with_single_cert(certificates(&self.certificate)?, key).map_err(pair)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // A resumed session would outlive the certificate that it was made with.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = fs::read(path).map_err(|error| TlsError::Read(path.to_owned(), error))?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| TlsError::Pem(path.to_owned(), error))?;
    if certificates.is_empty() { Err(TlsError::Empty(path.to_owned())) } else { Ok(certificates) }
}
