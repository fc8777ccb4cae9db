//! Connecting: TCP from the wanted address, the preamble, TLS.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use echo::TlsSeen;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;

use super::{Client, Failure};

/// What bytes go over, plain or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A connection that is open.
pub(super) struct Dialed {
    pub stream: Box<dyn Stream>,
    pub tls: Option<TlsSeen>,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub connect: Duration,
    pub handshake: Duration,
}

pub(super) async fn dial(client: &Client) -> Result<Dialed, Failure> {
    let addr = client.addr;
    let start = Instant::now();
    let connected = tcp(client).await.and_then(|stream| Ok((stream.local_addr()?, stream)));
    let (local, mut stream) = connected.map_err(|source| Failure::Connect { addr, source })?;
    let connect = start.elapsed();
    stream.write_all(&client.preamble).await?;
    let Some(tls) = &client.tls else {
        let handshake = Duration::ZERO;
        return Ok(Dialed { stream: Box::new(stream), tls: None, local, remote: addr, connect, handshake });
    };
    let failed = |source| Failure::Tls { addr, source };
    let name = tls.server_name(&client.host).map_err(|e| failed(io::Error::other(e)))?;
    let config = tls.config(client.protocol).map_err(|e| failed(io::Error::other(e)))?;
    let sni = (!tls.hide_sni).then(|| name.to_str().into_owned());
    let start = Instant::now();
    let session = TlsConnector::from(config).connect(name, stream).await.map_err(failed)?;
    let handshake = start.elapsed();
    let tls = Some(TlsSeen { sni, ..TlsSeen::of(session.get_ref().1) });
    Ok(Dialed { stream: Box::new(session), tls, local, remote: addr, connect, handshake })
}

async fn tcp(client: &Client) -> io::Result<TcpStream> {
    let socket = if client.addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(ip) = client.from {
        socket.bind((ip, 0).into())?;
    }
    socket.set_nodelay(true)?;
    socket.connect(client.addr).await
}
