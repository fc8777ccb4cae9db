//! A certificate, its key and a CA in PEM files, and the server that has them.

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use std::{fs, io};

use crate::usable;

/// Where a certificate, its key and the CA of the other side are, all PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PemFiles {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// The key of that certificate.
    pub key: PathBuf,
    /// The CA that certificates of the other side must come from; where this is absent, it needs none.
    pub ca: Option<PathBuf>,
}

/// Which clients a server with a CA lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// Those with a certificate.
    Certificate,
    /// Those without one, too: their requests must have tokens.
    CertificateOrToken,
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
    #[error("CA {0} contains a certificate that cannot be used")]
    Root(PathBuf, #[source] rustls::Error),
    /// The certificate cannot be read.
    #[error("{0} contains a certificate that cannot be read")]
    Unreadable(PathBuf),
    /// The certificate has expired.
    #[error("the certificate in {0} expired on {1}")]
    Expired(PathBuf, String),
    /// The certificate is not valid yet.
    #[error("the certificate in {0} is not valid before {1}")]
    NotYetValid(PathBuf, String),
    /// The certificate has none of the names that clients look for.
    #[error("the certificate in {0} has none of the DNS names that clients verify: {1}")]
    Names(PathBuf, String),
    /// The CA cannot be used.
    #[error("CA {0} cannot be used")]
    Authority(PathBuf, #[source] VerifierBuilderError),
}

impl TlsError {
    /// Whether it is only the time that keeps the certificate from being used: it has expired, or is not valid yet. Its issuer replaces
    /// it, or it becomes valid; any other error is one of whoever wrote the files.
    pub fn is_about_time(&self) -> bool {
        matches!(self, TlsError::Expired(..) | TlsError::NotYetValid(..))
    }
}

impl PemFiles {
    /// All paths.
    pub fn paths(&self) -> Vec<PathBuf> {
        [&self.certificate, &self.key].into_iter().chain(&self.ca).cloned().collect()
    }

    /// The certificate chain.
    pub fn chain(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        certificates(&self.certificate)
    }

    /// The key.
    pub fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        let text = fs::read(&self.key).map_err(|error| TlsError::Read(self.key.clone(), error))?;
        PrivateKeyDer::from_pem_slice(&text).map_err(|error| TlsError::Pem(self.key.clone(), error))
    }

    /// The certificates of the CA; none if there is no CA.
    pub fn ca(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        self.ca.as_deref().map_or(Ok(Vec::new()), certificates)
    }

    /// The same, for those who verify.
    pub fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in self.ca()? {
            roots.add(certificate).map_err(|error| TlsError::Root(self.ca.clone().unwrap_or_default(), error))?;
        }
        Ok(roots)
    }

    /// The certificate and its key do not work.
    pub fn pair_error(&self, source: rustls::Error) -> TlsError {
        TlsError::Pair { certificate: self.certificate.clone(), key: self.key.clone(), source }
    }

    /// What a server presents and expects that speaks these versions and protocols. If clients look for `names`, its certificate must be
    /// valid now and have one of them; otherwise it is not checked. No session is resumed: it would outlive the certificate that it was
    /// made with.
    pub fn server(
        &self,
        names: Option<&[&str]>,
        clients: Clients,
        versions: &[&'static SupportedProtocolVersion],
        alpn: &[&str],
    ) -> Result<ServerConfig, TlsError> {
        let provider = crate::provider();
        let pair = |error| self.pair_error(error);
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_protocol_versions(versions).map_err(pair)?;
        let builder = match &self.ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(self.roots()?), provider);
                let verifier = match clients {
                    Clients::Certificate => verifier,
                    Clients::CertificateOrToken => verifier.allow_unauthenticated(),
                };
                let verifier = verifier.build().map_err(|error| TlsError::Authority(path.clone(), error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let chain = self.chain()?;
        if let (Some(names), Some(certificate)) = (names, chain.first()) {
            usable::check(&self.certificate, certificate, names, SystemTime::now())?;
        }
        let mut config = builder.with_single_cert(chain, self.key()?).map_err(pair)?;
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = fs::read(path).map_err(|error| TlsError::Read(path.to_owned(), error))?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| TlsError::Pem(path.to_owned(), error))?;
    if certificates.is_empty() { Err(TlsError::Empty(path.to_owned())) } else { Ok(certificates) }
}
