//! A small backend that answers with what it saw, for tests, for demos and for people who debug a route.
//!
//! In: requests over HTTP/1.1, h2c and HTTP/2 (one port, told apart by the first bytes), the same over TLS, gRPC,
//! WebSocket, plain TCP and UDP. Out: a JSON document ([`Seen`]) that tells which backend answered and what reached
//! it, byte for byte where that matters. It lives in the product, not only in its tests, because the first question of
//! anyone who debugs an ingress is "what does my backend get?".
//!
//! ```no_run
//! # async fn example() -> Result<(), echo::Error> {
//! let running = echo::Echo::builder().name("a").http("127.0.0.1:0".parse().unwrap()).start().await?;
//! println!("answers on {}", running.http());
//! running.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Directives
//!
//! A request asks for a special answer by `x-echo-*` headers. Headers and not query parameters, because they pass
//! through path rewrites, WebSocket handshakes and gRPC metadata alike:
//!
//! | header | answer |
//! |---|---|
//! | `x-echo-delay: 250ms` | waits before it answers (`ms`, `s`, `m`) |
//! | `x-echo-status: 503` | has this status |
//! | `x-echo-header: name: value` | has this header; may be repeated |
//! | `x-echo-trailer: name: value` | ends with this trailer; may be repeated |
//! | `x-echo-size: 1048576` | has a body of that many bytes instead of the JSON document |
//! | `x-echo-chunk: 1024` | sends the body in pieces of that many bytes, without a content length |
//! | `x-echo-pause: 100ms` | waits before each piece but the first |
//! | `x-echo-reset: before` | cuts the connection (HTTP/2: the stream) `before` the headers, after the `headers`, or within the `body` |
//! | `x-echo-grpc-status: 14` | ends a gRPC call with this status |
//!
//! A directive that cannot be read is answered with 400 and the reason. Every answer names the backend in `x-echo-name`.
//!
//! TCP and UDP give back what they get; a first TCP chunk, a datagram or a WebSocket text that says [`WHO`] is answered
//! with a JSON line that tells who this is ([`Who`]; WebSocket: [`Seen`]).

mod builder;
mod directives;
pub mod grpc;
mod http;
mod listen;
mod running;
mod seen;
mod tls;
pub mod websocket;

pub use builder::{Builder, Echo, Error};
pub use running::{Kind, Running};
pub use seen::{BodySeen, CertificateSeen, Seen, TlsSeen, Who};
pub use tls::{Tls, TlsError};

/// The question that TCP, UDP and WebSocket backends answer with who they are; a line end after it does not matter.
pub const WHO: &str = "who?";

/// Whether these bytes are the question [`WHO`].
pub(crate) fn asks_who(bytes: &[u8]) -> bool {
    bytes.trim_ascii_end() == WHO.as_bytes()
}
