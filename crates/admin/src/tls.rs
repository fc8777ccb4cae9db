//! Pages over TLS: a certificate from files, clients with or without certificates, files read again when they change.

use rustls::ServerConfig;
use rustls::version::{TLS12, TLS13};
use std::sync::Arc;
use tls::{Clients, PemFiles, Reloaded, TlsError};

/// Files and the configuration made from them.
pub struct Tls(Reloaded<Arc<ServerConfig>>);

impl Tls {
    /// Reads the files for the first time.
    pub fn load(files: PemFiles) -> Result<Self, TlsError> {
        let paths = files.paths();
        let read =
            move || Ok(Arc::new(files.server(None, Clients::Certificate, &[&TLS13, &TLS12], &["h2", "http/1.1"])?));
        Reloaded::load("metrics", paths, read).map(Self)
    }

    /// The configuration for the next handshake.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.0.get()
    }
}
