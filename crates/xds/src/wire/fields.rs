//! Takes an encoded message apart, field by field, without decoding it whole.

use std::str;

use super::request::Malformed;
use crate::resource::Role;

/// What a field holds.
pub(crate) enum Value<'a> {
    /// A string, bytes or an encoded message.
    Bytes(&'a [u8]),
    /// Anything else, which no request has.
    Other,
}

/// The fields of an encoded message, one after the other.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Self {
        Self(message)
    }

    /// The next field with its number; nothing at the end.
    pub fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, Malformed> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => {
                self.varint()?;
                Value::Other
            }
            1 => {
                self.take(8)?;
                Value::Other
            }
            2 => {
                let len = usize::try_from(self.varint()?).map_err(|_| Malformed::Garbage)?;
                Value::Bytes(self.take(len)?)
            }
            5 => {
                self.take(4)?;
                Value::Other
            }
            // Groups are of another age, and no message here has one.
            _ => return Err(Malformed::Garbage),
        };
        if tag >> 3 == 0 {
            return Err(Malformed::Garbage);
        }
        Ok(Some((tag >> 3, value)))
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for (at, byte) in self.0.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                self.0 = &self.0[at + 1..];
                return Ok(value);
            }
        }
        Err(Malformed::Garbage)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (value, rest) = self.0.split_at_checked(len).ok_or(Malformed::Garbage)?;
        self.0 = rest;
        Ok(value)
    }
}

/// A text.
pub(crate) fn text(value: &[u8]) -> Result<&str, Malformed> {
    str::from_utf8(value).map_err(|_| Malformed::Text)
}

/// Nonces are hexadecimal numbers of ours; anybody else's is one that never matches.
pub(crate) fn parse_nonce(value: &[u8]) -> u64 {
    parse_hexadecimal(value).unwrap_or(u64::MAX)
}

/// Versions are hexadecimal numbers of 16 digits; anybody else's is one that never matches, of something that stands in for nothing.
pub(crate) fn parse_version(value: &[u8]) -> u64 {
    let ours = Some(value).filter(|value| value.len() == 16).and_then(parse_hexadecimal);
    ours.unwrap_or(Role::Own.version(u64::MAX))
}

fn parse_hexadecimal(value: &[u8]) -> Option<u64> {
    u64::from_str_radix(str::from_utf8(value).ok()?, 16).ok()
}
