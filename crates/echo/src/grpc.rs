//! gRPC: every call is answered, whatever service and method it names, so that routes by method can be tried.
//!
//! In: a stream of [`Request`] messages. Out: for each, as many [`Reply`] messages as it asks for; that makes one method
//! unary, streaming from either side, or both. A client's view of the service:
//!
//! ```proto
//! package sesame.echo.v1;
//! service Echo { rpc Say(stream Request) returns (stream Reply); }
//! message Request { string message = 1; uint32 count = 2; }
//! message Reply { string message = 1; string name = 2; string seen = 3; }
//! ```
//!
//! Envoy's gRPC health check is answered with "serving". The messages are written by hand: the five-byte frame and three
//! fields don't earn a build step.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::stream;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use prost::Message;

use crate::directives::{Directives, Reset};
use crate::http::{Body, Cut, full};
use crate::seen::Seen;

/// The longest message that is taken.
const LONGEST: usize = 4 * 1024 * 1024;
/// The most replies to one message.
const MOST: u32 = 1 << 20;
const HEALTH: &str = "/grpc.health.v1.Health/Check";

const OK: u32 = 0;
const INVALID_ARGUMENT: u32 = 3;
const RESOURCE_EXHAUSTED: u32 = 8;
const UNIMPLEMENTED: u32 = 12;

/// What a caller says.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Request {
    /// Comes back in every reply.
    #[prost(string, tag = "1")]
    pub message: String,
    /// How many replies are wanted; 0 is 1.
    #[prost(uint32, tag = "2")]
    pub count: u32,
}

/// What it is told.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Reply {
    /// The request's message.
    #[prost(string, tag = "1")]
    pub message: String,
    /// The backend that answered.
    #[prost(string, tag = "2")]
    pub name: String,
    /// The call's [`Seen`], as JSON.
    #[prost(string, tag = "3")]
    pub seen: String,
}

/// Why a stream of bytes is no stream of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The message is compressed, which was never agreed on.
    #[error("compressed message")]
    Compressed,
    /// The message is longer than anyone should send.
    #[error("message of {0} bytes")]
    TooLong(usize),
}

/// One message with the prefix that gRPC puts before it.
pub fn frame(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(5 + length);
    bytes.put_u8(0);
    bytes.put_u32(length as u32);
    bytes.put(message.encode_to_vec().as_slice());
    bytes.freeze()
}

/// Takes the next whole message, of at most `longest` bytes, off the front of what has arrived, without its prefix.
pub fn unframe(arrived: &mut BytesMut, longest: usize) -> Result<Option<Bytes>, FrameError> {
    if arrived.len() < 5 {
        return Ok(None);
    }
    if arrived[0] != 0 {
        return Err(FrameError::Compressed);
    }
    let length = (&arrived[1..5]).get_u32() as usize;
    if length > longest {
        return Err(FrameError::TooLong(length));
    }
    if arrived.len() < 5 + length {
        return Ok(None);
    }
    arrived.advance(5);
    Ok(Some(arrived.split_to(length).freeze()))
}

/// Answers one call.
pub(crate) async fn answer(
    seen: Seen,
    parts: &Parts,
    body: Incoming,
    directives: Directives,
) -> Result<Response<Body>, Cut> {
    tokio::time::sleep(directives.delay).await;
    if directives.reset == Some(Reset::Before) {
        return Err(Cut);
    }
    let mut response = Response::new(());
    *response.status_mut() = directives.status.unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.extend(directives.headers.into_iter().map(|(n, v)| (Some(n), v)));
    let mut trailers = HeaderMap::new();
    trailers.extend(directives.trailers.into_iter().map(|(n, v)| (Some(n), v)));
    if let Some(status) = directives.grpc_status.filter(|status| *status != OK) {
        // A failure without messages is headers only, as gRPC servers send it.
        headers.extend(trailers);
        headers.insert("grpc-status", status.into());
        headers.insert("grpc-message", HeaderValue::from_static("as asked for"));
        return Ok(response.map(|()| full(Bytes::new())));
    }
    let call = Call {
        body,
        arrived: BytesMut::new(),
        replies: None,
        health: parts.uri.path() == HEALTH,
        reset: directives.reset,
        seen: serde_json::to_string(&seen).unwrap_or_default(),
        name: seen.name,
        trailers: Some(trailers),
    };
    let frames = stream::unfold(call, |mut call| async move { call.next().await.map(|frame| (frame, call)) });
    Ok(response.map(|()| StreamBody::new(frames).boxed_unsync()))
}

/// A call under way.
struct Call {
    body: Incoming,
    arrived: BytesMut,
    /// The reply to the last message, and how often it is still to be sent.
    replies: Option<(Bytes, u32)>,
    health: bool,
    reset: Option<Reset>,
    name: String,
    seen: String,
    /// Taken when the call ends.
    trailers: Option<HeaderMap>,
}

impl Call {
    async fn next(&mut self) -> Option<Result<Frame<Bytes>, Cut>> {
        if self.reset == Some(Reset::Headers) {
            tokio::task::yield_now().await;
            return Some(Err(Cut));
        }
        loop {
            self.trailers.as_ref()?;
            if let Some((reply, left @ 1..)) = &mut self.replies {
                *left -= 1;
                // The next thing after the first message is then the cut.
                if self.reset == Some(Reset::Body) {
                    self.reset = Some(Reset::Headers);
                }
                return Some(Ok(Frame::data(reply.clone())));
            }
            match unframe(&mut self.arrived, LONGEST) {
                Ok(Some(message)) => match self.reply(&message) {
                    Some(replies) => self.replies = Some(replies),
                    None => return self.end(INVALID_ARGUMENT, "no echo request"),
                },
                Ok(None) => match self.body.frame().await {
                    None => return self.end(OK, ""),
                    Some(Err(_)) => return Some(Err(Cut)),
                    Some(Ok(frame)) => self.arrived.extend(frame.into_data().ok()),
                },
                Err(FrameError::Compressed) => return self.end(UNIMPLEMENTED, "compression is not supported"),
                Err(FrameError::TooLong(_)) => return self.end(RESOURCE_EXHAUSTED, "message too long"),
            }
        }
    }

    fn reply(&self, message: &[u8]) -> Option<(Bytes, u32)> {
        if self.health {
            // The message is { status = 1: SERVING }.
            return Some((Bytes::from_static(&[0, 0, 0, 0, 2, 0x08, 0x01]), 1));
        }
        let request = Request::decode(message).ok()?;
        let reply = Reply { message: request.message, name: self.name.clone(), seen: self.seen.clone() };
        Some((frame(&reply), request.count.clamp(1, MOST)))
    }

    fn end(&mut self, status: u32, message: &'static str) -> Option<Result<Frame<Bytes>, Cut>> {
        let mut trailers = self.trailers.take()?;
        trailers.insert("grpc-status", status.into());
        if !message.is_empty() {
            trailers.insert("grpc-message", HeaderValue::from_static(message));
        }
        Some(Ok(Frame::trailers(trailers)))
    }
}
