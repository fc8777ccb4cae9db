//! A request on its way to be awaited: `client.get("/x").header("a", "b").await`.

use std::future::IntoFuture;
use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, Method};

use super::{Answer, Client, Connection, Failure, WebSocket, failure, header, websocket};

/// What a request travels on.
#[derive(Clone, Debug)]
pub(crate) enum Exchange {
    /// A connection of its own.
    Own(Box<Client>),
    /// A connection that is open.
    On(Connection),
}

/// What a request says.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub method: Method,
    pub path: String,
    pub host: Option<String>,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub trailers: HeaderMap,
    /// What an extended CONNECT is to become.
    pub protocol: Option<hyper::ext::Protocol>,
}

impl Parts {
    /// A gRPC call without its messages.
    pub fn grpc(method: &str, mut headers: HeaderMap) -> Parts {
        for (name, value) in [("content-type", "application/grpc"), ("te", "trailers")] {
            let (name, value) = header(name, value);
            headers.insert(name, value);
        }
        let (path, body, trailers) = (method.to_owned(), Bytes::new(), HeaderMap::new());
        Parts { method: Method::POST, path, host: None, headers, body, trailers, protocol: None }
    }
}

/// A request; awaiting it sends it and reads the whole answer.
#[derive(Clone, Debug)]
#[must_use = "a request is sent when it is awaited"]
pub struct Request {
    exchange: Exchange,
    parts: Parts,
}

impl Request {
    pub(super) fn new(exchange: Exchange, method: Method, path: &str) -> Request {
        let headers = match &exchange {
            Exchange::Own(client) => client.headers.clone(),
            Exchange::On(connection) => connection.client().headers.clone(),
        };
        let (path, body) = (path.to_owned(), Bytes::new());
        let parts = Parts { method, path, host: None, headers, body, trailers: HeaderMap::new(), protocol: None };
        Request { exchange, parts }
    }

    /// Another host than the client's.
    pub fn host(mut self, host: impl Into<String>) -> Request {
        self.parts.host = Some(host.into());
        self
    }

    /// One more header.
    ///
    /// # Panics
    /// When it is none.
    pub fn header(mut self, name: &str, value: &str) -> Request {
        let (name, value) = header(name, value);
        self.parts.headers.append(name, value);
        self
    }

    /// The body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Request {
        self.parts.body = body.into();
        self
    }

    /// One more trailer after the body.
    ///
    /// # Panics
    /// When it is none.
    pub fn trailer(mut self, name: &str, value: &str) -> Request {
        let (name, value) = header(name, value);
        self.parts.headers.append(http::header::TRAILER, name.clone().into());
        self.parts.trailers.append(name, value);
        self
    }

    /// Opens a WebSocket with this request: an upgrade in HTTP/1.1, an extended CONNECT in HTTP/2.
    pub async fn websocket(self) -> Result<WebSocket, Failure> {
        let timeout = self.client().timeout;
        failure::within("a WebSocket", timeout, async {
            let http2 = self.client().protocol == super::Protocol::Http2;
            let connection = self.exchange.connection().await?;
            websocket::open(connection, self.parts, http2).await
        })
        .await
    }

    /// Sends it on this connection instead.
    pub(crate) fn on(mut self, connection: Connection) -> Request {
        self.exchange = Exchange::On(connection);
        self
    }

    pub(crate) fn client(&self) -> &Client {
        match &self.exchange {
            Exchange::Own(client) => client,
            Exchange::On(connection) => connection.client(),
        }
    }
}

impl Exchange {
    async fn connection(self) -> Result<Connection, Failure> {
        match self {
            Exchange::Own(client) => Connection::open(&client).await,
            Exchange::On(connection) => Ok(connection),
        }
    }
}

impl IntoFuture for Request {
    type Output = Result<Answer, Failure>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Answer, Failure>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let timeout = self.client().timeout;
        Box::pin(failure::within("an answer", timeout, async {
            let connection = self.exchange.connection().await?;
            connection.exchange(self.parts).await
        }))
    }
}
