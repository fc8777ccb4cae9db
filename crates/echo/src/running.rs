//! A backend that runs: where it listens, what it counted, and its end.
//!
//! Ending has two steps: `stop` lets requests in flight finish (ports close, connections are told to go away), `end`
//! cuts everything. Dropping a [`Running`] cuts.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{TlsSeen, Who};

/// What a port carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// HTTP/1.1 and h2c.
    Http,
    /// HTTP/1.1 and HTTP/2 over TLS.
    Https,
    /// Bytes over TCP.
    Tcp,
    /// Bytes over TLS.
    Tls,
    /// Datagrams.
    Udp,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Http => "http",
            Kind::Https => "https",
            Kind::Tcp => "tcp",
            Kind::Tls => "tls",
            Kind::Udp => "udp",
        })
    }
}

/// What all listeners and connections of one backend share.
#[derive(Debug)]
pub(crate) struct Shared {
    name: String,
    pod: Option<String>,
    namespace: Option<String>,
    pub kept_body: usize,
    pub permits: Arc<Semaphore>,
    pub stop: CancellationToken,
    pub end: CancellationToken,
    pub tasks: TaskTracker,
    connections: AtomicU64,
    requests: AtomicU64,
}

impl Shared {
    pub fn new(
        name: String,
        pod: Option<String>,
        namespace: Option<String>,
        connections: usize,
        kept_body: usize,
    ) -> Shared {
        Shared {
            name,
            pod,
            namespace,
            kept_body,
            permits: Arc::new(Semaphore::new(connections)),
            stop: CancellationToken::new(),
            end: CancellationToken::new(),
            tasks: TaskTracker::new(),
            connections: AtomicU64::new(0),
            requests: AtomicU64::new(0),
        }
    }

    /// Counts a new connection and gives its number.
    pub fn connected(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a request, a datagram or an echoed connection.
    pub fn requested(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a task of this backend until it is done or everything is cut.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let end = self.end.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = end.cancelled() => {}
                () = task => {}
            }
        });
    }

    pub fn who(&self, remote: SocketAddr, local: SocketAddr, connection: u64, tls: Option<TlsSeen>) -> Who {
        let (name, pod, namespace) = (self.name.clone(), self.pod.clone(), self.namespace.clone());
        Who { name, pod, namespace, tls, remote, local, connection }
    }
}

/// A backend that accepts on all its ports until it is stopped or dropped.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    addrs: Vec<(Kind, SocketAddr)>,
    grace: Duration,
}

impl Running {
    pub(crate) fn new(shared: Arc<Shared>, grace: Duration) -> Running {
        Running { shared, addrs: Vec::new(), grace }
    }

    pub(crate) fn add(&mut self, kind: Kind, addr: SocketAddr) {
        self.addrs.push((kind, addr));
    }

    /// The name that answers carry.
    pub fn name(&self) -> &str {
        self.shared.name()
    }

    /// Every address, in the order in which they were asked for.
    pub fn addrs(&self) -> &[(Kind, SocketAddr)] {
        &self.addrs
    }

    /// The first address of a kind.
    pub fn addr(&self, kind: Kind) -> Option<SocketAddr> {
        self.addrs.iter().find(|(k, _)| *k == kind).map(|(_, addr)| *addr)
    }

    /// The first HTTP address.
    ///
    /// # Panics
    /// When the backend was not asked to listen for it, as the shortcuts below.
    pub fn http(&self) -> SocketAddr {
        self.expect(Kind::Http)
    }

    /// The first HTTPS address.
    pub fn https(&self) -> SocketAddr {
        self.expect(Kind::Https)
    }

    /// The first TCP address.
    pub fn tcp(&self) -> SocketAddr {
        self.expect(Kind::Tcp)
    }

    /// The first address of bytes over TLS.
    pub fn tls_tcp(&self) -> SocketAddr {
        self.expect(Kind::Tls)
    }

    /// The first UDP address.
    pub fn udp(&self) -> SocketAddr {
        self.expect(Kind::Udp)
    }

    fn expect(&self, kind: Kind) -> SocketAddr {
        self.addr(kind).unwrap_or_else(|| panic!("backend {} does not listen for {kind}", self.name()))
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Requests, datagrams and echoed connections taken so far.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Stops: closes the ports, lets what is in flight finish within the grace time, then cuts the rest.
    /// True when nothing had to be cut.
    pub async fn stop(self) -> bool {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        let finished = tokio::time::timeout(self.grace, self.shared.tasks.wait()).await.is_ok();
        self.kill().await;
        finished
    }

    /// Cuts everything at once, as a crash would. When this returns, the ports are closed.
    pub async fn kill(self) {
        self.shared.end.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.end.cancel();
    }
}
