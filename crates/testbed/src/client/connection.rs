//! One open connection that carries requests: one after the other in HTTP/1.1, side by side in HTTP/2.
//!
//! For tests that must see that a connection survives a change, and for [`Load`](crate::Load)'s pool. The connection
//! runs in a task of its own and ends when the last handle is dropped.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use echo::TlsSeen;
use futures::{StreamExt, stream};
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method, Uri, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::sync::{Mutex, watch};
use tokio::task::AbortHandle;

use super::request::Parts;
use super::wire::{Dialed, dial};
use super::{Answer, Client, Failure, Protocol, Request, Timings};

type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;

/// An open connection; copies are handles of the same one.
#[derive(Clone, Debug)]
pub struct Connection(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: Client,
    sender: Sender,
    requests: AtomicU64,
    tls: Option<TlsSeen>,
    local: SocketAddr,
    remote: SocketAddr,
    timings: Timings,
    open: watch::Receiver<bool>,
    task: AbortHandle,
}

#[derive(Debug)]
enum Sender {
    /// Held until the answer is read to its end.
    Http1(Mutex<http1::SendRequest<Body>>),
    Http2(http2::SendRequest<Body>),
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    pub(super) async fn open(client: &Client) -> Result<Connection, Failure> {
        let Dialed { stream, tls, local, remote, connect, handshake } = dial(client).await?;
        let io = TokioIo::new(stream);
        let (is_open, open) = watch::channel(true);
        // The connection's own error is not kept: the request that it broke reports it.
        let (sender, task) = match client.protocol {
            Protocol::Http2 => {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
                let run = async move { (connection.await.is_ok(), drop(is_open)).0 };
                (Sender::Http2(sender), tokio::spawn(run).abort_handle())
            }
            Protocol::Http1 | Protocol::Http10 => {
                let (sender, connection) = http1::handshake(io).await?;
                let run = async move { (connection.with_upgrades().await.is_ok(), drop(is_open)).0 };
                (Sender::Http1(Mutex::new(sender)), tokio::spawn(run).abort_handle())
            }
        };
        let timings = Timings { connect, tls: handshake, ..Timings::default() };
        let (client, requests) = (client.clone(), AtomicU64::new(0));
        Ok(Connection(Arc::new(Inner { client, sender, requests, tls, local, remote, timings, open, task })))
    }

    /// A GET on this connection; await it.
    pub fn get(&self, path: &str) -> Request {
        self.request(Method::GET, path)
    }

    /// Any request on this connection; await it.
    pub fn request(&self, method: Method, path: &str) -> Request {
        Request::new(super::Exchange::On(self.clone()), method, path)
    }

    /// Whether the other side has not closed it, as far as is known here.
    pub fn is_open(&self) -> bool {
        self.0.open.has_changed().is_ok()
    }

    /// Waits until the other side closes it.
    pub async fn closed(&self) {
        let mut open = self.0.open.clone();
        while open.changed().await.is_ok() {}
    }

    /// Requests made on it.
    pub fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// Its TLS session.
    pub fn tls(&self) -> Option<&TlsSeen> {
        self.0.tls.as_ref()
    }

    /// This end of it.
    pub fn local(&self) -> SocketAddr {
        self.0.local
    }

    pub(crate) fn is_same(&self, other: &Connection) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn client(&self) -> &Client {
        &self.0.client
    }

    /// Sends one request and reads its answer to the end.
    pub(super) async fn exchange(&self, parts: Parts) -> Result<Answer, Failure> {
        let (answer, body) = self.start(parts).await?;
        body.read(answer).await
    }

    /// Sends one request and reads the headers of its answer.
    pub(super) async fn start(&self, parts: Parts) -> Result<(Answer, Rest<'_>), Failure> {
        let request = self.write(parts)?;
        let reused = self.0.requests.fetch_add(1, Ordering::Relaxed) > 0;
        let start = Instant::now();
        let (response, sender) = match &self.0.sender {
            Sender::Http1(sender) => {
                let mut sender = sender.lock().await;
                sender.ready().await.map_err(Failure::Unsent)?;
                (sender.try_send_request(request).await.map_err(failed)?, Some(sender))
            }
            Sender::Http2(sender) => {
                let mut sender = sender.clone();
                sender.ready().await.map_err(Failure::Unsent)?;
                (sender.try_send_request(request).await.map_err(failed)?, None)
            }
        };
        let timings = if reused { Timings::default() } else { self.0.timings };
        let (head, body) = response.into_parts();
        let answer = Answer {
            status: head.status,
            version: head.version,
            headers: head.headers,
            trailers: HeaderMap::new(),
            body: Bytes::new(),
            tls: self.0.tls.clone(),
            timings: Timings { headers: start.elapsed(), ..timings },
            reused,
            local: self.0.local,
            remote: self.0.remote,
        };
        Ok((answer, Rest { body, extensions: head.extensions, start, _sender: sender }))
    }

    /// Opens a gRPC stream: what `messages` yields is sent as it comes, framed by the caller. HTTP/2 only.
    pub(crate) async fn stream(
        &self,
        method: &str,
        messages: impl stream::Stream<Item = Bytes> + Send + 'static,
    ) -> Result<http::Response<Incoming>, Failure> {
        let Sender::Http2(sender) = &self.0.sender else {
            return Err(Failure::Message("a gRPC stream needs HTTP/2".into()));
        };
        let mut sender = sender.clone();
        let parts = Parts::grpc(method, self.0.client.headers.clone());
        let frames = messages.map(|bytes| Ok(Frame::data(bytes)));
        let request = self.write(parts)?.map(|_| StreamBody::new(frames).boxed_unsync());
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        sender.ready().await.map_err(Failure::Unsent)?;
        sender.try_send_request(request).await.map_err(failed)
    }

    /// A request as this connection's protocol wants it.
    fn write(&self, parts: Parts) -> Result<http::Request<Body>, Failure> {
        let client = &self.0.client;
        let host = parts.host.as_deref().unwrap_or(&client.host);
        let mut request = http::Request::new(parts.body());
        *request.method_mut() = parts.method;
        *request.headers_mut() = parts.headers;
        if let Some(protocol) = parts.protocol {
            request.extensions_mut().insert(protocol);
        }
        if client.protocol == Protocol::Http2 {
            let scheme = if client.tls.is_some() { "https" } else { "http" };
            let uri = Uri::builder().scheme(scheme).authority(host).path_and_query(parts.path);
            *request.uri_mut() = uri.build()?;
        } else {
            *request.uri_mut() = Uri::builder().path_and_query(parts.path).build()?;
            if !request.headers().contains_key(HOST) {
                request.headers_mut().insert(HOST, HeaderValue::try_from(host).map_err(http::Error::from)?);
            }
            if client.protocol == Protocol::Http10 {
                *request.version_mut() = Version::HTTP_10;
            }
        }
        Ok(request)
    }
}

impl Parts {
    fn body(&self) -> Body {
        if self.trailers.is_empty() && self.body.is_empty() {
            return Empty::new().boxed_unsync();
        }
        if self.trailers.is_empty() {
            return Full::new(self.body.clone()).boxed_unsync();
        }
        let frames = [Ok(Frame::data(self.body.clone())), Ok(Frame::trailers(self.trailers.clone()))];
        StreamBody::new(stream::iter(frames)).boxed_unsync()
    }
}

fn failed(error: TrySendError<http::Request<Body>>) -> Failure {
    let mut error = error;
    match error.take_message() {
        Some(_) => Failure::Unsent(error.into_error()),
        None => Failure::Exchange(error.into_error()),
    }
}

/// What follows an answer's headers.
pub(super) struct Rest<'a> {
    body: Incoming,
    pub extensions: http::Extensions,
    start: Instant,
    _sender: Option<tokio::sync::MutexGuard<'a, http1::SendRequest<Body>>>,
}

impl Rest<'_> {
    /// Reads the body and trailers into the answer.
    pub async fn read(mut self, mut answer: Answer) -> Result<Answer, Failure> {
        let mut body = BytesMut::new();
        let broken = loop {
            match self.body.frame().await {
                None => break None,
                Some(Err(source)) => break Some(source),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => body.extend_from_slice(&data),
                    Err(frame) => answer.trailers.extend(frame.into_trailers().unwrap_or_default()),
                },
            }
        };
        answer.body = body.freeze();
        answer.timings.total = self.start.elapsed();
        match broken {
            None => Ok(answer),
            Some(source) => Err(Failure::Body { answer: Box::new(answer), source }),
        }
    }

    /// The answer as a response again, for hyper's upgrade.
    pub fn upgrade(self, answer: &Answer) -> hyper::upgrade::OnUpgrade {
        let mut response = http::Response::new(self.body);
        *response.status_mut() = answer.status;
        *response.extensions_mut() = self.extensions;
        hyper::upgrade::on(response)
    }
}
