//! What a backend is to be, and its start.
//!
//! In: a name and addresses. Out: a [`Running`] backend whose ports all accept, or the address that is not available.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UdpSocket};

use crate::listen::{self, Carries};
use crate::running::{Kind, Running, Shared};
use crate::{Tls, TlsError};

/// The backend; see [`Echo::builder`].
#[derive(Debug)]
pub struct Echo;

impl Echo {
    /// A backend named `echo` that listens nowhere yet.
    pub fn builder() -> Builder {
        Builder {
            name: "echo".into(),
            pod: None,
            namespace: None,
            listeners: Vec::new(),
            tls: None,
            connections: 8192,
            kept_body: 64 * 1024,
            grace: Duration::from_secs(5),
        }
    }
}

/// A backend to be started.
#[derive(Clone, Debug)]
pub struct Builder {
    name: String,
    pod: Option<String>,
    namespace: Option<String>,
    listeners: Vec<(Kind, SocketAddr)>,
    tls: Option<Tls>,
    connections: usize,
    kept_body: usize,
    grace: Duration,
}

/// Why a backend did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address could not be listened on.
    #[error("cannot listen on {addr} ({kind}): {source}")]
    Bind {
        /// What was to be served there.
        kind: Kind,
        /// The address.
        addr: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// TLS was asked for and its certificate could not be made.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// There is nothing to listen on.
    #[error("no address to listen on")]
    Nothing,
}

impl Builder {
    /// The name that answers carry.
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.name = name.into();
        self
    }

    /// The pod that answers name.
    pub fn pod(mut self, pod: impl Into<Option<String>>) -> Builder {
        self.pod = pod.into();
        self
    }

    /// The namespace that answers name.
    pub fn namespace(mut self, namespace: impl Into<Option<String>>) -> Builder {
        self.namespace = namespace.into();
        self
    }

    /// Listens for HTTP/1.1, h2c, gRPC and WebSocket. Port 0 takes a free one, here and below.
    pub fn http(self, addr: SocketAddr) -> Builder {
        self.listen(Kind::Http, addr)
    }

    /// Listens for the same over TLS, with HTTP/2 by ALPN.
    pub fn https(self, addr: SocketAddr) -> Builder {
        self.listen(Kind::Https, addr)
    }

    /// Listens for TCP connections whose bytes are given back.
    pub fn tcp(self, addr: SocketAddr) -> Builder {
        self.listen(Kind::Tcp, addr)
    }

    /// Listens for TLS connections whose bytes are given back.
    pub fn tls_tcp(self, addr: SocketAddr) -> Builder {
        self.listen(Kind::Tls, addr)
    }

    /// Listens for datagrams, which are sent back.
    pub fn udp(self, addr: SocketAddr) -> Builder {
        self.listen(Kind::Udp, addr)
    }

    /// Listens for one kind of traffic.
    pub fn listen(mut self, kind: Kind, addr: SocketAddr) -> Builder {
        self.listeners.push((kind, addr));
        self
    }

    /// What to present on TLS ports; without it a certificate for `localhost` is made on the spot.
    pub fn tls(mut self, tls: Tls) -> Builder {
        self.tls = Some(tls);
        self
    }

    /// How many connections may be open at once; further ones wait to be accepted.
    pub fn max_connections(mut self, connections: usize) -> Builder {
        self.connections = connections.max(1);
        self
    }

    /// How much of a request's body an answer gives back. The rest is read and counted only.
    pub fn kept_body(mut self, bytes: usize) -> Builder {
        self.kept_body = bytes;
        self
    }

    /// How long requests in flight may go on after [`Running::stop`].
    pub fn grace(mut self, grace: Duration) -> Builder {
        self.grace = grace;
        self
    }

    /// Starts; when this returns, every port accepts.
    pub async fn start(self) -> Result<Running, Error> {
        if self.listeners.is_empty() {
            return Err(Error::Nothing);
        }
        let encrypted = self.listeners.iter().any(|(kind, _)| matches!(kind, Kind::Https | Kind::Tls));
        let tls = match self.tls {
            None if encrypted => Some(Tls::self_signed(["localhost"])?),
            tls => tls,
        };
        let shared = Arc::new(Shared::new(self.name, self.pod, self.namespace, self.connections, self.kept_body));
        // Dropped on an early return, it ends what was started so far.
        let mut running = Running::new(shared.clone(), self.grace);
        for (kind, addr) in self.listeners {
            let failed = |source| Error::Bind { kind, addr, source };
            let config = |of: fn(&Tls) -> Arc<rustls::ServerConfig>| tls.as_ref().map(of);
            let bound = if kind == Kind::Udp {
                let socket = UdpSocket::bind(addr).await.map_err(failed)?;
                let bound = socket.local_addr().map_err(failed)?;
                shared.tasks.spawn(listen::echo_datagrams(shared.clone(), socket, bound));
                bound
            } else {
                let listener = TcpListener::bind(addr).await.map_err(failed)?;
                let bound = listener.local_addr().map_err(failed)?;
                let (carries, tls) = match kind {
                    Kind::Http => (Carries::Http, None),
                    Kind::Https => (Carries::Http, config(Tls::http)),
                    Kind::Tls => (Carries::Bytes, config(Tls::bytes)),
                    Kind::Tcp | Kind::Udp => (Carries::Bytes, None),
                };
                shared.tasks.spawn(listen::serve(shared.clone(), listener, carries, tls));
                bound
            };
            running.add(kind, bound);
        }
        Ok(running)
    }
}
