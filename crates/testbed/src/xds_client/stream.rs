//! One gRPC stream: messages out of a channel, messages into a channel.

use bytes::{Bytes, BytesMut};
use echo::grpc::unframe;
use futures::stream;
use http_body_util::BodyExt;
use tokio::sync::mpsc;

use super::{End, Kind};
use crate::client::Connection;

/// The longest response that is taken; an Envoy has no limit of its own.
const LONGEST: usize = 1 << 30;

/// What comes in by a stream.
#[derive(Debug)]
pub(super) enum Incoming {
    Message(Bytes),
    End(End),
}

/// Where the messages of a stream go; dropping it ends the client's half.
pub(super) type Outgoing = mpsc::UnboundedSender<Bytes>;

/// Frames a message that is encoded already.
pub(super) fn frame(message: &Bytes) -> Bytes {
    frame_of(message, message.len())
}

/// The frame of a message of that length, as far as this beginning of it goes.
pub(super) fn frame_of(beginning: &[u8], length: usize) -> Bytes {
    let mut bytes = BytesMut::with_capacity(5 + beginning.len());
    bytes.extend_from_slice(&[0]);
    bytes.extend_from_slice(&(length as u32).to_be_bytes());
    bytes.extend_from_slice(beginning);
    bytes.freeze()
}

/// Runs a stream until it ends; `kind` goes with all that comes in.
pub(super) async fn run(
    connection: Connection,
    method: String,
    outgoing: mpsc::UnboundedReceiver<Bytes>,
    incoming: mpsc::Sender<(Option<Kind>, Incoming)>,
    kind: Option<Kind>,
) {
    let messages = stream::unfold(outgoing, |mut outgoing| async { Some((outgoing.recv().await?, outgoing)) });
    let end = match connection.stream(&method, messages).await {
        Err(failure) => End { status: None, message: format!("{failure:?}") },
        Ok(response) => read(response, &incoming, kind).await,
    };
    // Nobody listens when the client is dropped.
    let _ = incoming.send((kind, Incoming::End(end))).await;
}

async fn read(
    response: http::Response<hyper::body::Incoming>,
    incoming: &mpsc::Sender<(Option<Kind>, Incoming)>,
    kind: Option<Kind>,
) -> End {
    let (head, mut body) = response.into_parts();
    if head.headers.contains_key("grpc-status") || head.status != 200 {
        let refused = End { status: None, message: format!("HTTP status {}", head.status) };
        return status(&head.headers).unwrap_or(refused);
    }
    let mut arrived = BytesMut::new();
    loop {
        match unframe(&mut arrived, LONGEST) {
            Ok(Some(message)) => {
                if incoming.send((kind, Incoming::Message(message))).await.is_err() {
                    return End::default();
                }
                continue;
            }
            Ok(None) => {}
            Err(e) => return End { status: None, message: e.to_string() },
        }
        match body.frame().await {
            None => return End { status: None, message: "the stream ended without a status".into() },
            Some(Err(e)) => return End { status: None, message: format!("the stream broke: {e:?}") },
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => arrived.extend_from_slice(&data),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    return status(&trailers).unwrap_or_default();
                }
            },
        }
    }
}

fn status(headers: &http::HeaderMap) -> Option<End> {
    let field = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let status = field("grpc-status")?.parse().ok();
    Some(End { status, message: field("grpc-message").unwrap_or_default().to_owned() })
}
