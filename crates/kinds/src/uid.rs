//! What tells an object from one of the same name that was deleted.
//!
//! The API server makes UUIDs, which are kept as their 16 bytes: written out they would be the largest text of most
//! objects. Anything else is kept as it is.

use crate::text_map::FromText;
use std::fmt;

/// What tells an object from one of the same name that was deleted; empty in files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Uid(Form);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Form {
    Uuid([u8; 16]),
    Text(Box<str>),
}

impl Default for Form {
    fn default() -> Self {
        Form::Text(Box::default())
    }
}

impl Uid {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Form::Text(text) if text.is_empty())
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self(uuid(text).map_or_else(|| Form::Text(text.into()), Form::Uuid))
    }
}

impl FromText for Uid {
    fn from_text(text: &str) -> Result<Self, &'static str> {
        Ok(text.into())
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Uuid(bytes) => {
                let n = u128::from_be_bytes(*bytes);
                let (a, b, c) = (n >> 96, (n >> 80) & 0xffff, (n >> 64) & 0xffff);
                write!(f, "{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", (n >> 48) & 0xffff, n & 0xffff_ffff_ffff)
            }
            Form::Text(text) => f.write_str(text),
        }
    }
}

/// The bytes of a UUID in the form that [`Uid`] writes.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let is_dash = |index: usize| matches!(index, 8 | 13 | 18 | 23);
    let is_form = text.len() == 36
        && text.bytes().enumerate().all(|(index, byte)| match is_dash(index) {
            true => byte == b'-',
            false => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        });
    if !is_form {
        return None;
    }
    u128::from_str_radix(&text.replace('-', ""), 16).ok().map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_written() {
        for text in ["8f5c0d1e-0000-4abc-8def-00000000000a", "8F5C0D1E-0000-4abc-8def-00000000000a", "x", "", "é-"] {
            assert_eq!(Uid::from(text).to_string(), text);
        }
        assert!(matches!(Uid::from("8f5c0d1e-0000-4abc-8def-00000000000a").0, Form::Uuid(_)));
        assert!(Uid::default().is_empty() && !Uid::from("x").is_empty());
    }
}
