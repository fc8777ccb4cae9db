//! A WebSocket, from the client's side.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use echo::websocket::{self as frames, Frame, Opcode, accept_key};
use http::{Method, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;

use super::request::Parts;
use super::{Answer, Connection, Failure, failure, header};

/// An open WebSocket.
#[derive(Debug)]
pub struct WebSocket {
    stream: TokioIo<Upgraded>,
    /// Keeps the connection's task.
    connection: Connection,
    /// What the handshake was answered with.
    pub answer: Answer,
}

pub(super) async fn open(connection: Connection, mut parts: Parts, http2: bool) -> Result<WebSocket, Failure> {
    let key = BASE64.encode(random::<16>());
    let fields = [("connection", "upgrade"), ("upgrade", "websocket"), ("sec-websocket-key", &key)];
    let fields: &[(&str, &str)] = if http2 { &[] } else { &fields };
    for (name, value) in fields.iter().chain(&[("sec-websocket-version", "13")]) {
        let (name, value) = header(name, value);
        parts.headers.insert(name, value);
    }
    if http2 {
        parts.method = Method::CONNECT;
        parts.protocol = Some(hyper::ext::Protocol::from_static("websocket"));
    }
    let (answer, rest) = connection.start(parts).await?;
    let accepted = match http2 {
        true => answer.status == StatusCode::OK,
        false => {
            answer.status == StatusCode::SWITCHING_PROTOCOLS
                && answer.header("sec-websocket-accept") == Some(&accept_key(&key))
        }
    };
    if !accepted {
        // An upgrade with a wrong key has no body to read.
        let answer = if answer.status == StatusCode::SWITCHING_PROTOCOLS { answer } else { rest.read(answer).await? };
        return Err(Failure::NotUpgraded(Box::new(answer)));
    }
    let stream = TokioIo::new(rest.upgrade(&answer).await?);
    Ok(WebSocket { stream, connection, answer })
}

impl WebSocket {
    /// Sends a text.
    pub async fn send(&mut self, text: &str) -> Result<(), Failure> {
        self.write(&Frame::new(Opcode::Text, text)).await
    }

    /// Sends any frame.
    pub async fn write(&mut self, frame: &Frame) -> Result<(), Failure> {
        Ok(frames::write(&mut self.stream, frame, Some(random())).await?)
    }

    /// Waits for the next frame; none when the other side is gone.
    pub async fn read(&mut self) -> Result<Option<Frame>, Failure> {
        let timeout = self.connection.client().timeout;
        failure::within("a WebSocket frame", timeout, async { Ok(frames::read(&mut self.stream).await?) }).await
    }

    /// Sends a text and waits for the text that comes back.
    pub async fn ask(&mut self, text: &str) -> Result<String, Failure> {
        self.send(text).await?;
        match self.read().await? {
            Some(frame) if frame.opcode == Opcode::Text => Ok(String::from_utf8_lossy(&frame.payload).into_owned()),
            other => Err(Failure::Message(format!("a text was expected and {other:?} came"))),
        }
    }

    /// Says goodbye and waits until the other side has said so, too.
    pub async fn close(mut self) -> Result<(), Failure> {
        self.write(&Frame::close(1000)).await?;
        while let Some(frame) = self.read().await? {
            if frame.opcode == Opcode::Close {
                break;
            }
        }
        Ok(())
    }
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes).expect("the system has random numbers");
    bytes
}
