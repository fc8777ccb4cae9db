//! How an exchange can end without an answer, by the step at which it ended.

use std::error::Error as StdError;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustls::AlertDescription;

use super::Answer;
use crate::report::debug_as_report;

/// No answer, or only part of one.
#[derive(thiserror::Error)]
pub enum Failure {
    /// There was no connection.
    #[error("cannot connect to {addr}")]
    Connect {
        /// Where to.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The TLS handshake failed. (In TLS 1.3 a server's refusal of a client certificate comes later, as
    /// [`Failure::Exchange`]; [`Failure::alert`] finds it in both.)
    #[error("no TLS session with {addr}")]
    Tls {
        /// With whom.
        addr: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// It took too long.
    #[error("waited {after:?} for {what}")]
    Timeout {
        /// What was waited for.
        what: &'static str,
        /// How long.
        after: Duration,
    },
    /// What was asked for cannot be written as a request.
    #[error("not a request")]
    Request(#[from] http::Error),
    /// The connection had closed before anything of the request was sent.
    #[error("the connection was closed before the request was sent")]
    Unsent(#[source] hyper::Error),
    /// The connection or stream broke before the answer's headers came.
    #[error("no answer")]
    Exchange(#[from] hyper::Error),
    /// The answer broke off in its body.
    #[error("the answer ({}) broke off after {} bytes of its body", answer.status, answer.body.len())]
    Body {
        /// What had come.
        answer: Box<Answer>,
        /// Why no more came.
        source: hyper::Error,
    },
    /// The other side would not become a WebSocket.
    #[error("no WebSocket, but an answer with status {}", .0.status)]
    NotUpgraded(Box<Answer>),
    /// Bytes could not be written or read.
    #[error("the connection broke")]
    Io(#[from] io::Error),
    /// A gRPC answer held something that is no message.
    #[error("not a gRPC message: {0}")]
    Message(String),
}
debug_as_report!(Failure);

impl Failure {
    /// Whether nobody listens there.
    pub fn is_refused(&self) -> bool {
        matches!(self, Failure::Connect { source, .. } if source.kind() == io::ErrorKind::ConnectionRefused)
    }

    /// Whether it took too long.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Failure::Timeout { .. })
    }

    /// Whether the request certainly did nothing, so that sending it again is safe: it was not sent, or an HTTP/2 server
    /// said that it did not look at it.
    pub fn is_unprocessed(&self) -> bool {
        let Failure::Exchange(error) = self else { return matches!(self, Failure::Unsent(_)) };
        let h2 = error.source().and_then(|e| e.downcast_ref::<h2::Error>());
        h2.is_some_and(|e| {
            let reason = e.reason();
            e.is_remote()
                && (reason == Some(h2::Reason::REFUSED_STREAM)
                    || e.is_go_away() && reason == Some(h2::Reason::NO_ERROR))
        })
    }

    /// The TLS error behind it, if there is one.
    pub fn tls(&self) -> Option<&rustls::Error> {
        let mut cause: Option<&(dyn StdError + 'static)> = Some(self);
        while let Some(error) = cause {
            if let Some(found) = error.downcast_ref::<rustls::Error>() {
                return Some(found);
            }
            // An `io::Error` does not count what it wraps among its sources.
            if let Some(io) = error.downcast_ref::<io::Error>()
                && let Some(inner) = io.get_ref()
            {
                cause = Some(inner);
                continue;
            }
            cause = error.source();
        }
        None
    }

    /// The TLS alert that the other side sent, if that is what ended it.
    pub fn alert(&self) -> Option<AlertDescription> {
        match self.tls() {
            Some(rustls::Error::AlertReceived(alert)) => Some(*alert),
            _ => None,
        }
    }

    /// What had come of the answer, if its headers came.
    pub fn partial(&self) -> Option<&Answer> {
        match self {
            Failure::Body { answer, .. } | Failure::NotUpgraded(answer) => Some(answer),
            _ => None,
        }
    }
}

/// Waits for a step, at most `after`.
pub(super) async fn within<T>(
    what: &'static str,
    after: Duration,
    step: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::time::timeout(after, step).await.unwrap_or(Err(Failure::Timeout { what, after }))
}
