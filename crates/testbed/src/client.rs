//! A client that reaches a proxy in every way people do, and tells everything about the answer.
//!
//! In: an address, and how to speak to it: the `Host`, the TLS server name and the address are chosen apart from each
//! other, as attackers and load balancers do. Out: an [`Answer`] with status, headers, trailers, body, the peer's
//! certificate, timings, or a [`Failure`] that says at which step it ended. Nothing is pooled and nothing is retried: a
//! request opens its own connection, unless it is made on a [`Connection`].
//!
//! ```no_run
//! # async fn example(addr: std::net::SocketAddr, ca: testbed::certs::Ca) -> Result<(), testbed::client::Failure> {
//! use testbed::Client;
//! let client = Client::new(addr).host("a.example.com").https().trust(&ca);
//! let answer = client.get("/x").header("x-echo-status", "201").await?;
//! assert_eq!(answer.status, 201);
//! assert_eq!(answer.echo().name, "a");
//!
//! let connection = client.http2().connect().await?;
//! assert!(!connection.get("/1").await?.reused);
//! assert!(connection.get("/2").await?.reused);
//! # Ok(())
//! # }
//! ```

mod answer;
mod connection;
mod failure;
mod grpc;
mod request;
mod tls;
mod websocket;
mod wire;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::certs::{Ca, Leaf};
use tls::Tls;

pub use answer::{Answer, Timings};
pub use connection::Connection;
pub use failure::Failure;
pub use grpc::{GrpcAnswer, GrpcCall, GrpcStream};
pub(crate) use request::Exchange;
pub use request::Request;
pub use tls::{Signatures, TlsVersion};
pub use websocket::WebSocket;
pub use wire::Wire;

/// How requests are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Http10,
    Http1,
    Http2,
}

/// Where requests go and how; cheap to copy, so tests derive one from another.
#[derive(Clone, Debug)]
pub struct Client {
    addr: SocketAddr,
    from: Option<IpAddr>,
    host: String,
    protocol: Protocol,
    tls: Option<Tls>,
    preamble: Bytes,
    headers: HeaderMap,
    timeout: Duration,
}

impl Client {
    /// Plain HTTP/1.1 to this address; the `Host` is the address until [`Client::host`] says otherwise.
    pub fn new(addr: SocketAddr) -> Client {
        Client {
            addr,
            from: None,
            host: addr.to_string(),
            protocol: Protocol::Http1,
            tls: None,
            preamble: Bytes::new(),
            headers: HeaderMap::new(),
            timeout: Duration::from_secs(10),
        }
    }

    /// The same to another address.
    pub fn to(mut self, addr: SocketAddr) -> Client {
        self.addr = addr;
        self
    }

    /// Comes from this address. In the sandbox every address of the test network will do.
    pub fn from(mut self, ip: impl Into<IpAddr>) -> Client {
        self.from = Some(ip.into());
        self
    }

    /// The `Host` header, or `:authority`; also the TLS server name, unless [`Client::sni`] names another.
    pub fn host(mut self, host: impl Into<String>) -> Client {
        self.host = host.into();
        self
    }

    /// Speaks TLS. Any certificate will do, until [`Client::trust`] says whose.
    pub fn https(self) -> Client {
        self.with_tls(|_| ())
    }

    /// The server name that the TLS handshake asks for.
    pub fn sni(self, name: impl Into<String>) -> Client {
        let name = name.into();
        self.with_tls(|tls| tls.sni = Some(name))
    }

    /// A TLS handshake without a server name.
    pub fn no_sni(self) -> Client {
        self.with_tls(|tls| tls.hide_sni = true)
    }

    /// Takes only certificates from this authority, for the name asked for.
    pub fn trust(self, ca: &Ca) -> Client {
        self.with_tls(|tls| tls.roots = Some(ca.roots()))
    }

    /// Takes any certificate.
    pub fn accept_any(self) -> Client {
        self.with_tls(|tls| tls.roots = None)
    }

    /// Verifies signatures of this type of key only, of any certificate.
    pub fn signatures(self, signatures: Signatures) -> Client {
        self.with_tls(|tls| (tls.roots, tls.signatures) = (None, Some(signatures)))
    }

    /// Presents this certificate when asked for one.
    pub fn identity(self, leaf: &Leaf) -> Client {
        self.with_tls(|tls| tls.identity = Some(leaf.clone()))
    }

    /// The TLS versions it offers.
    pub fn tls_versions(self, min: TlsVersion, max: TlsVersion) -> Client {
        self.with_tls(|tls| tls.versions = (min, max))
    }

    /// The protocols it offers in the handshake; without this, those of the HTTP version in use.
    pub fn alpn(self, protocols: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Client {
        let protocols = protocols.into_iter().map(Into::into).collect();
        self.with_tls(|tls| tls.alpn = Some(protocols))
    }

    fn with_tls(mut self, change: impl FnOnce(&mut Tls)) -> Client {
        change(self.tls.get_or_insert_default());
        self
    }

    /// Speaks HTTP/2: over TLS by ALPN, without TLS by prior knowledge.
    pub fn http2(mut self) -> Client {
        self.protocol = Protocol::Http2;
        self
    }

    /// Speaks HTTP/1.1.
    pub fn http1(mut self) -> Client {
        self.protocol = Protocol::Http1;
        self
    }

    /// Speaks HTTP/1.0.
    pub fn http10(mut self) -> Client {
        self.protocol = Protocol::Http10;
        self
    }

    /// Bytes sent before anything else, TLS included: a PROXY protocol header, say.
    pub fn preamble(mut self, bytes: impl Into<Bytes>) -> Client {
        self.preamble = bytes.into();
        self
    }

    /// A header on every request.
    ///
    /// # Panics
    /// When it is none.
    pub fn header(mut self, name: &str, value: &str) -> Client {
        let (name, value) = header(name, value);
        self.headers.append(name, value);
        self
    }

    /// How long one exchange may take, connecting included; 10 s unless told otherwise.
    pub fn timeout(mut self, timeout: Duration) -> Client {
        self.timeout = timeout;
        self
    }

    pub(crate) fn is_http2(&self) -> bool {
        self.protocol == Protocol::Http2
    }

    /// Where it goes.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A GET; await it.
    pub fn get(&self, path: &str) -> Request {
        self.request(Method::GET, path)
    }

    /// A POST; await it.
    pub fn post(&self, path: &str, body: impl Into<Bytes>) -> Request {
        self.request(Method::POST, path).body(body)
    }

    /// Any request; await it.
    pub fn request(&self, method: Method, path: &str) -> Request {
        Request::new(Exchange::Own(Box::new(self.clone())), method, path)
    }

    /// Opens a connection to make several requests on.
    pub async fn connect(&self) -> Result<Connection, Failure> {
        failure::within("the connection", self.timeout, Connection::open(self)).await
    }

    /// Calls a gRPC method, such as `/sesame.echo.v1.Echo/Say`, with one message; await it.
    pub fn grpc<R: prost::Message + Default>(&self, method: &str, message: &impl prost::Message) -> GrpcCall<R> {
        GrpcCall::new(self.clone().http2().request(Method::POST, method), message)
    }

    /// Calls a gRPC method that takes and gives any number of messages, such as `/sesame.echo.v1.Echo/Say`, and leaves it open.
    pub async fn grpc_stream(&self, method: &str) -> Result<GrpcStream, Failure> {
        let connection = self.clone().http2().connect().await?;
        failure::within("the gRPC stream", self.timeout, GrpcStream::open(connection, method)).await
    }

    /// Opens a WebSocket. For one with headers, see [`Request::websocket`].
    pub async fn websocket(&self, path: &str) -> Result<WebSocket, Failure> {
        self.get(path).websocket().await
    }

    /// Opens a connection for bytes of one's own, over TLS when the client speaks TLS.
    pub async fn open(&self) -> Result<Wire, Failure> {
        failure::within("the connection", self.timeout, Wire::open(self)).await
    }

    /// Sends these bytes and reads until the other side closes.
    pub async fn raw(&self, bytes: impl AsRef<[u8]>) -> Result<Vec<u8>, Failure> {
        let mut wire = self.open().await?;
        wire.write(bytes).await?;
        wire.read_to_end().await
    }

    /// Sends one datagram and waits for one.
    pub async fn udp(&self, datagram: impl AsRef<[u8]>) -> Result<Vec<u8>, Failure> {
        failure::within("a datagram", self.timeout, wire::datagram(self, datagram.as_ref())).await
    }
}

/// A header from text that a test wrote.
fn header(name: &str, value: &str) -> (HeaderName, HeaderValue) {
    let name = name.parse().unwrap_or_else(|e| panic!("header name {name:?}: {e}"));
    let value = value.parse().unwrap_or_else(|e| panic!("header value {value:?}: {e}"));
    (name, value)
}
