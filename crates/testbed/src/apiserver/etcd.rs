//! Etcd, as fast as it goes: it forgets its data when the machine loses power, and keeps it over its own restarts.

use std::net::IpAddr;
use std::time::Duration;

use super::Error;
use crate::process::{Command, Process};
use crate::state::StateDir;

/// A running etcd.
#[derive(Debug)]
pub struct Etcd(Process);

/// Where clients reach the etcd of `address`.
pub fn url(address: IpAddr) -> String {
    format!("http://{address}:2379")
}

impl Etcd {
    /// Starts it; certificates can be made until it answers.
    pub fn start(address: IpAddr, state: &StateDir) -> Result<Etcd, Error> {
        let peers = format!("http://{address}:2380");
        let process = Command::new(parts::program("etcd")?)
            .flag("name", "etcd")
            .flag("data-dir", state.path().join("etcd"))
            .arg("--unsafe-no-fsync")
            .flag("listen-client-urls", url(address))
            .flag("advertise-client-urls", url(address))
            .flag("listen-peer-urls", &peers)
            .flag("initial-advertise-peer-urls", &peers)
            .flag("initial-cluster", format!("etcd={peers}"))
            .flag("log-level", "warn")
            .start_in(state)?;
        Ok(Etcd(process))
    }

    /// Waits until it answers.
    pub async fn until_ready(&self, address: IpAddr, limit: Duration) -> Result<(), Error> {
        self.0.expect_http((address, 2379).into(), "/health", limit).await?;
        Ok(())
    }

    pub fn process(&self) -> &Process {
        &self.0
    }
}
