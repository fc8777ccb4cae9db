//! What came back: everything that a test may want to look at.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use echo::{CertificateSeen, Seen, TlsSeen};
use http::{HeaderMap, StatusCode, Version};

/// An answer, read to its end.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The HTTP version of the answer.
    pub version: Version,
    /// The headers.
    pub headers: HeaderMap,
    /// What came after the body.
    pub trailers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The TLS session it came by: the server's certificates are its peer's.
    pub tls: Option<TlsSeen>,
    /// How long each step took.
    pub timings: Timings,
    /// Whether the connection had carried a request before.
    pub reused: bool,
    /// This end of the connection.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
}

/// How long each step took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Until TCP was connected; zero on a connection that was open.
    pub connect: Duration,
    /// The TLS handshake; zero without one.
    pub tls: Duration,
    /// From the request until the answer's headers.
    pub headers: Duration,
    /// From the request until the end of the body.
    pub total: Duration,
}

impl Answer {
    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|v| v.to_str().ok())
    }

    /// All values of a header.
    pub fn header_values(&self, name: &str) -> Vec<&str> {
        self.headers.get_all(name).iter().filter_map(|v| v.to_str().ok()).collect()
    }

    /// A trailer.
    pub fn trailer(&self, name: &str) -> Option<&str> {
        self.trailers.get(name).and_then(|v| v.to_str().ok())
    }

    /// The body as text; what is not UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The certificate that the server presented.
    pub fn certificate(&self) -> Option<&CertificateSeen> {
        self.tls.as_ref().and_then(|tls| tls.peer.first())
    }

    /// What the echo backend says that it saw.
    ///
    /// # Panics
    /// When the answer is not the echo backend's; the message shows the answer.
    pub fn echo(&self) -> Seen {
        self.try_echo().unwrap_or_else(|| {
            panic!("not an answer of the echo backend: {} {:?}\n{}", self.status, self.headers, self.text())
        })
    }

    /// What the echo backend says that it saw, if it was the echo backend that answered.
    pub fn try_echo(&self) -> Option<Seen> {
        serde_json::from_slice(&self.body).ok()
    }

    /// The backend that answered, from the header that every answer of the echo backend has.
    pub fn backend(&self) -> Option<&str> {
        self.header("x-echo-name")
    }
}
