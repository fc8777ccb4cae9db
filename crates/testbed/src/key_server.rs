//! A server that has a JSON Web Key Set, or does anything else that such a server may do to whoever asks it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::Net;

/// What it does with a request.
#[derive(Clone, Debug)]
pub enum KeyAnswer {
    /// Answers 200 with this.
    Document(String),
    /// Answers with these bytes and ends.
    Raw(Vec<u8>),
    /// Never answers.
    Hang,
    /// Resets the connection.
    Reset,
}

/// The server; it ends with this.
pub struct KeyServer {
    address: SocketAddr,
    answer: Arc<Mutex<KeyAnswer>>,
    requests: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl KeyServer {
    /// Starts one on an address that nobody else has, at port 80 or, with TLS, at 443.
    pub async fn start(tls: Option<Arc<ServerConfig>>) -> Result<KeyServer, std::io::Error> {
        let ip = Net::here().map_err(|error| std::io::Error::other(format!("{error:?}")))?.address();
        Self::at(ip, tls).await
    }

    /// The same at this address.
    pub async fn at(ip: Ipv4Addr, tls: Option<Arc<ServerConfig>>) -> Result<KeyServer, std::io::Error> {
        let listener = TcpListener::bind((ip, if tls.is_some() { 443 } else { 80 })).await?;
        let address = listener.local_addr()?;
        let answer = Arc::new(Mutex::new(KeyAnswer::Raw(Vec::new())));
        let requests = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(run(listener, tls.map(TlsAcceptor::from), answer.clone(), requests.clone()));
        Ok(KeyServer { address, answer, requests, task })
    }

    /// Does this from now on.
    pub fn set(&self, answer: KeyAnswer) {
        *self.answer.lock() = answer;
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests it has had.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for KeyServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    answer: Arc<Mutex<KeyAnswer>>,
    requests: Arc<AtomicUsize>,
) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, answer, requests) = (tls.clone(), answer.clone(), requests.clone());
        connections.spawn(async move {
            let _ended = match tls {
                None => answered(stream, &answer, &requests).await,
                Some(tls) => match tls.accept(stream).await {
                    Ok(stream) => answered(stream, &answer, &requests).await,
                    Err(error) => Err(error),
                },
            };
        });
    }
}

/// Closes a connection with a reset.
trait Resets {
    fn reset(&self);
}

impl Resets for TcpStream {
    fn reset(&self) {
        let _best_effort = self.set_zero_linger();
    }
}

impl Resets for tokio_rustls::server::TlsStream<TcpStream> {
    fn reset(&self) {
        self.get_ref().0.reset();
    }
}

async fn answered<S: AsyncRead + AsyncWrite + Resets + Unpin>(
    mut stream: S,
    answer: &Mutex<KeyAnswer>,
    requests: &AtomicUsize,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    requests.fetch_add(1, Ordering::Relaxed);
    let answer = answer.lock().clone();
    match answer {
        KeyAnswer::Document(document) => {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", document.len());
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(document.as_bytes()).await?;
        }
        KeyAnswer::Raw(bytes) => stream.write_all(&bytes).await?,
        KeyAnswer::Hang => std::future::pending().await,
        KeyAnswer::Reset => {
            stream.reset();
            return Ok(());
        }
    }
    stream.shutdown().await
}
