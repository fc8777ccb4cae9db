//! cert-manager's own controllers, in a program of ours: its commands cannot be downloaded.
//!
//! In: a kubeconfig with all rights, the CRDs of cert-manager and of Gateway API in that cluster, and the DNS server of an
//! [`AcmeServer`](crate::AcmeServer). Out: a [`CertManager`] that issues certificates of ACME, CA and self-signed Issuers. It has no
//! webhook: objects are checked by their CRDs alone. Challenges are answered by pods of the image
//! [`ACME_SOLVER`](crate::image::ready::ACME_SOLVER).

use crate::image::ready;
use crate::process::{Command, Process};
use crate::report::debug_as_report;
use crate::state::StateDir;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

const START: Duration = Duration::from_secs(60);

/// Running controllers.
#[derive(Debug)]
pub struct CertManager {
    process: Process,
    _state: StateDir,
}

impl CertManager {
    /// Starts them, and waits until they watch.
    pub async fn start(kubeconfig: &Path, dns: SocketAddr) -> Result<CertManager, Error> {
        let state = StateDir::new("cert-manager")?;
        let process = Command::new(parts::program("cert-manager")?)
            .flag("kubeconfig", kubeconfig)
            .flag("acme-http01-solver-image", ready::ACME_SOLVER)
            .flag("acme-http01-solver-nameservers", dns.to_string())
            .arg("--enable-gateway-api")
            .start_in(&state)?;
        process.expect_line("controllers started", START).await?;
        Ok(CertManager { process, _state: state })
    }

    /// The process: log, signals.
    pub fn process(&self) -> &Process {
        &self.process
    }
}

/// The controllers are not available, or failed to start.
#[derive(thiserror::Error)]
pub enum Error {
    /// The program is not there.
    #[error(transparent)]
    Part(#[from] parts::Missing),
    /// Its folder could not be made.
    #[error(transparent)]
    State(#[from] crate::state::Error),
    /// The program did not start, or died, or was late.
    #[error(transparent)]
    Process(#[from] crate::process::Error),
}
debug_as_report!(Error);
