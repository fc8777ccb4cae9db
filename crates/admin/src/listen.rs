//! Sockets that pages are served on, with TLS or without.
//!
//! A socket outlives what is served on it: other pages, or the same over TLS, take it over without a moment in which nobody
//! listens. Handshakes are made beside each other, so that a slow client holds up nobody.

use crate::tls::Tls;
use axum::{Router, serve::Listener};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How many handshakes are made at a time.
const HANDSHAKES: usize = 64;
/// How long to wait after the system could not give us a connection: it has too many files open.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves pages on a socket until `shutdown`. The socket stays bound for as long as the caller has it.
pub async fn serve_on(
    socket: Arc<TcpListener>,
    tls: Option<Arc<Tls>>,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    match tls {
        None => axum::serve(Plain(socket), router).with_graceful_shutdown(shutdown).await,
        Some(tls) => axum::serve(Encrypted::start(socket, tls), router).with_graceful_shutdown(shutdown).await,
    }
}

struct Plain(Arc<TcpListener>);

impl Listener for Plain {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        accept(&self.0).await
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

async fn accept(socket: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match socket.accept().await {
            Ok(connection) => return connection,
            Err(_) => time::sleep(PAUSE).await,
        }
    }
}

/// Connections whose handshake is done.
struct Encrypted {
    socket: Arc<TcpListener>,
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    /// Ends with this.
    _handshakes: JoinSet<()>,
}

impl Encrypted {
    fn start(socket: Arc<TcpListener>, tls: Arc<Tls>) -> Self {
        let (made, ready) = mpsc::channel(1);
        let mut handshakes = JoinSet::new();
        let listening = socket.clone();
        handshakes.spawn(async move {
            let (slots, mut running) = (Arc::new(Semaphore::new(HANDSHAKES)), JoinSet::new());
            loop {
                let Ok(slot) = slots.clone().acquire_owned().await else { return };
                let (stream, peer) = accept(&listening).await;
                while running.try_join_next().is_some() {}
                let (acceptor, made) = (TlsAcceptor::from(tls.config()), made.clone());
                running.spawn(async move {
                    let handshake = time::timeout(HANDSHAKE, acceptor.accept(stream)).await;
                    drop(slot);
                    if let Ok(Ok(stream)) = handshake {
                        // Nobody takes it where the server has ended.
                        let _ = made.send((stream, peer)).await;
                    }
                });
            }
        });
        Self { socket, ready, _handshakes: handshakes }
    }
}

impl Listener for Encrypted {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            // The task lives as long as this.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}
