//! Emissary's test server as an authorization server that is not ours, or as an echo: gRPC in plaintext.
//!
//! It does what the client's request asks for: `kat-req-extauth-requested-status` is the status that authorization answers with, 200 lets
//! the request through; `kat-req-echo-requested-status` is the gRPC status of an echo. It has ports of all addresses, so there is one
//! of each in a network namespace.

use crate::certs::Ca;
use crate::net::Net;
use crate::process::{Command, Process};
use crate::start::StartError;
use crate::state::StateDir;
use std::net::SocketAddr;
use std::time::Duration;

const START: Duration = Duration::from_secs(30);
/// Where authorization is answered, and echoes are, in plaintext and over TLS.
const AUTHORIZATION: [u16; 2] = [18_080, 18_443];
const ECHO: [u16; 2] = [18_081, 18_444];

/// A running server; dropping it ends it.
#[derive(Debug)]
pub struct KatServer {
    address: SocketAddr,
    _process: Process,
    _state: StateDir,
}

impl KatServer {
    /// Starts it as an authorization server, and waits until it takes connections.
    pub async fn start() -> Result<KatServer, StartError> {
        Self::run(AUTHORIZATION, &[]).await
    }

    /// Starts it as a server of `echo.EchoService`, and waits until it takes connections.
    pub async fn echo() -> Result<KatServer, StartError> {
        Self::run(ECHO, &["--echo"]).await
    }

    async fn run([port, secure_port]: [u16; 2], flags: &[&str]) -> Result<KatServer, StartError> {
        let (state, ip) = (StateDir::new("kat-server")?, Net::here()?.address());
        let leaf = Ca::new("kat-server").leaf("kat-server").make();
        let certificate = state.write("server.crt", leaf.chain_pem())?;
        let key = state.write("server.key", leaf.key_pem())?;
        let process = Command::new(parts::program("kat-server")?)
            .args(flags)
            .args(["--port", &port.to_string(), "--secure-port", &secure_port.to_string()])
            .args(["--certificate".as_ref(), certificate.as_os_str(), "--key".as_ref(), key.as_os_str()])
            .start_in(&state)?;
        let address = SocketAddr::from((ip, port));
        let connected = async || tokio::net::TcpStream::connect(address).await.map(drop);
        crate::eventually("the test server of Emissary", START, connected).await?;
        Ok(KatServer { address, _process: process, _state: state })
    }

    /// Where it answers gRPC.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
