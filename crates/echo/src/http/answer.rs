//! The plain answer: what was seen as JSON, or as many bytes as asked for, poured out as the directives say.
//!
//! In: a [`Seen`] and its [`Directives`]. Out: a response whose body is made piece by piece, so that a gigabyte costs no
//! more memory than a line.

use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, TRAILER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use super::{Body, Cut};
use crate::Seen;
use crate::directives::{Directives, Reset};

/// What a body of a wished size is made of: lines that tell a reader nothing was lost.
static FILL: [u8; 64 * 1024] = {
    let mut fill = [b'.'; 64 * 1024];
    let mut at = 63;
    while at < fill.len() {
        fill[at] = b'\n';
        at += 64;
    }
    fill
};

/// Answers a request that was read to its end.
pub(crate) fn answer(seen: &Seen, directives: Directives) -> Result<Response<Body>, Cut> {
    if directives.reset == Some(Reset::Before) {
        return Err(Cut);
    }
    let (source, kind) = match directives.size {
        Some(size) => (Source::Fill { left: size }, "text/plain"),
        None => {
            let mut json = serde_json::to_vec_pretty(seen).map_err(|_| Cut)?;
            json.push(b'\n');
            (Source::Bytes(json.into()), "application/json")
        }
    };
    let length = source.left();
    let mut trailers = HeaderMap::new();
    trailers.extend(directives.trailers.into_iter().map(|(n, v)| (Some(n), v)));
    let mut response = Response::new(());
    *response.status_mut() = directives.status.unwrap_or(StatusCode::OK);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if directives.chunk.is_none() && trailers.is_empty() {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    // HTTP/1.1 sends only the trailers that were announced.
    for name in trailers.keys() {
        headers.append(TRAILER, name.clone().into());
    }
    for (name, value) in directives.headers {
        headers.append(name, value);
    }
    let cut_after = match directives.reset {
        None => None,
        Some(Reset::Body) => Some(length / 2),
        Some(Reset::Before | Reset::Headers) => Some(0),
    };
    let piece = directives.chunk.unwrap_or(FILL.len()).min(FILL.len());
    let pour = Pour { source, piece, pause: directives.pause, first: true, cut_after, trailers };
    let frames = stream::unfold(pour, |mut pour| async move { pour.next().await.map(|frame| (frame, pour)) });
    Ok(response.map(|()| StreamBody::new(frames).boxed_unsync()))
}

/// What is left of a body's content.
enum Source {
    Bytes(Bytes),
    Fill { left: u64 },
}

impl Source {
    fn left(&self) -> u64 {
        match self {
            Source::Bytes(bytes) => bytes.len() as u64,
            Source::Fill { left } => *left,
        }
    }

    fn take(&mut self, n: usize) -> Bytes {
        match self {
            Source::Bytes(bytes) => bytes.split_to(n.min(bytes.len())),
            Source::Fill { left } => {
                let n = (n as u64).min(*left);
                *left -= n;
                // At most the length of the fill, because `n` was a `usize` no longer than it.
                Bytes::from_static(&FILL[..n as usize])
            }
        }
    }
}

/// A body on its way out.
struct Pour {
    source: Source,
    piece: usize,
    pause: Duration,
    first: bool,
    /// Bytes until the answer is cut off.
    cut_after: Option<u64>,
    trailers: HeaderMap,
}

impl Pour {
    async fn next(&mut self) -> Option<Result<Frame<Bytes>, Cut>> {
        if self.cut_after == Some(0) {
            // Once around the scheduler: hyper flushes what it holds when a body is not ready, and drops it on an error.
            tokio::task::yield_now().await;
            return Some(Err(Cut));
        }
        if self.source.left() == 0 {
            let trailers = std::mem::take(&mut self.trailers);
            return (!trailers.is_empty()).then(|| Ok(Frame::trailers(trailers)));
        }
        if !std::mem::take(&mut self.first) && !self.pause.is_zero() {
            tokio::time::sleep(self.pause).await;
        }
        let piece = self.cut_after.map_or(self.piece, |cut| (cut.min(self.piece as u64)) as usize);
        let bytes = self.source.take(piece);
        if let Some(cut) = &mut self.cut_after {
            *cut = cut.saturating_sub(bytes.len() as u64);
        }
        Some(Ok(Frame::data(bytes)))
    }
}
