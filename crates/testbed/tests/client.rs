//! The client against the echo backend, in every protocol: what one side says the other sees, and the other way round.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "client/bytes.rs"]
mod bytes;
#[path = "client/grpc.rs"]
mod grpc;
#[path = "client/http.rs"]
mod http;
#[path = "client/tls.rs"]
mod tls;
#[path = "client/websocket.rs"]
mod websocket;
