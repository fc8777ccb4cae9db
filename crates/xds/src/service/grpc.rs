//! gRPC on HTTP/2, as much as is needed: messages with their length in front, a status at the end.
//!
//! In: a request's body, as frames. Out: messages ([`Messages`]), and a response's body ([`Body`]) that hands shared
//! buffers to HTTP/2 as they are.

use std::fmt::Display;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};
use tokio::sync::mpsc;
use tonic::{Code, Status};

use crate::wire::response::Message;

mod message_buffer;

use message_buffer::MessageBuffer;

/// What goes into a response's body.
pub(crate) enum Item {
    /// A message.
    Message(Message),
    /// The end, and why.
    End(Status),
}

/// How much of a message is handed to HTTP/2 at a time: it asks for more when the client has room for it.
const PIECE: usize = 64 << 10;

/// The body of a response.
pub(crate) struct Body {
    source: Source,
    /// What is left of a message whose beginning was handed out.
    rest: Bytes,
    /// Counts what was handed out.
    progress: Arc<AtomicU64>,
}

/// Where a stream puts what it sends.
pub(crate) struct ResponseSender {
    items: mpsc::Sender<Item>,
    progress: Arc<AtomicU64>,
}

impl ResponseSender {
    /// Room for one item, once there is; `None` if the client is gone.
    pub async fn reserve(&self) -> Option<mpsc::Permit<'_, Item>> {
        self.items.reserve().await.ok()
    }

    /// Sends an item when there is room; `false` if the client is gone.
    pub async fn send(&self, item: Item) -> bool {
        self.items.send(item).await.is_ok()
    }

    /// Done when the client is gone.
    pub async fn closed(&self) {
        self.items.closed().await;
    }

    /// Changes whenever the client has taken something.
    pub fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }
}

enum Source {
    /// A stream. One message waits here at most, so that what is behind it can still be brought up to date.
    Items(mpsc::Receiver<Item>),
    Once(Option<Message>),
    Trailers(Option<HeaderMap>),
    Ended,
}

impl Body {
    /// No body at all.
    pub fn empty() -> Self {
        Self::from(Source::Ended)
    }

    /// A response without messages that says why.
    pub fn rejection(status: &Status) -> Response<Body> {
        let mut response = grpc(Body::empty());
        *response.headers_mut() = trailers(status);
        response.headers_mut().insert(header::CONTENT_TYPE, GRPC);
        response
    }

    /// A response of one message.
    pub fn single(message: Message) -> Response<Body> {
        grpc(Body::from(Source::Once(Some(message))))
    }

    /// A response of as many messages as are sent.
    pub fn stream() -> (ResponseSender, Response<Body>) {
        let (items, receiver) = mpsc::channel(1);
        let body = Body::from(Source::Items(receiver));
        (ResponseSender { items, progress: body.progress.clone() }, grpc(body))
    }

    fn from(source: Source) -> Self {
        Self { source, rest: Bytes::new(), progress: Arc::default() }
    }

    fn hand_out(&mut self, message: Message) -> Frame<Bytes> {
        self.rest = message.body;
        Frame::data(message.head)
    }
}

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

fn grpc(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, GRPC);
    response
}

fn trailers(status: &Status) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if status.add_header(&mut headers).is_err() {
        headers.insert("grpc-status", HeaderValue::from(i32::from(Code::Internal)));
    }
    headers
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        this.progress.fetch_add(1, Ordering::Relaxed);
        if !this.rest.is_empty() {
            let piece = this.rest.split_to(this.rest.len().min(PIECE));
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        let frame = match &mut this.source {
            Source::Items(items) => match ready!(items.poll_recv(cx)) {
                Some(Item::Message(message)) => this.hand_out(message),
                Some(Item::End(status)) => {
                    this.source = Source::Ended;
                    Frame::trailers(trailers(&status))
                }
                // The client does not read, so it cannot be told either: the stream is reset.
                None => return Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into()))),
            },
            Source::Once(message) => match message.take() {
                Some(message) => this.hand_out(message),
                None => {
                    this.source = Source::Trailers(Some(trailers(&Status::ok(""))));
                    return Pin::new(this).poll_frame(cx);
                }
            },
            Source::Trailers(headers) => {
                let headers = headers.take().unwrap_or_default();
                this.source = Source::Ended;
                Frame::trailers(headers)
            }
            Source::Ended => return Poll::Ready(None),
        };
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && matches!(self.source, Source::Ended)
    }
}

/// The messages in a request's body.
pub(crate) struct Messages<B = Incoming> {
    body: B,
    buffer: MessageBuffer,
    ended: bool,
}

impl<B: hyper::body::Body<Data = Bytes, Error: Display> + Unpin> Messages<B> {
    pub fn new(body: B, limit: usize) -> Self {
        Self { body, buffer: MessageBuffer::new(limit), ended: false }
    }

    /// How many bytes have come of what is not taken yet.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// The next message; `None` when the client has no more to say. Can be dropped and called again at any time.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            if !self.receive().await? {
                return Ok(None);
            }
        }
    }

    /// The next message, if all of it has come.
    pub fn take(&mut self) -> Result<Option<Bytes>, Status> {
        self.buffer.take()
    }

    /// Receives more; `false` when the client has no more to say. Can be dropped and called again at any time.
    pub async fn receive(&mut self) -> Result<bool, Status> {
        while !self.ended {
            match self.body.frame().await {
                None => self.ended = true,
                Some(Err(error)) => return Err(Status::cancelled(error.to_string())),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => {
                        self.buffer.extend(&data);
                        return Ok(true);
                    }
                    Ok(_) | Err(_) => {}
                },
            }
        }
        if self.buffered() == 0 { Ok(false) } else { Err(Status::internal("half a message")) }
    }
}
