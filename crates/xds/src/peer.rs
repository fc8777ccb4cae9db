//! Streams between replicas, on the port and under the certificates of the xDS server.
//!
//! In: connections of other replicas ([`Server::peers`](crate::Server::peers)), or the address of one ([`connect`]). Out: a
//! [`Peer`], which takes and gives messages; what they say is not known here. A replica authenticates with the certificate
//! that it serves with, so there is nothing more to set up, and an Envoy's certificate opens nothing.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::{Method, Request, header};
use hyper::body::Frame;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::service::grpc::{Item, Messages, ResponseSender};
use crate::tls::TlsFiles;
use crate::wire::response::Message;
use tls::TlsError;

/// The path of the stream between replicas.
pub(crate) const PATH: &str = "/sesame.replicas.v1.Replicas/Stream";
/// How large a message may be.
pub const LARGEST: usize = 16 << 20;
/// How long it may take to connect.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How often a silent replica is asked for a sign of life, and how long it may take.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5));

/// Why there is no stream to another replica.
#[derive(Debug, Error)]
pub enum PeerError {
    /// It cannot be reached.
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    /// Our own certificate cannot be read.
    #[error("no client certificate")]
    Tls(#[from] TlsError),
    /// It does not speak HTTP/2.
    #[error("HTTP/2 failed")]
    Http(#[from] hyper::Error),
    /// It lets nobody in, or not us.
    #[error("rejected: {0}")]
    Refused(String),
    /// It does not answer.
    #[error("no answer within {TIMEOUT:?}")]
    Late,
}

enum Out {
    Served(ResponseSender),
    /// The connection is there for as long as somebody may send requests on it.
    Dialled {
        frames: mpsc::Sender<Bytes>,
        _connection: SendRequest<Frames>,
    },
}

/// A stream to another replica, opened by either side. It ends when either half is dropped.
pub struct Peer {
    /// Where it is, or comes from.
    pub address: SocketAddr,
    /// What the other side says.
    pub receiver: PeerReceiver,
    /// What is said to it. Both sides may have much to say at once, so neither may wait for the other to be silent.
    pub sender: PeerSender,
}

/// The half of a stream that takes messages.
pub struct PeerReceiver {
    address: SocketAddr,
    messages: Messages,
    half: Half,
}

/// The half of a stream that gives messages.
pub struct PeerSender(Half);

/// What both halves know of the stream.
struct Half {
    out: Arc<Out>,
    stop: CancellationToken,
}

impl Drop for Half {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Peer {
    pub(crate) fn served(
        address: SocketAddr,
        messages: Messages,
        out: ResponseSender,
        stop: CancellationToken,
    ) -> Self {
        Self::new(address, messages, Out::Served(out), stop)
    }

    fn new(address: SocketAddr, messages: Messages, out: Out, stop: CancellationToken) -> Self {
        let out = Arc::new(out);
        let half = || Half { out: out.clone(), stop: stop.clone() };
        Self { address, receiver: PeerReceiver { address, messages, half: half() }, sender: PeerSender(half()) }
    }
}

impl PeerReceiver {
    /// The next message; `None` when the other side is gone. Can be dropped and called again at any time.
    pub async fn next(&mut self) -> Option<Bytes> {
        let closed = async {
            match &*self.half.out {
                Out::Served(out) => out.closed().await,
                Out::Dialled { frames, .. } => frames.closed().await,
            }
        };
        tokio::select! {
            message = self.messages.next() => message.unwrap_or_else(|status| {
                debug!(address = %self.address, "a replica's stream broke: {}", status.message());
                None
            }),
            () = closed => None,
            () = self.half.stop.cancelled() => None,
        }
    }
}

impl PeerSender {
    /// Sends a message when there is room; `false` if the other side is gone.
    pub async fn send(&self, message: &[u8]) -> bool {
        let mut frame = BytesMut::with_capacity(5 + message.len());
        frame.put_u8(0);
        let Ok(length) = u32::try_from(message.len()) else { return false };
        frame.put_u32(length);
        frame.put_slice(message);
        let frame = frame.freeze();
        match &*self.0.out {
            Out::Served(out) => out.send(Item::Message(Message { head: frame, body: Bytes::new() })).await,
            Out::Dialled { frames, .. } => frames.send(frame).await.is_ok(),
        }
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Opens a stream to the replica at `host:port`, with the certificate that this one serves with, or without any.
pub async fn connect(address: &str, tls: Option<&TlsFiles>) -> Result<Peer, PeerError> {
    let connecting = async {
        let stream = TcpStream::connect(address).await.map_err(PeerError::Connect)?;
        let peer = stream.peer_addr().map_err(PeerError::Connect)?;
        stream.set_nodelay(true).map_err(PeerError::Connect)?;
        let Some(files) = tls else { return open(stream, peer).await };
        let connector = TlsConnector::from(Arc::new(files.client()?));
        // The name stands for either of those that a server may have: see the verifier.
        let name = ServerName::try_from("sesame").expect("a name");
        open(connector.connect(name, stream).await.map_err(PeerError::Connect)?, peer).await
    };
    time::timeout(TIMEOUT, connecting).await.unwrap_or(Err(PeerError::Late))
}

async fn open<S>(stream: S, address: SocketAddr) -> Result<Peer, PeerError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE.0)
        .keep_alive_timeout(KEEPALIVE.1)
        .handshake(TokioIo::new(stream))
        .await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            debug!(%address, %error, "the connection to a replica ended");
        }
    });
    let (out, frames) = mpsc::channel(1);
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("https://sesame{PATH}"))
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .body(Frames(frames))
        .expect("parts that are fixed make a request");
    let response = sender.send_request(request).await?;
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(status) = header("grpc-status") {
        let why = header("grpc-message").unwrap_or(status);
        return Err(PeerError::Refused(why.replace("%20", " ")));
    }
    if !response.status().is_success() {
        return Err(PeerError::Refused(response.status().to_string()));
    }
    let messages = Messages::new(response.into_body(), LARGEST);
    let out = Out::Dialled { frames: out, _connection: sender };
    Ok(Peer::new(address, messages, out, CancellationToken::new()))
}

/// The body of a request that goes on for as long as there is something to say.
struct Frames(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Frames {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(cx).map(|frame| frame.map(|bytes| Ok(Frame::data(bytes))))
    }
}
