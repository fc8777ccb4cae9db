//! Backends for routes to lead to: the product's own echo, in this process or as one of its own.
//!
//! In: a name, and what it should present. Out: a [`Backend`] on an address of the test network that nobody else has, so
//! its ports are the ones people use and the address may stand in an EndpointSlice.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use echo::{Echo, Kind, Running, Tls};
use rustls::ServerConfig;

use crate::certs::{Ca, Leaf};
use crate::report::debug_as_report;
use crate::{Client, Command, Net, Process, StartError, StateDir};

/// The ports of a backend.
const PORTS: [(Kind, u16); 5] =
    [(Kind::Http, 80), (Kind::Https, 443), (Kind::Tcp, 9000), (Kind::Tls, 9443), (Kind::Udp, 9000)];

/// How long a process may take to listen, and to end when asked to.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A backend did not start.
#[derive(thiserror::Error)]
pub enum Error {
    /// It did not start.
    #[error(transparent)]
    Start(StartError),
    /// It cannot listen.
    #[error(transparent)]
    Echo(#[from] echo::Error),
    /// It cannot listen.
    #[error("it cannot listen: {0}")]
    Listen(std::io::Error),
}
debug_as_report!(Error);

impl<E: Into<StartError>> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Start(error.into())
    }
}

/// A backend to be started.
#[derive(Clone, Debug)]
pub struct Builder {
    name: String,
    tls: Option<(Leaf, Option<Ca>)>,
    config: Option<Arc<ServerConfig>>,
    address: Option<Ipv4Addr>,
}

impl Builder {
    /// What it presents on its TLS ports; without it, a certificate of its own making.
    pub fn tls(mut self, leaf: &Leaf) -> Builder {
        self.tls = Some((leaf.clone(), None));
        self
    }

    /// The same, and only clients that `ca` vouches for are let in.
    pub fn tls_for_clients(mut self, leaf: &Leaf, ca: &Ca) -> Builder {
        self.tls = Some((leaf.clone(), Some(ca.clone())));
        self
    }

    /// Any other TLS; only for backends in this process.
    pub fn tls_config(mut self, config: Arc<ServerConfig>) -> Builder {
        self.config = Some(config);
        self
    }

    /// An address of the caller's choice, such as that of a backend that was there before.
    pub fn address(mut self, address: Ipv4Addr) -> Builder {
        self.address = Some(address);
        self
    }

    /// Starts it in this process; when this returns, all its ports accept.
    pub async fn start(self) -> Result<Backend, Error> {
        let ip = self.ip()?;
        let mut builder = PORTS.iter().fold(Echo::builder().name(self.name.clone()), |builder, (kind, port)| {
            builder.listen(*kind, (ip, *port).into())
        });
        let presented = self.tls.as_ref().map(|(leaf, clients)| match clients {
            Some(ca) => leaf.server_config_for_clients(ca, &[]),
            None => leaf.server_config(),
        });
        if let Some(config) = self.config.clone().or(presented) {
            builder = builder.tls(Tls::from_config(config));
        }
        Ok(Backend { inner: Inner::Here(builder.start().await?), ip, builder: self })
    }

    /// Starts it as a process, `sesame echo`; when this returns, all its ports accept.
    pub async fn start_process(self, sesame: &Path) -> Result<Backend, Error> {
        let ip = self.ip()?;
        let state = StateDir::new(&format!("backend-{}", self.name))?;
        let command = Command::new(sesame).name(format!("echo-{}", self.name)).arg("echo").flag("name", &self.name);
        let mut command = PORTS.iter().fold(command, |command, (kind, port)| {
            command.flag(&kind.to_string(), SocketAddr::from((ip, *port)).to_string())
        });
        if let Some((leaf, clients)) = &self.tls {
            command = command.flag("cert", state.write("tls.crt", leaf.chain_pem())?);
            command = command.flag("key", state.write("tls.key", leaf.key_pem())?);
            if let Some(ca) = clients {
                command = command.flag("client-ca", state.write("ca.crt", ca.pem())?);
            }
        }
        let process = command.start_in(&state)?;
        process.expect_line("listens on", TIMEOUT).await?;
        Ok(Backend { inner: Inner::Process(process, state), ip, builder: self })
    }

    fn ip(&self) -> Result<Ipv4Addr, Error> {
        match self.address {
            Some(ip) => Ok(ip),
            None => Ok(Net::here()?.address()),
        }
    }
}

/// A running backend; dropping it cuts all its connections.
#[derive(Debug)]
pub struct Backend {
    inner: Inner,
    ip: Ipv4Addr,
    builder: Builder,
}

#[derive(Debug)]
enum Inner {
    Here(Running),
    /// With the folder of its certificates.
    Process(Process, #[expect(dead_code, reason = "kept for its files")] StateDir),
}

impl Backend {
    /// A backend of this name in this process.
    pub async fn start(name: &str) -> Result<Backend, Error> {
        Backend::named(name).start().await
    }

    /// A backend to be started, with more to say about it.
    pub fn named(name: &str) -> Builder {
        Builder { name: name.into(), tls: None, config: None, address: None }
    }

    /// The name in its answers.
    pub fn name(&self) -> &str {
        &self.builder.name
    }

    /// Its address, which it shares with nobody.
    pub fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    /// Port 80: HTTP/1.1, h2c, gRPC, WebSocket.
    pub fn http(&self) -> SocketAddr {
        (self.ip, 80).into()
    }

    /// Port 443: the same over TLS.
    pub fn https(&self) -> SocketAddr {
        (self.ip, 443).into()
    }

    /// Port 9000: TCP.
    pub fn tcp(&self) -> SocketAddr {
        (self.ip, 9000).into()
    }

    /// Port 9443: TCP over TLS.
    pub fn tls_tcp(&self) -> SocketAddr {
        (self.ip, 9443).into()
    }

    /// Port 9000: UDP.
    pub fn udp(&self) -> SocketAddr {
        (self.ip, 9000).into()
    }

    /// A client of its HTTP port.
    pub fn client(&self) -> Client {
        Client::new(self.http())
    }

    /// The echo itself, when it runs in this process: what it counted.
    pub fn running(&self) -> Option<&Running> {
        match &self.inner {
            Inner::Here(running) => Some(running),
            Inner::Process(..) => None,
        }
    }

    /// Its process, when it has one.
    pub fn process(&self) -> Option<&Process> {
        match &self.inner {
            Inner::Here(_) => None,
            Inner::Process(process, _) => Some(process),
        }
    }

    /// Ends it as a pod ends: ports close, requests under way are answered. Gives what starts the same again.
    pub async fn stop(self) -> Result<Builder, Error> {
        match self.inner {
            Inner::Here(running) => {
                running.stop().await;
            }
            Inner::Process(process, _) => {
                process.stop(TIMEOUT).await?;
            }
        }
        Ok(self.builder.address(self.ip))
    }

    /// Ends it as a crash ends it. Gives what starts the same again.
    pub async fn kill(self) -> Result<Builder, Error> {
        match self.inner {
            Inner::Here(running) => running.kill().await,
            Inner::Process(process, _) => {
                process.kill().await?;
            }
        }
        Ok(self.builder.address(self.ip))
    }
}
