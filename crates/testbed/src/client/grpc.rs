//! gRPC calls: one message out, any number back; or a stream that stays open, one message back for each.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use echo::grpc::{frame, unframe};
use futures::channel::mpsc;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::{Answer, Connection, Failure, Request, failure};

/// The longest message that is taken: longer than any server should send.
const LONGEST: usize = 1 << 30;

/// A call; awaiting it makes it.
#[derive(Clone, Debug)]
#[must_use = "a call is made when it is awaited"]
pub struct GrpcCall<R> {
    request: Request,
    reply: PhantomData<fn() -> R>,
}

/// What a call brought.
#[derive(Clone, Debug)]
pub struct GrpcAnswer<R> {
    /// The gRPC status; none when the answer had none, as an error page of a proxy.
    pub status: Option<u32>,
    /// What the status says.
    pub message: String,
    /// The messages that came back.
    pub replies: Vec<R>,
    /// The HTTP answer that carried them.
    pub answer: Answer,
}

impl<R> GrpcCall<R> {
    pub(super) fn new(request: Request, message: &impl prost::Message) -> GrpcCall<R> {
        let request = request.header("content-type", "application/grpc").header("te", "trailers").body(frame(message));
        GrpcCall { request, reply: PhantomData }
    }

    /// One more header (metadata, in gRPC's words).
    pub fn header(mut self, name: &str, value: &str) -> GrpcCall<R> {
        self.request = self.request.header(name, value);
        self
    }
}

impl<R: prost::Message + Default + 'static> IntoFuture for GrpcCall<R> {
    type Output = Result<GrpcAnswer<R>, Failure>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<GrpcAnswer<R>, Failure>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async {
            let answer = self.request.await?;
            // A call that fails at once has its status in the headers.
            let field = |name| answer.trailer(name).or_else(|| answer.header(name)).map(str::to_owned);
            let status = field("grpc-status").and_then(|s| s.parse().ok());
            let message = field("grpc-message").unwrap_or_default();
            let mut replies = Vec::new();
            // Without a status the body is whatever a proxy had to say.
            let mut rest = BytesMut::from(if status.is_some() { &answer.body[..] } else { b"" });
            while let Some(bytes) = unframe(&mut rest, LONGEST).map_err(|e| Failure::Message(e.to_string()))? {
                replies.push(R::decode(bytes).map_err(|e| Failure::Message(e.to_string()))?);
            }
            if !rest.is_empty() {
                return Err(Failure::Message(format!("{} bytes after the last message", rest.len())));
            }
            Ok(GrpcAnswer { status, message, replies, answer })
        })
    }
}

/// A call that stays open in both directions.
#[derive(Debug)]
pub struct GrpcStream {
    messages: mpsc::UnboundedSender<Bytes>,
    body: Incoming,
    arrived: BytesMut,
    connection: Connection,
}

impl GrpcStream {
    pub(super) async fn open(connection: Connection, method: &str) -> Result<GrpcStream, Failure> {
        let (messages, sent) = mpsc::unbounded();
        let response = connection.stream(method, sent).await?;
        Ok(GrpcStream { messages, body: response.into_body(), arrived: BytesMut::new(), connection })
    }

    /// Sends a message and waits for the one that comes back.
    pub async fn ask<R: prost::Message + Default>(&mut self, message: &impl prost::Message) -> Result<R, Failure> {
        let ended = || Failure::Message("the stream has ended".into());
        self.messages.unbounded_send(frame(message)).map_err(|_| ended())?;
        let (body, arrived) = (&mut self.body, &mut self.arrived);
        let reply = async {
            loop {
                if let Some(bytes) = unframe(arrived, LONGEST).map_err(|e| Failure::Message(e.to_string()))? {
                    return R::decode(bytes).map_err(|e| Failure::Message(e.to_string()));
                }
                let frame = body.frame().await.ok_or_else(ended)?.map_err(Failure::Exchange)?;
                arrived.extend(frame.into_data().ok());
            }
        };
        failure::within("a gRPC message", self.connection.client().timeout, reply).await
    }
}
