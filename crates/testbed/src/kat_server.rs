//! Emissary's test server as an authorization server that is not ours: Envoy's gRPC API in plaintext.
//!
//! It does what the client's request asks for: `kat-req-extauth-requested-status` is the status that it answers with, 200 lets the
//! request through. It has a port of all addresses, so there is one in a network namespace.

use crate::certs::Ca;
use crate::net::Net;
use crate::process::{Command, Process};
use crate::report::debug_as_report;
use crate::state::StateDir;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

const START: Duration = Duration::from_secs(30);
const PORT: u16 = 18_080;
const SECURE_PORT: u16 = 18_443;

/// A running server; dropping it ends it.
#[derive(Debug)]
pub struct KatServer {
    ip: Ipv4Addr,
    _process: Process,
    _state: StateDir,
}

impl KatServer {
    /// Starts it, and waits until it takes connections.
    pub async fn start() -> Result<KatServer, Error> {
        let (state, ip) = (StateDir::new("kat-server")?, Net::here()?.address());
        let leaf = Ca::new("kat-server").leaf("kat-server").make();
        let certificate = state.write("server.crt", leaf.chain_pem())?;
        let key = state.write("server.key", leaf.key_pem())?;
        let process = Command::new(parts::program("kat-server")?)
            .args(["--port", &PORT.to_string(), "--secure-port", &SECURE_PORT.to_string()])
            .args(["--certificate".as_ref(), certificate.as_os_str(), "--key".as_ref(), key.as_os_str()])
            .start_in(&state)?;
        let connected = async || tokio::net::TcpStream::connect((ip, PORT)).await.map(drop);
        crate::eventually("the test server of Emissary", START, connected).await?;
        Ok(KatServer { ip, _process: process, _state: state })
    }

    /// Where it answers gRPC.
    pub fn address(&self) -> SocketAddr {
        (self.ip, PORT).into()
    }
}

/// It could not be had or did not start.
#[derive(thiserror::Error)]
pub enum Error {
    /// The program is not there.
    #[error(transparent)]
    Part(#[from] parts::Missing),
    /// There is no private network.
    #[error(transparent)]
    Net(#[from] crate::net::Error),
    /// Its folder could not be made.
    #[error(transparent)]
    State(#[from] crate::state::Error),
    /// It did not start, or died.
    #[error(transparent)]
    Process(#[from] crate::process::Error),
    /// It does not take connections.
    #[error(transparent)]
    Late(#[from] crate::Late),
}
debug_as_report!(Error);
