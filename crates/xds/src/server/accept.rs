//! Takes connections in and sees them off.
//!
//! In: a listening socket. Out: HTTP/2 connections, each with the identity of its certificate. Until it is authenticated, a
//! connection has a place among the [`super::handshakes`] alone, and a few seconds. One connection's failure is
//! logged and ends there; when the server stops, each is told by GOAWAY, and its streams end with `UNAVAILABLE`, which
//! makes an Envoy connect to another replica at once.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

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

use super::handshakes::Handshake;
use super::{Inner, Security};
use crate::identity::Credential;
use crate::metrics::Reason;
use crate::service::{self, Connection};
use crate::tls::expiry;

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// The shortest time between two log lines about connections that ended before they were authenticated for the same reason, and between
/// two about streams that ended early for the same reason.
pub(super) const REPORT: Duration = Duration::from_secs(10);
/// How long a client without a certificate may take to show a valid token. The API server is asked about it.
const TOKEN: Duration = Duration::from_secs(10);
/// What a client may send ahead of our reading it. Requests are small, save for lists of names.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;

/// How long to wait after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(50);

/// Failed attempts to accept a connection since one was accepted. At the limit of open files both alternate, so a shortage that begins
/// soon after the last report is not reported.
#[derive(Default)]
struct AcceptFailures {
    reported: Option<Instant>,
    is_reported: bool,
    attempts: u64,
}

impl AcceptFailures {
    /// One more; how many there were, if that is to be reported.
    fn happened(&mut self, now: Instant) -> Option<u64> {
        self.attempts += 1;
        let is_due = self.reported.is_none_or(|at| now.saturating_duration_since(at) >= REPORT);
        is_due.then(|| {
            self.reported = Some(now);
            self.is_reported = true;
            self.attempts
        })
    }

    /// A connection was accepted; how many attempts before it failed, if that was reported.
    fn ended(&mut self) -> Option<u64> {
        let attempts = std::mem::take(&mut self.attempts);
        std::mem::take(&mut self.is_reported).then_some(attempts)
    }
}

pub(super) async fn run(
    inner: Arc<Inner>,
    listener: TcpListener,
    security: Security,
    shutdown: impl Future<Output = ()>,
    stop: CancellationToken,
) -> io::Result<()> {
    let listen = listener.local_addr()?;
    let tls = match security {
        Security::Tls(tls) => Some(tls),
        Security::Insecure => {
            warn!(%listen, "INSECURE: xDS without TLS; anyone who can connect reads every route and private key");
            None
        }
    };
    info!(%listen, "serving xDS");
    let tasks = TaskTracker::new();
    if let Some(tls) = tls.clone() {
        tasks.spawn(stop.clone().run_until_cancelled_owned(expiry::watch(tls, inner.metrics.clone())));
    }
    let mut shutdown = pin!(shutdown);
    let mut failures = AcceptFailures::default();
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => {
                    if let Some(attempts) = failures.ended() {
                        info!(%listen, attempts, "accepting connections again");
                    }
                    accepted
                }
                Err(error) => {
                    // Out of files, mostly: what is connected must live on, and a connection that ends makes room.
                    if let Some(attempts) = failures.happened(Instant::now()) {
                        warn!(%listen, %error, attempts, "cannot accept connections; open ones are still served. If too many files are \
                            open, raise the container's limit of open files");
                    }
                    time::sleep(PAUSE).await;
                    continue;
                }
            },
            () = &mut shutdown => break,
        };
        let handshake = inner.handshakes.admit(peer.ip());
        let (inner, tls, stop) = (inner.clone(), tls.clone(), stop.clone());
        tasks.spawn(async move {
            if let Err(error) = stream.set_nodelay(true) {
                debug!(%peer, %error, "cannot turn off Nagle's algorithm");
            }
            match tls {
                None => {
                    drop(handshake);
                    serve_connection(inner, stream, peer, Credential::Insecure, None, stop).await;
                }
                Some(tls) => {
                    // The files are read again here if they have changed, so this is known before the next look at their expiry.
                    let config = tls.config();
                    inner.metrics.certificates_invalid.set(i64::from(tls.is_refused()));
                    secure(inner, stream, peer, TlsAcceptor::from(config), handshake, stop).await;
                }
            }
        });
    }
    info!(%listen, "no longer serving xDS; open streams are closed, and clients connect to another server if there is one");
    drop(listener);
    stop.cancel();
    tasks.close();
    if time::timeout(inner.config.grace, tasks.wait()).await.is_err() {
        warn!(%listen, "some clients did not disconnect in time");
    }
    Ok(())
}

async fn secure(
    inner: Arc<Inner>,
    stream: TcpStream,
    peer: SocketAddr,
    tls: TlsAcceptor,
    handshake: Handshake,
    stop: CancellationToken,
) {
    inner.metrics.handshakes.inc();
    let handshakes = inner.metrics.handshakes.clone();
    let count = defer(move || {
        handshakes.dec();
    });
    let accepted = tokio::select! {
        accepted = time::timeout(HANDSHAKE, tls.accept(stream)) => match accepted {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(("handshake", error.to_string())),
            Err(_) => Err(("timeout", format!("the TLS handshake took more than {HANDSHAKE:?}"))),
        },
        () = handshake.evicted.cancelled() => Err(("evicted", "too many connections did not finish theirs".to_owned())),
        () = stop.cancelled() => return,
    };
    drop(count);
    let stream = match accepted {
        Ok(stream) => stream,
        Err((reason, why)) => return inner.refused(peer, reason, &why),
    };
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let credential = match certificate.map(|certificate| Credential::from_certificate(certificate)) {
        Some(Ok(credential)) => credential,
        Some(Err(error)) => return inner.refused(peer, "unauthorized", &error.to_string()),
        None if inner.config.authenticator.is_some() => Credential::Anonymous,
        None => return inner.refused(peer, "unauthorized", "the client has no certificate"),
    };
    // Until it is authenticated, it has no other place than this.
    let handshake = matches!(credential, Credential::Anonymous).then_some(handshake);
    serve_connection(inner, stream, peer, credential, handshake, stop).await;
}

impl Inner {
    /// Counts a connection, or a request on one, that was refused because nobody knows whose it is, and says so now and then: proxies
    /// of a fleet that is gone try again until they end.
    pub(crate) fn refused(&self, peer: SocketAddr, reason: &'static str, why: &str) {
        self.metrics.refused_connections.get_or_create(&Reason { reason }).inc();
        debug!(%peer, reason, "refused a connection: {why}");
        let due = self.refused.lock().happened(reason, Instant::now());
        if let Some(connections) = due {
            warn!(%peer, reason, connections, "refused a connection before it was authenticated: {why}");
        }
    }

    /// Logs now and then that a stream ends because of the first request for a type: thousands of clients may come back at once.
    pub(crate) fn ended_early(&self, peer: SocketAddr, reason: &'static str, why: &str) {
        let due = self.ended_early.lock().happened(reason, Instant::now());
        if let Some(streams) = due {
            warn!(%peer, reason, streams, "ended a stream before a first request was answered: {why}");
        }
    }
}

/// Serves a connection. One with a `handshake` is not authenticated yet: it ends unless one of its requests is, soon.
async fn serve_connection<S>(
    inner: Arc<Inner>,
    stream: S,
    peer: SocketAddr,
    credential: Credential,
    handshake: Option<Handshake>,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let authenticated = CancellationToken::new();
    let is_authenticated = authenticated.clone();
    let place = async {
        if let Some(handshake) = handshake {
            tokio::select! {
                () = is_authenticated.cancelled() => {}
                () = handshake.evicted.cancelled() => return ("evicted", "too many connections are not authenticated".to_owned()),
                () = time::sleep(TOKEN) => return ("timeout", format!("no valid token came within {TOKEN:?}")),
            }
        }
        let Ok(_permit) = inner.connections.clone().try_acquire_owned() else {
            return ("full", format!("there are {} connections already", inner.config.connections));
        };
        inner.metrics.connections.inc();
        let _count = defer(|| {
            inner.metrics.connections.dec();
        });
        std::future::pending().await
    };
    let connection = Arc::new(Connection { inner: inner.clone(), peer, credential, stop: stop.clone(), authenticated });
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
        biased;
        (reason, why) = place => return inner.refused(peer, reason, &why),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::UnreportedByReason;

    #[test]
    fn failures_to_accept_are_reported_at_once_and_now_and_then() {
        let (start, mut failures) = (Instant::now(), AcceptFailures::default());
        let mut after = |millis: u64| failures.happened(start + Duration::from_millis(millis));
        assert_eq!(after(0), Some(1));
        assert_eq!((50..10_000).step_by(50).filter_map(&mut after).count(), 0);
        assert_eq!(after(10_000), Some(201));
        assert_eq!(failures.ended(), Some(201));
        assert_eq!(failures.ended(), None);
        assert_eq!(failures.happened(start + Duration::from_secs(11)), None, "the next shortage follows at once");
        assert_eq!(failures.ended(), None, "what was not reported does not end");
        assert_eq!(failures.happened(start + Duration::from_secs(30)), Some(1));
    }

    #[test]
    fn what_clients_cause_is_counted_by_reason() {
        let (start, mut unreported) = (Instant::now(), UnreportedByReason::default());
        let mut after = |seconds: u64, reason| unreported.happened(reason, start + Duration::from_secs(seconds));
        assert_eq!((after(0, "stalled"), after(0, "not_live")), (Some(1), Some(1)), "neither hides the other");
        assert_eq!([1, 2, 3].map(|seconds| after(seconds, "not_live")), [None; 3]);
        assert_eq!((after(10, "stalled"), after(10, "not_live")), (Some(1), Some(4)));
    }
}
