//! Takes connections in and sees them off.
//!
//! In: a listening socket. Out: HTTP/2 connections, each with what its certificate proves. One connection's failure is
//! logged and ends there; when the server stops, each is told by GOAWAY, and its streams end with `UNAVAILABLE`, which
//! makes an Envoy connect to another replica at once.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};

use super::{Inner, Security};
use crate::identity::Proof;
use crate::service::{self, Connection};

const HANDSHAKE: Duration = Duration::from_secs(10);
/// What a client may send ahead of our reading it. Requests are small, save for lists of names.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;

pub(super) async fn run(
    inner: Arc<Inner>,
    listener: TcpListener,
    security: Security,
    shutdown: impl Future<Output = ()>,
    stop: CancellationToken,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let tls = match security {
        Security::Tls(tls) => Some(tls),
        Security::Insecure => {
            warn!(%address, "INSECURE: xDS without TLS; anyone who can connect reads every route and private key");
            None
        }
    };
    info!(%address, "serving xDS");
    let tasks = TaskTracker::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of files, mostly: what is connected must live on, and a connection that ends makes room.
                    warn!(%error, "cannot accept a connection");
                    time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = &mut shutdown => break,
        };
        let Ok(permit) = inner.connections.clone().try_acquire_owned() else {
            warn!(%peer, limit = inner.config.connections, "refused a connection: there are too many");
            continue;
        };
        let (inner, tls, stop) = (inner.clone(), tls.clone(), stop.clone());
        tasks.spawn(async move {
            let _permit = permit;
            if let Err(error) = stream.set_nodelay(true) {
                debug!(%peer, %error, "cannot turn off Nagle's algorithm");
            }
            match tls {
                None => converse(inner, stream, peer, Proof::Insecure, stop).await,
                Some(tls) => secure(inner, stream, peer, TlsAcceptor::from(tls.config()), stop).await,
            }
        });
    }
    info!(%address, "no longer serving xDS: clients are sent to other replicas");
    drop(listener);
    stop.cancel();
    tasks.close();
    if time::timeout(inner.config.grace, tasks.wait()).await.is_err() {
        warn!(%address, "some clients did not go in time");
    }
    Ok(())
}

async fn secure(inner: Arc<Inner>, stream: TcpStream, peer: SocketAddr, tls: TlsAcceptor, stop: CancellationToken) {
    let stream = tokio::select! {
        handshake = time::timeout(HANDSHAKE, tls.accept(stream)) => match handshake {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return info!(%peer, %error, "TLS handshake failed"),
            Err(_) => return info!(%peer, "TLS handshake took too long"),
        },
        () = stop.cancelled() => return,
    };
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let proof = match certificate.map(|certificate| Proof::from_certificate(certificate)) {
        Some(Ok(proof)) => proof,
        Some(Err(error)) => return warn!(%peer, %error, "refused a client"),
        None => return warn!(%peer, "refused a client without a certificate"),
    };
    converse(inner, stream, peer, proof, stop).await;
}

async fn converse<S>(inner: Arc<Inner>, stream: S, peer: SocketAddr, proof: Proof, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    inner.metrics.connections.inc();
    let _count = defer(|| {
        inner.metrics.connections.dec();
    });
    let connection = Arc::new(Connection { inner: inner.clone(), peer, proof, stop: stop.clone() });
    let service = service_fn(move |request| {
        let response = service::respond(connection.clone(), request);
        async move { Ok::<_, Infallible>(response.await) }
    });
    let (interval, timeout) = inner.config.keepalive;
    let serving = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(inner.config.streams_per_connection)
        .keep_alive_interval(interval)
        .keep_alive_timeout(timeout)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = pin!(serving);
    let ended = tokio::select! {
        ended = &mut serving => ended,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            time::timeout(inner.config.grace, serving).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        debug!(%peer, %error, "connection ended");
    }
}

/// Does something when it is dropped.
fn defer<F: FnOnce()>(work: F) -> impl Drop {
    struct Guard<F: FnOnce()>(Option<F>);
    impl<F: FnOnce()> Drop for Guard<F> {
        fn drop(&mut self) {
            if let Some(work) = self.0.take() {
                work();
            }
        }
    }
    Guard(Some(work))
}
