//! One request to Envoy, over plaintext or TLS, and the answer.
//!
//! The certificates of the demo are self-signed, so any is accepted.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::{Request, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tls::ServerVerifier;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// An answer.
pub struct Answer {
    pub status: u16,
    pub location: Option<String>,
    /// The backend that answered; none if Envoy did.
    pub backend: Option<String>,
}

/// Sends a request for a host and a path.
pub async fn get(address: SocketAddr, is_tls: bool, host: &str, path: &str) -> Result<Answer> {
    let stream = TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
    if !is_tls {
        return exchange(stream, host, path).await;
    }
    let name = ServerName::try_from(host.to_owned())?;
    let stream = TlsConnector::from(Arc::new(tls_config()?)).connect(name, stream).await?;
    exchange(stream, host, path).await
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    host: &str,
    path: &str,
) -> Result<Answer> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::get(path).header("host", host).body(Empty::<Bytes>::new())?;
    let response = sender.send_request(request).await?;
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (status, location, backend) = (response.status().as_u16(), header("location"), header("x-echo-name"));
    response.into_body().collect().await?;
    Ok(Answer { status, location, backend })
}

fn tls_config() -> Result<ClientConfig> {
    let verifier = Arc::new(ServerVerifier::any_certificate());
    let config = ClientConfig::builder_with_provider(tls::provider()).with_safe_default_protocol_versions()?;
    Ok(config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}
