//! TLS for the server, and for replicas that connect to it: 1.3 only, client certificates required, files read again when they change.
//!
//! In: paths. Out: a configuration per handshake, which [`tls::Reloaded`] keeps up to date with the files.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};
use tls::{Clients, PemFiles, Reloaded, ServerVerifier, TlsError};

use crate::identity::SERVER_NAMES;

pub(crate) mod expiry;

use expiry::Expiry;

/// The protocol of xDS.
const ALPN: &str = "h2";

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

/// Files and the configuration made from them.
pub struct Tls {
    files: TlsFiles,
    current: Reloaded<(Arc<ServerConfig>, Expiry)>,
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
        let pem = files.pem();
        let read = move || {
            let expiry = Expiry::of(&pem.ca()?, &pem.chain()?);
            Ok((Arc::new(pem.server(Some(&SERVER_NAMES), clients, &[&TLS13], &[ALPN])?), expiry))
        };
        Ok(Self { current: Reloaded::load("the xDS server", files.pem().paths(), read)?, files })
    }

    /// The configuration for the next handshake.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.current.get().0
    }

    /// Whether the files as they are now cannot be used, so that what was read before is used on.
    pub(crate) fn is_refused(&self) -> bool {
        self.current.is_refused()
    }

    /// When the certificates expire that were last read.
    pub(crate) fn expiry(&self) -> Expiry {
        self.current.last().1
    }

    pub(crate) fn files(&self) -> &TlsFiles {
        &self.files
    }
}

impl TlsFiles {
    fn pem(&self) -> PemFiles {
        let Self { ca, certificate, key } = self.clone();
        PemFiles { certificate, key, ca: Some(ca) }
    }

    /// What a replica shows and expects when it connects to another: the server's certificate on both sides.
    pub(crate) fn client(&self) -> Result<ClientConfig, TlsError> {
        let pem = self.pem();
        let pair = |error| pem.pair_error(error);
        let names = SERVER_NAMES.into_iter().map(ServerName::try_from).collect::<Result<_, _>>();
        let names = names.map_err(|error| pair(rustls::Error::General(error.to_string())))?;
        let verifier = ServerVerifier::any_name(names, pem.roots()?);
        let verifier = verifier.map_err(|error| TlsError::Authority(self.ca.clone(), error))?;
        let mut config = ClientConfig::builder_with_provider(tls::provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(pair)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_auth_cert(pem.chain()?, pem.key()?)
            .map_err(pair)?;
        config.alpn_protocols = vec![ALPN.into()];
        config.resumption = Resumption::disabled();
        Ok(config)
    }
}
