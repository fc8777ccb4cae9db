//! The way to a server: TCP from the wanted address, the preamble, TLS; and bytes and datagrams over it, for TCP
//! routes, for requests that no well-behaved client would write, for UDP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use echo::TlsSeen;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio_rustls::TlsConnector;

use super::{Client, Failure, failure};

/// An open connection of bytes, over TLS when its client speaks TLS.
pub struct Wire {
    stream: Box<dyn Stream>,
    tls: Option<TlsSeen>,
    local: SocketAddr,
    timeout: Duration,
}

impl Wire {
    pub(super) async fn open(client: &Client) -> Result<Wire, Failure> {
        let Dialed { stream, tls, local, .. } = dial(client).await?;
        Ok(Wire { stream, tls, local, timeout: client.timeout })
    }

    /// Its TLS session.
    pub fn tls(&self) -> Option<&TlsSeen> {
        self.tls.as_ref()
    }

    /// This end of it.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Sends bytes.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
        let Wire { stream, timeout, .. } = self;
        failure::within("bytes to be taken", *timeout, async {
            stream.write_all(bytes.as_ref()).await?;
            Ok(stream.flush().await?)
        })
        .await
    }

    /// Says that no more will be sent.
    pub async fn finish(&mut self) -> Result<(), Failure> {
        Ok(self.stream.shutdown().await?)
    }

    /// Waits for exactly this many bytes.
    pub async fn read_exact(&mut self, count: usize) -> Result<Vec<u8>, Failure> {
        let Wire { stream, timeout, .. } = self;
        failure::within("bytes", *timeout, async {
            let mut bytes = vec![0; count];
            stream.read_exact(&mut bytes).await?;
            Ok(bytes)
        })
        .await
    }

    /// Waits for bytes up to and including a mark, such as `\r\n\r\n`.
    pub async fn read_until(&mut self, mark: &[u8]) -> Result<Vec<u8>, Failure> {
        let Wire { stream, timeout, .. } = self;
        failure::within("the end of a message", *timeout, async {
            let mut bytes = Vec::new();
            while !bytes.ends_with(mark) {
                bytes.push(stream.read_u8().await?);
            }
            Ok(bytes)
        })
        .await
    }

    /// Reads until the other side closes.
    pub async fn read_to_end(&mut self) -> Result<Vec<u8>, Failure> {
        let Wire { stream, timeout, .. } = self;
        failure::within("the connection to be closed", *timeout, async {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await?;
            Ok(bytes)
        })
        .await
    }
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").field("local", &self.local).field("tls", &self.tls).finish_non_exhaustive()
    }
}

pub(super) async fn datagram(client: &Client, datagram: &[u8]) -> Result<Vec<u8>, Failure> {
    let any = if client.addr.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((client.from.unwrap_or(any), 0)).await?;
    socket.connect(client.addr).await.map_err(|source| Failure::Connect { addr: client.addr, source })?;
    socket.send(datagram).await?;
    let mut buffer = vec![0; 64 * 1024];
    let n = socket.recv(&mut buffer).await?;
    buffer.truncate(n);
    Ok(buffer)
}

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
