//! The few pieces of protobuf's encoding that are needed to splice and to read messages without decoding them whole.

use bytes::{BufMut, BytesMut};

pub(crate) mod fields;
pub(crate) mod initial_versions;
pub(crate) mod request;
pub(crate) mod response;

/// A number in protobuf's variable-length form.
#[derive(Clone, Copy)]
pub(crate) struct Varint(pub u64);

impl Varint {
    /// How many bytes it takes.
    pub fn len(self) -> usize {
        ((64 - (self.0 | 1).leading_zeros() as usize) * 9 + 64) / 64
    }

    /// Appends it.
    pub fn put(self, out: &mut BytesMut) {
        let mut rest = self.0;
        while rest >= 0x80 {
            out.put_u8(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.put_u8(rest as u8);
    }
}

/// Appends the tag of a length-delimited field.
pub(crate) fn put_tag(out: &mut BytesMut, field: u32) {
    Varint(u64::from(field << 3 | 2)).put(out);
}

/// Appends a length-delimited field: a string, bytes or an encoded message.
pub(crate) fn put_field(out: &mut BytesMut, field: u32, value: &[u8]) {
    put_tag(out, field);
    Varint(value.len() as u64).put(out);
    out.put_slice(value);
}
