//! Futures that are done when a part is there: its port accepts, its HTTP endpoint answers.
//!
//! Nothing announces these from outside, so they look again and again. They never fail: give them to
//! [`Process::expect`](crate::Process::expect), which adds the deadline and notices when the process dies.

use std::net::SocketAddr;

use tokio::net::TcpStream;

use crate::deadline::REST;
use crate::http;

/// Done when `address` accepts a connection.
pub async fn port(address: SocketAddr) {
    while TcpStream::connect(address).await.is_err() {
        tokio::time::sleep(REST).await;
    }
}

/// Done when a GET of `path` at `address` answers 200; gives the body.
pub async fn http(address: SocketAddr, path: &str) -> String {
    loop {
        if let Ok(stream) = TcpStream::connect(address).await
            && let Ok(answer) = http::ask(stream, ::http::Method::GET, &address.to_string(), path).await
            && answer.status == ::http::StatusCode::OK
        {
            return answer.body;
        }
        tokio::time::sleep(REST).await;
    }
}
