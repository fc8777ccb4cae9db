//! What a local Envoy needs on disk: certificates for its connection to us, its bootstrap, its socket and log.
//!
//! All of it is in one temporary folder that nobody else may enter, gone when the program ends. Even on one machine the
//! connection is mutual TLS: other users of it could read the keys otherwise.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use certgen::{Certificates, Request, files};
use envoy::bootstrap::{Bootstrap, CertificateFiles, DnsFamily, Node, Overload, Stats, Tls, XdsServer};
use tempfile::TempDir;
use xds::TlsFiles;

/// Longer than a program on somebody's machine runs.
const LIFETIME: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// The folder.
pub struct EnvoyWorkdir {
    folder: TempDir,
}

impl EnvoyWorkdir {
    /// Makes the folder and the certificates in it.
    pub fn make() -> Result<Self> {
        let folder =
            tempfile::Builder::new().prefix("sesame-run-").tempdir().context("cannot make a temporary folder")?;
        let request =
            Request { namespace: "default".to_owned(), fleet: None, lifetime: LIFETIME, now: SystemTime::now() };
        let certificates = Certificates::issue(&request)?;
        files::write(&certificates, folder.path(), false)?;
        Ok(Self { folder })
    }

    /// The server's side of the connection.
    pub fn server_files(&self) -> TlsFiles {
        TlsFiles {
            ca: self.path("cacert.pem"),
            certificate: self.path("sesamecert.pem"),
            key: self.path("sesamekey.pem"),
        }
    }

    /// Writes the bootstrap of an Envoy that finds us at a port of this machine; gives its path.
    pub fn bootstrap(&self, port: u16) -> Result<PathBuf> {
        let bootstrap = Bootstrap {
            node: Node { id: Some("local".to_owned()), cluster: Some("sesame-run".to_owned()), fleet: None },
            server: XdsServer { host: "127.0.0.1".to_owned(), port, dns_family: DnsFamily::V4, namespace: None },
            tls: Some(Tls::Certificate(CertificateFiles {
                ca: self.path("cacert.pem"),
                certificate: self.path("envoycert.pem"),
                key: self.path("envoykey.pem"),
                resources_dir: None,
            })),
            admin_socket: self.admin_socket(),
            overload: Overload::default(),
            stats: Stats::Lean,
        };
        let path = self.path("bootstrap.json");
        let json = envoy_api::json::to_json(&bootstrap.render().bootstrap)?;
        fs::write(&path, json.to_string()).context("cannot write Envoy's bootstrap")?;
        Ok(path)
    }

    /// The Unix socket of Envoy's admin interface.
    pub fn admin_socket(&self) -> PathBuf {
        self.path("admin.sock")
    }

    /// Where Envoy writes its log.
    pub fn log(&self) -> PathBuf {
        self.path("envoy.log")
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(self.folder.path()).join(name)
    }
}
