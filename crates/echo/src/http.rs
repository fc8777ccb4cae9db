//! One HTTP connection, of any version: reads each request to its end and gives it to the answer that fits.
//!
//! Of a body the first part is kept and the rest counted. A WebSocket handshake goes to [`websocket`], a gRPC call to
//! [`grpc`], everything else is told what it was ([`answer`]).

mod answer;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tracing::debug;

use crate::directives::{Directives, Reset};
use crate::listen::Connection;
use crate::running::Shared;
use crate::{BodySeen, Seen, grpc, seen, websocket};

/// The header that names the backend on every answer.
pub(crate) const NAME: HeaderName = HeaderName::from_static("x-echo-name");

/// An answer's body.
pub(crate) type Body = UnsyncBoxBody<Bytes, Cut>;

/// An answer that ends where the request asked for it, or whose request broke off.
#[derive(Debug, thiserror::Error)]
#[error("cut off")]
pub(crate) struct Cut;

/// Serves one connection until its peer closes it, or the backend stops and the requests in flight are answered.
pub(crate) async fn serve<S>(connection: Arc<Connection>, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = auto::Builder::new(Tracked(connection.shared.clone()));
    // An idle connection stays open: a backend that closes first makes proxies race with it.
    builder.http1().header_read_timeout(None);
    builder.http2().enable_connect_protocol().max_concurrent_streams(1024);
    let handle = service_fn(|request| handle(connection.clone(), request));
    let mut served = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), handle));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = connection.shared.stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(e) = ended {
        debug!(remote = %connection.remote, "connection ended: {e}");
    }
}

/// Runs the streams of an HTTP/2 connection as tasks of the backend, so that they end with it.
#[derive(Clone, Debug)]
struct Tracked(Arc<Shared>);

impl<F> Executor<F> for Tracked
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, task: F) {
        self.0.spawn(async move {
            task.await;
        });
    }
}

async fn handle(connection: Arc<Connection>, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
    let number = connection.requested();
    debug!(remote = %connection.remote, method = %request.method(), uri = %request.uri(), "request");
    let name = HeaderValue::from_str(connection.shared.name()).ok();
    let mut response = match Directives::read(request.headers()) {
        Ok(directives) => respond(connection, number, request, directives).await?,
        Err(bad) => text(StatusCode::BAD_REQUEST, format!("{bad}\n")),
    };
    if let Some(name) = name {
        response.headers_mut().insert(NAME, name);
    }
    Ok(response)
}

async fn respond(
    connection: Arc<Connection>,
    number: u64,
    request: Request<Incoming>,
    directives: Directives,
) -> Result<Response<Body>, Cut> {
    if directives.status.is_none() && websocket::handshake(&request).is_some() {
        tokio::time::sleep(directives.delay).await;
        let seen = see(&connection, number, request.headers().clone(), &request);
        return match directives.reset {
            Some(Reset::Before) => Err(Cut),
            _ => Ok(websocket::accept(connection.shared.clone(), seen, request, &directives)),
        };
    }
    if request.method() == Method::CONNECT {
        return Ok(text(StatusCode::METHOD_NOT_ALLOWED, "this is no proxy\n".into()));
    }
    let seen = see(&connection, number, request.headers().clone(), &request);
    let (parts, body) = request.into_parts();
    if is_grpc(&parts) {
        return grpc::answer(seen, &parts, body, directives).await;
    }
    let read = read_body(body, connection.shared.kept_body).await?;
    let seen = Seen { body: read.seen, trailers: seen::pairs(&read.trailers), ..seen };
    tokio::time::sleep(directives.delay).await;
    answer::answer(&seen, directives)
}

/// What is known of a request before its body.
fn see(connection: &Connection, request: u64, headers: http::HeaderMap, of: &Request<Incoming>) -> Seen {
    let who = connection.who();
    let uri = of.uri();
    let host = headers.get(http::header::HOST).map(|h| String::from_utf8_lossy(h.as_bytes()).into_owned());
    Seen {
        name: who.name,
        pod: who.pod,
        namespace: who.namespace,
        method: of.method().to_string(),
        path: uri.path().to_owned(),
        query: uri.query().map(str::to_owned),
        host: uri.authority().map(|a| a.to_string()).or(host),
        protocol: format!("{:?}", of.version()),
        headers: seen::pairs(&headers),
        trailers: Vec::new(),
        body: Default::default(),
        tls: who.tls,
        remote: who.remote,
        local: who.local,
        connection: who.connection,
        request,
    }
}

/// `application/grpc`, also with a suffix; not gRPC-Web, whose frames differ.
fn is_grpc(parts: &Parts) -> bool {
    let value = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    value.strip_prefix(b"application/grpc").is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

/// A short answer in plain text.
fn text(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(full(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// A body that is there at once.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// A body that was read.
#[derive(Debug)]
struct Read {
    seen: BodySeen,
    trailers: HeaderMap,
}

/// Reads a body and keeps at most `keep` bytes of it.
async fn read_body(mut body: Incoming, keep: usize) -> Result<Read, Cut> {
    let mut kept = Vec::new();
    let mut length = 0;
    let mut trailers = HeaderMap::new();
    while let Some(frame) = body.frame().await {
        match frame.map_err(|_| Cut)?.into_data() {
            Ok(mut data) => {
                length += data.remaining() as u64;
                let room = keep - kept.len();
                data.truncate(room);
                kept.extend_from_slice(&data);
            }
            Err(frame) => trailers.extend(frame.into_trailers().unwrap_or_default()),
        }
    }
    Ok(Read { seen: BodySeen::new(&kept, length), trailers })
}
