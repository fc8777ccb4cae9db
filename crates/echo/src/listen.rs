//! One TCP port: accepts, speaks TLS where asked, and hands each connection to HTTP or to the byte echo, which gives
//! back what comes until the client has said all it wants to say. And a UDP port, whose datagrams go back one by one.
//!
//! A permit is taken before a connection is accepted, so that what a backend holds is bounded and the kernel's queue
//! does the waiting. A connection is one task; it ends with its peer, with [`Shared::stop`] at the next good moment, or
//! with [`Shared::end`] at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use crate::running::Shared;
use crate::{TlsSeen, Who, asks_who, http, tls};

/// A handshake that takes longer is given up, so that silent clients don't hold permits.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// What comes over a port's connections.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Carries {
    Http,
    Bytes,
}

/// One accepted connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub shared: Arc<Shared>,
    pub remote: SocketAddr,
    pub local: SocketAddr,
    pub number: u64,
    pub tls: Option<TlsSeen>,
    requests: AtomicU64,
    /// Goes back when the last user of the connection is done with it: a WebSocket outlives its HTTP exchange.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// Counts a request and gives its number on this connection.
    pub fn requested(&self) -> u64 {
        self.shared.requested();
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn who(&self) -> Who {
        self.shared.who(self.remote, self.local, self.number, self.tls.clone())
    }
}

/// Accepts until the backend stops.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    listener: TcpListener,
    carries: Carries,
    tls: Option<Arc<ServerConfig>>,
) {
    loop {
        let accepted = async {
            let permit = shared.permits.clone().acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            biased;
            () = shared.end.cancelled() => return,
            () = shared.stop.cancelled() => return,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((socket, remote)) => {
                shared.spawn(connection(shared.clone(), permit.ok(), socket, remote, carries, tls.clone()));
            }
            // Out of file descriptors or a peer that is gone already: the next round may do better, but not at once.
            Err(e) => {
                warn!("cannot accept: {e}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connection(
    shared: Arc<Shared>,
    permit: Option<OwnedSemaphorePermit>,
    socket: TcpStream,
    remote: SocketAddr,
    carries: Carries,
    config: Option<Arc<ServerConfig>>,
) {
    let Ok(local) = socket.local_addr() else { return };
    // Answers are written whole; waiting for more would only add to the latency that tests measure.
    let _ = socket.set_nodelay(true);
    let number = shared.connected();
    let requests = AtomicU64::new(0);
    let with = |tls| Arc::new(Connection { shared, remote, local, number, tls, requests, _permit: permit });
    match config {
        None => dispatch(with(None), socket, carries).await,
        Some(config) => match tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(config).accept(socket)).await {
            Ok(Ok(session)) => {
                let seen = tls::seen(session.get_ref().1);
                dispatch(with(Some(seen)), session, carries).await;
            }
            Ok(Err(e)) => debug!(%remote, "no TLS session: {e}"),
            Err(_) => debug!(%remote, "no TLS session within {HANDSHAKE:?}"),
        },
    }
}

async fn dispatch<S>(connection: Arc<Connection>, stream: S, carries: Carries)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match carries {
        Carries::Http => http::serve(connection, stream).await,
        Carries::Bytes => echo_stream(&connection, stream).await,
    }
}

/// Serves one connection until its peer closes, or the backend stops.
async fn echo_stream<S: AsyncRead + AsyncWrite + Unpin>(connection: &Connection, mut stream: S) {
    connection.requested();
    let stop = &connection.shared.stop;
    let ended = tokio::select! {
        biased;
        ended = give_back(connection, &mut stream) => ended,
        () = stop.cancelled() => Ok(()),
    };
    if let Err(e) = ended {
        debug!(remote = %connection.remote, "connection broke: {e}");
    }
    let _ = stream.shutdown().await;
}

async fn give_back<S: AsyncRead + AsyncWrite + Unpin>(connection: &Connection, stream: &mut S) -> std::io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    let mut first = true;
    loop {
        let n = stream.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        if std::mem::take(&mut first) && asks_who(&buffer[..n]) {
            let mut line = serde_json::to_vec(&connection.who())?;
            line.push(b'\n');
            stream.write_all(&line).await?;
        } else {
            stream.write_all(&buffer[..n]).await?;
        }
        stream.flush().await?;
    }
}

/// Serves until the backend stops.
pub(crate) async fn echo_datagrams(shared: Arc<Shared>, socket: UdpSocket, local: SocketAddr) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let received = tokio::select! {
            biased;
            () = shared.end.cancelled() => return,
            () = shared.stop.cancelled() => return,
            received = socket.recv_from(&mut buffer) => received,
        };
        // An error here is an earlier reply that found nobody; the socket is as good as before.
        let Ok((n, remote)) = received else { continue };
        shared.requested();
        let sent = if asks_who(&buffer[..n]) {
            let who = serde_json::to_vec(&shared.who(remote, local, 0, None)).unwrap_or_default();
            socket.send_to(&who, remote).await
        } else {
            socket.send_to(&buffer[..n], remote).await
        };
        if let Err(e) = sent {
            debug!(%remote, "no reply sent: {e}");
        }
    }
}
