//! A server of Envoy's access log service: it takes entries over gRPC and h2c.
//!
//! In: streams of `StreamAccessLogs`. Out: the entries so far ([`LogServer::requests`], [`LogServer::connections`]).

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use envoy_api::Message;
use envoy_api::envoy::data::accesslog::v3::{HttpAccessLogEntry, TcpAccessLogEntry};
use envoy_api::envoy::service::accesslog::v3::{StreamAccessLogsMessage, stream_access_logs_message::LogEntries};
use h2::{RecvStream, server::SendResponse};
use http::{Request, Response};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::{Net, backend::Error};

/// The bytes before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// A running server; dropping it ends it.
#[derive(Debug)]
pub struct LogServer {
    address: SocketAddr,
    entries: Arc<Mutex<Entries>>,
    _tasks: JoinSet<()>,
}

/// What it was sent.
#[derive(Debug, Default)]
struct Entries {
    requests: Vec<HttpAccessLogEntry>,
    connections: Vec<TcpAccessLogEntry>,
    names: Vec<String>,
}

impl LogServer {
    /// Starts one at an address of its own, on port 80.
    pub async fn start() -> Result<LogServer, Error> {
        let listener = TcpListener::bind((Net::here()?.address(), 80)).await.map_err(Error::Listen)?;
        let address = listener.local_addr().map_err(Error::Listen)?;
        let entries: Arc<Mutex<Entries>> = Arc::default();
        let mut tasks = JoinSet::new();
        let taken = entries.clone();
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(connection(stream, taken.clone()));
            }
        });
        Ok(LogServer { address, entries, _tasks: tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The entries of HTTP requests so far.
    pub fn requests(&self) -> Vec<HttpAccessLogEntry> {
        self.entries.lock().requests.clone()
    }

    /// The entries of TCP connections so far.
    pub fn connections(&self) -> Vec<TcpAccessLogEntry> {
        self.entries.lock().connections.clone()
    }

    /// The names of the logs that were sent to it.
    pub fn names(&self) -> Vec<String> {
        self.entries.lock().names.clone()
    }
}

async fn connection(stream: TcpStream, entries: Arc<Mutex<Entries>>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(call(request, respond, entries.clone()));
    }
}

/// Takes the messages of a stream; nothing is answered until the client ends it.
async fn call(request: Request<RecvStream>, mut respond: SendResponse<Bytes>, entries: Arc<Mutex<Entries>>) {
    let head = Response::builder().header("content-type", "application/grpc").body(()).unwrap_or_default();
    let Ok(_kept) = respond.send_response(head, false) else { return };
    let mut body = request.into_body();
    let mut bytes = BytesMut::new();
    while let Some(Ok(chunk)) = body.data().await {
        let _released = body.flow_control().release_capacity(chunk.len());
        bytes.extend_from_slice(&chunk);
        while let Some(message) = message(&mut bytes) {
            let Ok(message) = StreamAccessLogsMessage::decode(message) else { return };
            let mut entries = entries.lock();
            entries.names.extend(message.identifier.map(|identifier| identifier.log_name));
            match message.log_entries {
                Some(LogEntries::HttpLogs(logs)) => entries.requests.extend(logs.log_entry),
                Some(LogEntries::TcpLogs(logs)) => entries.connections.extend(logs.log_entry),
                None => {}
            }
        }
    }
}

/// The next message that has arrived as a whole.
fn message(bytes: &mut BytesMut) -> Option<Bytes> {
    let length = u32::from_be_bytes(bytes.get(1..PREFIX)?.try_into().ok()?);
    let length = usize::try_from(length).ok()?;
    if bytes.len() < PREFIX + length {
        return None;
    }
    bytes.advance(PREFIX);
    Some(bytes.split_to(length).freeze())
}
