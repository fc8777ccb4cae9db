//! One request to a debug page, on a connection of its own.

use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use model::Code;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::problem::{Coded, Problem};

/// How long a connection, and the head of an answer, may take.
const LIMIT: Duration = Duration::from_secs(20);
/// How long a whole page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(120);
/// A page that is read as a whole may have so many bytes; a dump is read in pieces.
const MOST_BYTES: usize = 512 << 20;

/// An answer whose body has not been read.
pub struct Answer {
    path: String,
    status: StatusCode,
    body: Incoming,
}

impl Answer {
    /// The page as a type.
    ///
    /// # Errors
    /// That it is another page, or none: the address is not that of a controller, or of one of another version.
    pub async fn json<T: DeserializeOwned>(self) -> Result<T> {
        let path = self.path.clone();
        let body = self.bytes().await?;
        let page = serde_json::from_slice(&body);
        page.coded(Code::NotAController, || format!("{path} is not a page of this version of Sesame"))
    }

    /// The page as bytes.
    pub async fn bytes(self) -> Result<Bytes> {
        let (path, status) = (self.path, self.status);
        let reading = Limited::new(self.body, MOST_BYTES).collect();
        let read =
            timeout(PAGE_TIMEOUT, reading).await.coded(Code::ConnectionFailed, || format!("{path} takes too long"))?;
        let body = match read {
            Ok(body) => body.to_bytes(),
            Err(error) => {
                return Err(Problem::of(Code::ConnectionFailed, format!("{path} was cut off: {error}")));
            }
        };
        if status.is_success() {
            return Ok(body);
        }
        let written = String::from_utf8_lossy(&body);
        let written = written.lines().next().unwrap_or_default().trim();
        let code = if status == StatusCode::NOT_FOUND { Code::NotAController } else { Code::ConnectionFailed };
        Err(Problem::of(code, format!("{path} answers {status}: {written}").trim_end_matches(": ").to_owned()))
    }

    /// The page in pieces, as they come.
    pub async fn each(mut self, mut piece: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if !self.status.is_success() {
            return self.bytes().await.map(drop);
        }
        loop {
            let frame = timeout(PAGE_TIMEOUT, self.body.frame()).await;
            let frame = frame.coded(Code::ConnectionFailed, || format!("{} takes too long", self.path))?;
            let Some(frame) = frame else { return Ok(()) };
            let frame = frame.coded(Code::ConnectionFailed, || format!("{} was cut off", self.path))?;
            if let Some(data) = frame.data_ref() {
                piece(data)?;
            }
        }
    }
}

/// A page at an address.
pub async fn of_address(address: &str, method: Method, path: &str, body: String) -> Result<Answer> {
    let failed = || format!("cannot connect to {address}");
    let connected = timeout(LIMIT, TcpStream::connect(address)).await.coded(Code::ConnectionFailed, failed)?;
    let stream = connected.coded(Code::ConnectionFailed, failed)?;
    ask(stream, address, method, path, body).await
}

/// A page on a connection.
pub async fn ask(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    host: &str,
    method: Method,
    path: &str,
    body: String,
) -> Result<Answer> {
    let request = Request::builder().method(method).uri(path).header(header::HOST, host);
    let request = request.body(Full::new(Bytes::from(body))).context("the page has no valid path")?;
    let asking = async {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the answer.
        tokio::spawn(connection);
        sender.send_request(request).await
    };
    let failed = || format!("{host} does not answer {path}");
    let asked = timeout(LIMIT, asking).await.coded(Code::ConnectionFailed, failed)?;
    let response = asked.coded(Code::ConnectionFailed, failed)?;
    Ok(Answer { path: path.to_owned(), status: response.status(), body: response.into_body() })
}
