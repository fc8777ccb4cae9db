//! A port of a pod, by the API server: what `kubectl port-forward` does, for one connection.
//!
//! In: a client of the API server, a pod, a port. Out: a stream of bytes to that port as the pod itself sees it, loopback included.
//! The request is a WebSocket upgrade (`v4.channel.k8s.io`): channel 0 is data, channel 1 what went wrong, and the first two bytes
//! of each are the port.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use aws_lc_rs::rand;
use base64::prelude::{BASE64_STANDARD, Engine};
use http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

use super::cluster::refusal;
use super::websocket::{self, Frame};

/// Bytes that may be on their way in each direction.
const BUFFER: usize = 64 << 10;
const DATA: u8 = 0;

/// A connection to a port of a pod.
pub struct Forwarded {
    /// The bytes.
    pub stream: DuplexStream,
    /// What the node says went wrong, if anything.
    pub problem: Arc<Mutex<Option<String>>>,
}

/// Connects to a port of a pod.
pub async fn connect(client: &Client, namespace: &str, pod: &str, port: u16) -> Result<Forwarded> {
    let mut nonce = [0; 16];
    rand::fill(&mut nonce).map_err(|_| anyhow::anyhow!("no random numbers"))?;
    let request = Request::get(format!("/api/v1/namespaces/{namespace}/pods/{pod}/portforward?ports={port}"))
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, BASE64_STANDARD.encode(nonce))
        .header(header::SEC_WEBSOCKET_PROTOCOL, "v4.channel.k8s.io")
        .body(Body::empty())?;
    let response = client.send(request).await.map_err(|error| refusal(error, "port-forward"))?;
    let status = response.status();
    if status != StatusCode::SWITCHING_PROTOCOLS {
        let body = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        return Err(not_forwarded(status, &body, namespace, pod));
    }
    let upgraded = hyper::upgrade::on(response).await.context("the API server did not upgrade the connection")?;
    let (near, far) = tokio::io::duplex(BUFFER);
    let problem = Arc::new(Mutex::new(None));
    tokio::spawn(pump(TokioIo::new(upgraded), far, problem.clone()));
    Ok(Forwarded { stream: near, problem })
}

fn not_forwarded(status: StatusCode, body: &[u8], namespace: &str, pod: &str) -> anyhow::Error {
    let answer: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let message = answer["message"].as_str().map_or_else(|| status.to_string(), str::to_owned);
    let what = format!("no port-forward to pod {namespace}/{pod}: {message}");
    let rule = "the user needs `get` and `create` on pods/portforward in this namespace";
    let hint = if status == StatusCode::FORBIDDEN { format!("{what} ({rule})") } else { what };
    crate::problem::Problem::of(model::Code::ApiServerFailed, hint)
}

/// Carries bytes until either side ends.
async fn pump(upgraded: TokioIo<hyper::upgrade::Upgraded>, local: DuplexStream, problem: Arc<Mutex<Option<String>>>) {
    let (mut from_node, mut to_node) = tokio::io::split(upgraded);
    let (from_us, to_us) = tokio::io::split(local);
    let (pongs, mut pings) = mpsc::channel::<Vec<u8>>(4);
    let sending = async {
        let mut from_us = from_us;
        // The channel, and what comes after it.
        let mut message = vec![DATA; BUFFER];
        loop {
            tokio::select! {
                read = from_us.read(&mut message[1..]) => match read {
                    // Whoever asked has its answer.
                    Ok(0) | Err(_) => return Ok::<(), anyhow::Error>(()),
                    Ok(length) => websocket::write_binary(&mut to_node, &message[..=length]).await?,
                },
                Some(ping) = pings.recv() => websocket::write_pong(&mut to_node, &ping).await?,
            }
        }
    };
    let receiving = receive(&mut from_node, to_us, pongs, &problem);
    let ended = tokio::select! { ended = sending => ended, ended = receiving => ended };
    if let Err(error) = ended {
        problem.lock().get_or_insert_with(|| format!("{error:#}"));
    }
}

async fn receive(
    from_node: &mut ReadHalf<TokioIo<hyper::upgrade::Upgraded>>,
    mut to_us: WriteHalf<DuplexStream>,
    pongs: mpsc::Sender<Vec<u8>>,
    problem: &Mutex<Option<String>>,
) -> Result<()> {
    // How many bytes of the port are still to come, of each channel.
    let mut ports = [2_usize; 2];
    let mut channel = 0;
    loop {
        let payload = match websocket::read(from_node).await? {
            Frame::Begin(mut message) => {
                if message.is_empty() {
                    continue;
                }
                channel = usize::from(message.remove(0));
                message
            }
            Frame::More(message) => message,
            Frame::Ping(payload) => {
                pongs.send(payload).await?;
                continue;
            }
            Frame::Close => return Ok(to_us.shutdown().await?),
        };
        let Some(skipped) = ports.get_mut(channel) else { bail!("channel {channel} was not asked for") };
        let skip = payload.len().min(*skipped);
        *skipped -= skip;
        let payload = &payload[skip..];
        if payload.is_empty() {
            continue;
        }
        if channel == usize::from(DATA) {
            to_us.write_all(payload).await?;
        } else {
            let text = String::from_utf8_lossy(payload).trim().to_owned();
            problem.lock().get_or_insert(text);
            return Ok(to_us.shutdown().await?);
        }
    }
}
