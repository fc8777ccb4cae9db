//! One plain HTTP/1.1 request over a stream of any kind, without a pool and without TLS.
//!
//! In: a connected stream, method, path. Out: status and body. For readiness probes and for the admin interfaces of
//! parts; tests of traffic use the client that reports everything.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::report::debug_as_report;

/// A request that got no answer.
#[derive(thiserror::Error)]
pub enum Error {
    /// Nobody accepts there.
    #[error("cannot connect")]
    Connect(#[from] std::io::Error),
    /// The exchange broke.
    #[error("no HTTP answer")]
    Exchange(#[from] hyper::Error),
    /// The path or method is none.
    #[error("not a request")]
    Request(#[from] http::Error),
}
debug_as_report!(Error);

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: http::StatusCode,
    /// The body, as text.
    pub body: String,
}

/// Sends one request and reads the whole answer.
pub async fn ask<S>(stream: S, method: http::Method, host: &str, path: &str) -> Result<Answer, Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::HOST, host)
        .header(http::header::CONNECTION, "close")
        .body(Empty::<Bytes>::new())?;
    let exchange = async {
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        Ok(Answer { status, body: String::from_utf8_lossy(&body).into_owned() })
    };
    // The connection runs here and not in a task of its own, so that giving up on the request also ends it.
    let mut connection = std::pin::pin!(connection);
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        biased;
        answer = &mut exchange => answer,
        _ = &mut connection => exchange.await,
    }
}
