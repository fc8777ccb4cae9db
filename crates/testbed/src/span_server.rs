//! A server that takes spans over HTTP: Zipkin's API and that of Datadog's agent, as far as Envoy uses them.
//!
//! In: requests of any path. Out: 202 for each, and what was in them ([`SpanServer::posts`]).

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::{Net, backend::Error};

/// Zipkin's usual port.
const PORT: u16 = 9411;

/// A request that it was sent.
#[derive(Clone, Debug)]
pub struct Post {
    /// Its path.
    pub path: String,
    /// Its Host.
    pub host: String,
    /// Its content type.
    pub content_type: String,
    /// Its body.
    pub body: Bytes,
}

/// A running server; dropping it ends it.
#[derive(Debug)]
pub struct SpanServer {
    address: SocketAddr,
    posts: Arc<Mutex<Vec<Post>>>,
    _tasks: JoinSet<()>,
}

impl SpanServer {
    /// Starts one at an address of its own.
    pub async fn start() -> Result<SpanServer, Error> {
        let listener = TcpListener::bind((Net::here()?.address(), PORT)).await.map_err(Error::Listen)?;
        let address = listener.local_addr().map_err(Error::Listen)?;
        let posts: Arc<Mutex<Vec<Post>>> = Arc::default();
        let mut tasks = JoinSet::new();
        let taken = posts.clone();
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let posts = taken.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| take(posts.clone(), request));
                    let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let _ended = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(SpanServer { address, posts, _tasks: tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it was sent so far.
    pub fn posts(&self) -> Vec<Post> {
        self.posts.lock().clone()
    }

    /// The spans of Zipkin's JSON that it was sent.
    pub fn zipkin_spans(&self) -> Vec<Value> {
        let lists = self.posts().into_iter().filter_map(|post| serde_json::from_slice::<Vec<Value>>(&post.body).ok());
        lists.flatten().collect()
    }
}

async fn take(posts: Arc<Mutex<Vec<Post>>>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let header = |name: &str| {
        let value = request.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (path, content_type, mut host) = (request.uri().path().to_owned(), header("content-type"), header("host"));
    if let Some(authority) = request.uri().authority() {
        host = authority.to_string();
    }
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    posts.lock().push(Post { path, host, content_type, body });
    let mut answer = Response::new(Full::new(Bytes::from_static(b"{}")));
    *answer.status_mut() = StatusCode::ACCEPTED;
    Ok(answer)
}
