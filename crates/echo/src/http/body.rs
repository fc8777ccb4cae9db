//! A request's body, read to its end: the first part kept, the rest counted.

use bytes::Buf;
use http::HeaderMap;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::Cut;
use crate::BodySeen;

/// A body that was read.
#[derive(Debug)]
pub(crate) struct Read {
    pub seen: BodySeen,
    pub trailers: HeaderMap,
}

/// Reads a body and keeps at most `keep` bytes of it.
pub(crate) async fn read(mut body: Incoming, keep: usize) -> Result<Read, Cut> {
    let mut kept = Vec::new();
    let mut length = 0;
    let mut trailers = HeaderMap::new();
    while let Some(frame) = body.frame().await {
        match frame.map_err(|_| Cut)?.into_data() {
            Ok(mut data) => {
                length += data.remaining() as u64;
                let room = keep - kept.len();
                data.truncate(room);
                kept.extend_from_slice(&data);
            }
            Err(frame) => trailers.extend(frame.into_trailers().unwrap_or_default()),
        }
    }
    Ok(Read { seen: BodySeen::new(&kept, length), trailers })
}
