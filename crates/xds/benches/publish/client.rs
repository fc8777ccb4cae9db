//! Clients that cost little: they say what they have, answer what they get, and count.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::{Buf, Bytes, BytesMut};
use envoy_api::Message;
use envoy_api::envoy::config::core::v3::Node;
use envoy_api::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use h2::SendStream;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use xds::Kind;

use super::world::{KINDS, name, version};

/// What clients have when they connect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Everything.
    InStep,
    /// Nothing.
    Cold,
}

#[derive(Clone, Copy)]
struct Progress {
    responses: usize,
    at: Instant,
}

/// Some clients of one server.
pub struct Fleet {
    progress: Vec<watch::Receiver<Progress>>,
    bytes: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Fleet {
    /// Connects clients, a few at a time if they have much to say.
    pub async fn connect(server: SocketAddr, count: usize, size: usize, start: Start) -> Self {
        let requests: Vec<Bytes> = KINDS.into_iter().map(|kind| frame(&subscribe(kind, size, start))).collect();
        let bytes = Arc::new(AtomicUsize::new(0));
        let room = Arc::new(Semaphore::new(if start == Start::Cold { count } else { 4 }));
        let (mut tasks, mut progress) = (JoinSet::new(), Vec::new());
        for _ in 0..count {
            let permit = room.clone().acquire_owned().await.unwrap();
            let (sender, receiver) = watch::channel(Progress { responses: 0, at: Instant::now() });
            progress.push(receiver);
            let (requests, bytes) = (requests.clone(), bytes.clone());
            let (said, heard) = tokio::sync::oneshot::channel();
            tasks.spawn(run_client(server, requests, bytes, sender, said));
            tasks.spawn(async move {
                let _ = heard.await;
                drop(permit);
            });
        }
        let everybody = if start == Start::Cold { count } else { 4 };
        let _all = room.acquire_many(u32::try_from(everybody).unwrap()).await.unwrap();
        Self { progress, bytes, _tasks: tasks }
    }

    /// When the first and the last client had so many responses.
    pub async fn all_got(&self, responses: usize) -> (Instant, Instant) {
        let (mut first, mut last) = (None::<Instant>, None::<Instant>);
        for progress in &self.progress {
            let mut progress = progress.clone();
            let at = progress.wait_for(|progress| progress.responses >= responses).await.unwrap().at;
            first = Some(first.map_or(at, |known| known.min(at)));
            last = Some(last.map_or(at, |known| known.max(at)));
        }
        (first.unwrap(), last.unwrap())
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

fn subscribe(kind: Kind, size: usize, start: Start) -> DeltaDiscoveryRequest {
    let held = (0..size).filter(|_| start == Start::InStep);
    DeltaDiscoveryRequest {
        node: Some(Node { id: "bench".to_owned(), ..Node::default() }),
        type_url: kind.type_url().to_owned(),
        resource_names_subscribe: vec!["*".to_owned()],
        initial_resource_versions: held.map(|at| (name(kind, at), format!("{:016x}", version(kind, at)))).collect(),
        ..Default::default()
    }
}

fn frame(request: &DeltaDiscoveryRequest) -> Bytes {
    let body = request.encode_to_vec();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[0][..], &length[..], &body[..]].concat().into()
}

async fn run_client(
    server: SocketAddr,
    requests: Vec<Bytes>,
    bytes: Arc<AtomicUsize>,
    progress: watch::Sender<Progress>,
    said: tokio::sync::oneshot::Sender<()>,
) {
    let tcp = TcpStream::connect(server).await.unwrap();
    tcp.set_nodelay(true).unwrap();
    let (mut client, connection) =
        h2::client::Builder::new().initial_window_size(1 << 20).handshake::<_, Bytes>(tcp).await.unwrap();
    tokio::spawn(connection);
    let path = "http://sesame/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
    let request = http::Request::post(path).header("content-type", "application/grpc").body(()).unwrap();
    let (response, mut out) = client.send_request(request, false).unwrap();
    let mut body = response.await.unwrap().into_body();
    for request in requests {
        say(&mut out, request).await;
    }
    let _ = said.send(());
    let mut buffer = BytesMut::new();
    while let Some(Ok(data)) = body.data().await {
        body.flow_control().release_capacity(data.len()).unwrap();
        bytes.fetch_add(data.len(), Ordering::Relaxed);
        buffer.extend_from_slice(&data);
        while let Some(message) = message(&mut buffer) {
            let at = Instant::now();
            let answer = answer(&message);
            progress.send_modify(|progress| *progress = Progress { responses: progress.responses + 1, at });
            say(&mut out, answer).await;
        }
    }
}

/// Sends as fast as the server's window allows.
async fn say(out: &mut SendStream<Bytes>, mut bytes: Bytes) {
    while !bytes.is_empty() {
        out.reserve_capacity(bytes.len());
        let Some(Ok(room)) = std::future::poll_fn(|cx| out.poll_capacity(cx)).await else { return };
        out.send_data(bytes.split_to(room.min(bytes.len())), false).unwrap();
    }
}

fn message(buffer: &mut BytesMut) -> Option<Bytes> {
    let (head, _) = buffer.split_first_chunk::<5>()?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if buffer.len() < 5 + length {
        return None;
    }
    buffer.advance(5);
    Some(buffer.split_to(length).freeze())
}

/// The answer to a response, of which only the nonce and the type are looked at: they are its first and its third field.
fn answer(message: &[u8]) -> Bytes {
    let (mut rest, mut nonce, mut url) = (message, "", "");
    while let Some((tag, value)) = field(&mut rest) {
        let text = || std::str::from_utf8(value).unwrap();
        match tag >> 3 {
            5 => nonce = text(),
            4 => url = text(),
            _ => {}
        }
    }
    frame(&DeltaDiscoveryRequest { type_url: url.to_owned(), response_nonce: nonce.to_owned(), ..Default::default() })
}

fn field<'a>(rest: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
    let mut varint = || {
        let mut value = 0;
        for at in 0..10 {
            let (byte, tail) = rest.split_first()?;
            *rest = tail;
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    };
    let (tag, length) = (varint()?, varint()?);
    let (value, tail) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = tail;
    Some((tag, value))
}
