//! Writes responses: one encoding for all clients that are sent the same.
//!
//! In: a [`Response`] of shared entries. Out: a [`Message`], a gRPC frame in two parts. All but the nonce is the same for
//! every client that gets the same resources, and protobuf does not care about the order of fields. So the nonce goes in
//! front with the frame's header, and the rest is one buffer that all of them share, in memory and on its way out: a
//! hundred slow readers of eight megabytes hold eight, not eight hundred.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use bytes::{BufMut, Bytes, BytesMut};
use parking_lot::Mutex;
use xxhash_rust::xxh3::Xxh3;

use super::{Varint, put_field, put_tag};
use crate::kind::Kind;
use crate::resource::{Entry, Name};
use crate::session::{Response, Style};

#[cfg(test)]
mod tests;

/// How many bodies are remembered.
const REMEMBERED: usize = 64;
/// Up to this size a body is kept for clients yet to come; above, for as long as somebody is being sent it.
const KEPT_BYTES: usize = 64 << 10;
/// Up to this size a frame is copied into one piece: one write instead of two.
const JOINED_BYTES: usize = 8 << 10;

/// One gRPC message, ready to be written.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Frame header and nonce, or all of it.
    pub head: Bytes,
    /// What is shared; may be empty.
    pub body: Bytes,
}

impl Message {
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }
}

struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

enum Kept {
    Strong(Arc<Vec<u8>>),
    Weak(Weak<Vec<u8>>),
}

/// Remembers the last bodies of one fleet.
pub(crate) struct ResponseCache {
    identifier: String,
    recent: Mutex<VecDeque<(u128, Kept)>>,
}

impl ResponseCache {
    /// `identifier` tells people which replica a client talks to.
    pub fn new(identifier: String) -> Self {
        Self { identifier, recent: Mutex::default() }
    }

    /// The message for a response, and whether it had to be encoded.
    pub fn message(&self, response: &Response) -> (Message, bool) {
        let key = key(response);
        // Held while encoding: whoever wants the same at the same time waits for it instead of doing it again.
        let mut recent = self.recent.lock();
        let known = recent.iter().find(|(known, _)| *known == key).and_then(|(_, kept)| match kept {
            Kept::Strong(body) => Some(body.clone()),
            Kept::Weak(body) => body.upgrade(),
        });
        let encoded = known.is_none();
        let body = known.unwrap_or_else(|| {
            let body = Arc::new(self.encode(response));
            let small = body.len() <= KEPT_BYTES;
            recent.retain(|(known, _)| *known != key);
            recent.push_back((key, if small { Kept::Strong(body.clone()) } else { Kept::Weak(Arc::downgrade(&body)) }));
            if recent.len() > REMEMBERED {
                recent.pop_front();
            }
            body
        });
        drop(recent);
        (frame(response.nonce, body), encoded)
    }

    fn encode(&self, response: &Response) -> Vec<u8> {
        let entries = response.upserts.iter().map(|entry| Layout::new(response.kind, response.style, entry).len());
        let removed: usize = response.removed.iter().map(|name| name.len() + 6).sum();
        let mut out = BytesMut::with_capacity(entries.sum::<usize>() + removed + self.identifier.len() + 160);
        put_field(&mut out, 1, format!("{:016x}", response.version).as_bytes());
        for entry in &response.upserts {
            Layout::new(response.kind, response.style, entry).put(entry, &mut out);
        }
        put_field(&mut out, 4, response.kind.type_url().as_bytes());
        self.finish(response.style, &response.removed, &mut out);
        out.into()
    }

    fn finish(&self, style: Style, removed: &[Name], out: &mut BytesMut) {
        let mut control_plane = BytesMut::new();
        put_field(&mut control_plane, 1, self.identifier.as_bytes());
        match style {
            Style::Delta => {
                removed.iter().for_each(|name| put_field(out, 6, name.as_bytes()));
                put_field(out, 7, &control_plane);
            }
            Style::Sotw => put_field(out, 6, &control_plane),
        }
    }

    /// The answer to a type that this server does not know: there is nothing, don't wait for it.
    pub fn nothing(&self, style: Style, type_url: &str, names: &[Name], nonce: u64) -> Message {
        let mut out = BytesMut::new();
        put_field(&mut out, 4, type_url.as_bytes());
        self.finish(style, names, &mut out);
        frame(nonce, Arc::new(out.into()))
    }
}

/// The lengths of an entry of a response. In a delta response it is `Resource { version, name, resource: Any }`, in one of
/// the state of the world the `Any { type_url, value }` alone; both are field 2 of the response, and the `Any` is field 2 of
/// the former.
struct Layout {
    url: &'static str,
    any: usize,
    /// Version, name and `Any`, where the entry has them.
    resource: Option<usize>,
}

/// Versions are written as sixteen digits.
const VERSION: usize = 16;

impl Layout {
    fn new(kind: Kind, style: Style, entry: &Entry) -> Self {
        let url = kind.type_url();
        let any = field(url.len()) + field(entry.body.len());
        let resource = field(VERSION) + field(entry.name.len()) + field(any);
        Self { url, any, resource: (style == Style::Delta).then_some(resource) }
    }

    fn len(&self) -> usize {
        field(self.resource.unwrap_or(self.any))
    }

    fn put(&self, entry: &Entry, out: &mut BytesMut) {
        if let Some(len) = self.resource {
            put_tag(out, 2);
            Varint(len as u64).put(out);
            put_field(out, 1, format!("{:0VERSION$x}", entry.version).as_bytes());
            put_field(out, 3, entry.name.as_bytes());
        }
        put_tag(out, 2);
        Varint(self.any as u64).put(out);
        put_field(out, 1, self.url.as_bytes());
        put_field(out, 2, &entry.body);
    }
}

/// How long a field with so many bytes is.
fn field(len: usize) -> usize {
    1 + Varint(len as u64).len() + len
}

fn key(response: &Response) -> u128 {
    let mut hash = Xxh3::with_seed(response.kind.index() as u64 * 2 + u64::from(response.style == Style::Sotw));
    hash.update(&response.version.to_le_bytes());
    for entry in &response.upserts {
        hash.update(&entry.weight().to_le_bytes());
        hash.update(&entry.resent.to_le_bytes());
    }
    for name in &response.removed {
        hash.update(name.as_bytes());
        hash.update(&[0]);
    }
    hash.digest128()
}

fn frame(nonce: u64, body: Arc<Vec<u8>>) -> Message {
    let mut field = BytesMut::new();
    put_field(&mut field, 5, format!("{nonce:x}").as_bytes());
    let joined = body.len() <= JOINED_BYTES;
    let mut head = BytesMut::with_capacity(5 + field.len() + if joined { body.len() } else { 0 });
    head.put_u8(0);
    head.put_u32(u32::try_from(field.len() + body.len()).expect("a publish refuses what does not fit a message"));
    head.put_slice(&field);
    if joined {
        head.put_slice(&body);
        return Message { head: head.freeze(), body: Bytes::new() };
    }
    Message { head: head.freeze(), body: Bytes::from_owner(Shared(body)) }
}
