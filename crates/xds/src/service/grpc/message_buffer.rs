//! What has arrived of gRPC messages that are not read yet.
//!
//! In: pieces of any size. Out: messages. One may be kept for long, so its memory is no larger than it is: the buffer that it is split
//! off grows with what arrives, and not beyond the length that the message announces.

use bytes::{Buf, Bytes, BytesMut};
use tonic::Status;

/// Whether it is compressed, and its length: what precedes each message.
const HEAD: usize = 5;

/// A buffer for messages of a limited length.
pub(super) struct MessageBuffer {
    bytes: BytesMut,
    limit: usize,
}

impl MessageBuffer {
    pub fn new(limit: usize) -> Self {
        Self { bytes: BytesMut::new(), limit }
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds what has arrived.
    pub fn extend(&mut self, data: &[u8]) {
        let needed = self.bytes.len() + data.len();
        if needed > self.bytes.capacity() {
            // What is announced is not reserved: memory is taken for what has arrived, and at most as much again.
            let announced = self.announced().ok().flatten().map_or(0, |length| HEAD + length);
            let mut larger = BytesMut::with_capacity(needed.max(announced.min(2 * self.bytes.len())));
            larger.extend_from_slice(&self.bytes);
            self.bytes = larger;
        }
        self.bytes.extend_from_slice(data);
    }

    /// The next message, if all of it has arrived.
    pub fn take(&mut self) -> Result<Option<Bytes>, Status> {
        let Some(length) = self.announced()?.filter(|length| self.bytes.len() >= HEAD + length) else {
            return Ok(None);
        };
        self.bytes.advance(HEAD);
        let message = self.bytes.split_to(length).freeze();
        if self.bytes.len() < length {
            // What follows must not hold on to the memory of a large message.
            self.bytes = BytesMut::from(&self.bytes[..]);
        }
        Ok(Some(message))
    }

    /// The length of the message that has begun to arrive.
    fn announced(&self) -> Result<Option<usize>, Status> {
        let Some((head, _)) = self.bytes.split_first_chunk::<HEAD>() else { return Ok(None) };
        let [compressed, length @ ..] = *head;
        if compressed != 0 {
            return Err(Status::unimplemented("compressed requests are not supported"));
        }
        let length = u32::from_be_bytes(length) as usize;
        if length > self.limit {
            let text = format!("a request of {length} bytes, more than {}", self.limit);
            return Err(Status::resource_exhausted(text));
        }
        Ok(Some(length))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const LARGE: usize = 5_000_000;
    /// As HTTP/2 delivers data.
    const PIECE: usize = 16 << 10;

    fn framed(message: &[u8]) -> Vec<u8> {
        [&[0][..], &u32::try_from(message.len()).unwrap().to_be_bytes(), message].concat()
    }

    #[test]
    fn a_large_message_takes_no_more_memory_than_it_has_bytes() {
        let mut buffer = MessageBuffer::new(LARGE);
        let (large, small) = (vec![7; LARGE], b"small");
        let sent = [framed(&large), framed(small)].concat();
        let mut messages = Vec::new();
        for piece in sent.chunks(PIECE) {
            buffer.extend(piece);
            assert!(buffer.bytes.capacity() <= 2 * buffer.len(), "{} for {}", buffer.bytes.capacity(), buffer.len());
            while let Some(message) = buffer.take().unwrap() {
                messages.push(message);
            }
        }
        assert_eq!(messages, [Bytes::from(large), Bytes::from_static(small)]);
        assert_eq!(buffer.bytes.capacity(), 0, "nothing is left");
        let kept = messages.remove(0).try_into_mut().unwrap().capacity();
        assert!(kept <= LARGE + PIECE, "{kept}");
    }

    #[test]
    fn messages_are_the_same_however_they_arrive() {
        let sent = [framed(b"one"), framed(b""), framed(b"three")].concat();
        for size in 1..=sent.len() {
            let mut buffer = MessageBuffer::new(5);
            let mut messages = Vec::new();
            for piece in sent.chunks(size) {
                buffer.extend(piece);
                messages.extend(std::iter::from_fn(|| buffer.take().unwrap()));
            }
            assert_eq!(messages, ["one", "", "three"], "in pieces of {size}");
        }
    }
}
