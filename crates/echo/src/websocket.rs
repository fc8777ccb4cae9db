//! WebSocket: the handshake over HTTP/1.1 and HTTP/2, and frames that are given back as they came.
//!
//! In: an upgrade request. Out: a 101 (or a 200 to an extended CONNECT) and a task that echoes until either side closes.
//! The frame reader and writer serve clients, too. No extensions, no reassembly: a fragment is echoed as a fragment.

use std::io;
use std::sync::Arc;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tracing::debug;

use crate::directives::Directives;
use crate::http::{Body, full};
use crate::running::Shared;
use crate::{Seen, asks_who};

/// The longest frame that is taken.
pub const LONGEST: usize = 1024 * 1024;

const KEY: HeaderName = HeaderName::from_static("sec-websocket-key");
const ACCEPT: HeaderName = HeaderName::from_static("sec-websocket-accept");
const PROTOCOL: HeaderName = HeaderName::from_static("sec-websocket-protocol");

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// Goes on with the message of the frame before.
    Continuation,
    /// Text in UTF-8.
    Text,
    /// Bytes.
    Binary,
    /// The end, with a code and a reason.
    Close,
    /// Asks for a pong.
    Ping,
    /// Answers a ping.
    Pong,
}

impl Opcode {
    const ALL: [(u8, Opcode); 6] = [
        (0x0, Opcode::Continuation),
        (0x1, Opcode::Text),
        (0x2, Opcode::Binary),
        (0x8, Opcode::Close),
        (0x9, Opcode::Ping),
        (0xa, Opcode::Pong),
    ];

    fn of(bits: u8) -> Option<Opcode> {
        Opcode::ALL.iter().find(|(b, _)| *b == bits).map(|(_, o)| *o)
    }

    fn bits(self) -> u8 {
        Opcode::ALL.iter().find(|(_, o)| *o == self).map_or(0, |(b, _)| *b)
    }
}

/// One frame, unmasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Whether it ends its message.
    pub fin: bool,
    /// What it is.
    pub opcode: Opcode,
    /// What it says.
    pub payload: Vec<u8>,
}

impl Frame {
    /// A whole message, or a control frame.
    pub fn new(opcode: Opcode, payload: impl Into<Vec<u8>>) -> Frame {
        Frame { fin: true, opcode, payload: payload.into() }
    }

    /// The end, with a code such as 1000 (done) or 1001 (going away).
    pub fn close(code: u16) -> Frame {
        Frame::new(Opcode::Close, code.to_be_bytes())
    }
}

/// Reads one frame; none where the stream ends between frames.
pub async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Frame>> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut head = [0; 2];
    if stream.read(&mut head[..1]).await? == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut head[1..]).await?;
    if head[0] & 0x70 != 0 {
        return Err(invalid("frame of an extension"));
    }
    let opcode = Opcode::of(head[0] & 0x0f).ok_or_else(|| invalid("unknown frame"))?;
    let length = match head[1] & 0x7f {
        126 => u64::from(stream.read_u16().await?),
        127 => stream.read_u64().await?,
        short => u64::from(short),
    };
    let length = usize::try_from(length).ok().filter(|n| *n <= LONGEST).ok_or_else(|| invalid("frame too long"))?;
    let mut mask = [0; 4];
    let masked = head[1] & 0x80 != 0;
    if masked {
        stream.read_exact(&mut mask).await?;
    }
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).await?;
    apply(mask, &mut payload);
    Ok(Some(Frame { fin: head[0] & 0x80 != 0, opcode, payload }))
}

/// Writes one frame; a client must mask, a server must not.
pub async fn write(stream: &mut (impl AsyncWrite + Unpin), frame: &Frame, mask: Option<[u8; 4]>) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(14 + frame.payload.len());
    bytes.push(u8::from(frame.fin) << 7 | frame.opcode.bits());
    let masked = u8::from(mask.is_some()) << 7;
    match frame.payload.len() {
        n @ 0..126 => bytes.push(masked | n as u8),
        n @ 126..65536 => {
            bytes.push(masked | 126);
            bytes.extend((n as u16).to_be_bytes());
        }
        n => {
            bytes.push(masked | 127);
            bytes.extend((n as u64).to_be_bytes());
        }
    }
    bytes.extend(mask.into_iter().flatten());
    let start = bytes.len();
    bytes.extend(&frame.payload);
    apply(mask.unwrap_or_default(), &mut bytes[start..]);
    stream.write_all(&bytes).await?;
    stream.flush().await
}

fn apply(mask: [u8; 4], payload: &mut [u8]) {
    payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
}

/// The `sec-websocket-accept` that proves a server understood this `sec-websocket-key`.
pub fn accept_key(key: &str) -> String {
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    // The protocol's choice: here SHA-1 proves understanding, it protects nothing.
    BASE64.encode(digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()))
}

/// How a request asks for a WebSocket, if it does.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// HTTP/1.1, with the accept key to answer.
    Upgrade(String),
    /// HTTP/2, by extended CONNECT.
    Connect,
}

/// Reads a request's handshake.
pub(crate) fn handshake(request: &Request<Incoming>) -> Option<Handshake> {
    let protocol = request.extensions().get::<hyper::ext::Protocol>();
    if request.method() == Method::CONNECT && protocol.is_some_and(|p| p.as_str() == "websocket") {
        return Some(Handshake::Connect);
    }
    let headers = request.headers();
    let upgrade = request.method() == Method::GET && lists(headers, UPGRADE, "websocket");
    if !upgrade || !lists(headers, CONNECTION, "upgrade") {
        return None;
    }
    Some(Handshake::Upgrade(accept_key(headers.get(KEY)?.to_str().ok()?)))
}

fn lists(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let values = headers.get_all(name);
    values
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .any(|v| v.trim().eq_ignore_ascii_case(word))
}

/// Answers a handshake and echoes from then on. The first subprotocol offered is agreed to.
pub(crate) fn accept(
    shared: Arc<Shared>,
    seen: Seen,
    mut request: Request<Incoming>,
    directives: &Directives,
) -> Response<Body> {
    let mut response = Response::new(full(Bytes::new()));
    let headers = response.headers_mut();
    headers.extend(directives.headers.iter().map(|(n, v)| (Some(n.clone()), v.clone())));
    let first = |v: &HeaderValue| HeaderValue::from_bytes(v.as_bytes().split(|b| *b == b',').next()?.trim_ascii()).ok();
    if let Some(protocol) = request.headers().get(PROTOCOL).and_then(first) {
        headers.insert(PROTOCOL, protocol);
    }
    if let Some(Handshake::Upgrade(key)) = handshake(&request) {
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.extend(HeaderValue::try_from(key).ok().map(|key| (ACCEPT, key)));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    }
    let upgrade = hyper::upgrade::on(&mut request);
    shared.clone().spawn(async move {
        let ended = match upgrade.await {
            Ok(stream) => echo(&shared, &seen, TokioIo::new(stream)).await,
            Err(e) => Err(io::Error::other(e)),
        };
        if let Err(e) = ended {
            debug!(remote = %seen.remote, "WebSocket broke: {e}");
        }
    });
    response
}

async fn echo(shared: &Shared, seen: &Seen, stream: impl AsyncRead + AsyncWrite) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    loop {
        let frame = tokio::select! {
            biased;
            () = shared.stop.cancelled() => {
                write(&mut writer, &Frame::close(1001), None).await?;
                break;
            }
            frame = read(&mut reader) => frame?,
        };
        match frame {
            None => break,
            Some(frame) if frame.opcode == Opcode::Pong => {}
            Some(frame) if frame.opcode == Opcode::Ping => {
                write(&mut writer, &Frame { opcode: Opcode::Pong, ..frame }, None).await?;
            }
            Some(frame) if frame.opcode == Opcode::Text && asks_who(&frame.payload) => {
                write(&mut writer, &Frame::new(Opcode::Text, serde_json::to_vec(seen)?), None).await?;
            }
            Some(frame) => {
                write(&mut writer, &frame, None).await?;
                if frame.opcode == Opcode::Close {
                    break;
                }
            }
        }
    }
    writer.shutdown().await
}

#[cfg(test)]
mod tests;
