//! Reads what a client sent, field by field.
//!
//! In: the bytes of a `DeltaDiscoveryRequest` or a `DiscoveryRequest`. Out: an [`Incoming`], or why it is refused. It is
//! read by hand because a request may list a hundred thousand names: nothing is built that is not kept, and what is too
//! much is refused while it is counted, not after it was decoded at ten times its size.

use std::str;

use thiserror::Error;

use crate::limits::Limits;
use crate::resource::Name;
use crate::session::{Ask, Style};

#[cfg(test)]
mod tests;

/// A request as it came, its type not yet looked at.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The type it is about; empty on a per-type service.
    pub type_url: String,
    /// The encoded node, if the request has one.
    pub node: Option<Vec<u8>>,
    /// The nonce it answers.
    pub nonce: Option<u64>,
    /// Why it refuses that response.
    pub error: Option<String>,
    /// What it says about the subscription.
    pub ask: Ask,
}

/// Why a request is refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Malformed {
    /// Not the bytes of a message.
    #[error("not a discovery request")]
    Garbage,
    /// A text that is not one.
    #[error("a string is not UTF-8")]
    Text,
    /// More names than a stream may have.
    #[error("more than {0} names in one request")]
    Names(usize),
    /// A node that is too large.
    #[error("a node of {0} bytes")]
    Node(usize),
}

/// Reads a request.
pub fn decode(style: Style, bytes: &[u8], limits: &Limits) -> Result<Incoming, Malformed> {
    let mut incoming = Incoming { type_url: String::new(), node: None, nonce: None, error: None, ask: empty(style) };
    let mut fields = Fields(bytes);
    let mut names = 0;
    while let Some((field, value)) = fields.next()? {
        let Value::Bytes(value) = value else { continue };
        match (&mut incoming.ask, field) {
            (Ask::Delta { .. }, 1) | (Ask::Sotw { .. }, 2) => {
                if value.len() > limits.node_bytes {
                    return Err(Malformed::Node(value.len()));
                }
                incoming.node = Some(value.to_vec());
            }
            (Ask::Delta { .. }, 2) | (Ask::Sotw { .. }, 4) => incoming.type_url = text(value)?.to_owned(),
            (Ask::Delta { subscribe, .. }, 3) => subscribe.push(counted(value, &mut names, limits)?),
            (Ask::Delta { unsubscribe, .. }, 4) => unsubscribe.push(counted(value, &mut names, limits)?),
            (Ask::Delta { held, .. }, 5) => {
                let (name, version) = map_entry(value)?;
                held.push((counted(name, &mut names, limits)?, parse_version(version)));
            }
            (Ask::Sotw { names: all, .. }, 3) => all.push(counted(value, &mut names, limits)?),
            (Ask::Sotw { version, .. }, 1) => *version = Some(value).filter(|v| !v.is_empty()).map(parse_version),
            (Ask::Delta { .. }, 6) | (Ask::Sotw { .. }, 5) => {
                incoming.nonce = Some(value).filter(|v| !v.is_empty()).map(parse_version);
            }
            (Ask::Delta { .. }, 7) | (Ask::Sotw { .. }, 6) => incoming.error = Some(status_text(value)?),
            _ => {}
        }
    }
    Ok(incoming)
}

fn empty(style: Style) -> Ask {
    match style {
        Style::Delta => Ask::Delta { subscribe: Vec::new(), unsubscribe: Vec::new(), held: Vec::new() },
        Style::Sotw => Ask::Sotw { names: Vec::new(), version: None },
    }
}

fn counted(value: &[u8], names: &mut usize, limits: &Limits) -> Result<Name, Malformed> {
    *names += 1;
    if *names > limits.names {
        return Err(Malformed::Names(limits.names));
    }
    text(value).map(Name::from)
}

fn text(value: &[u8]) -> Result<&str, Malformed> {
    str::from_utf8(value).map_err(|_| Malformed::Text)
}

/// Versions and nonces are hexadecimal numbers of ours; anybody else's is one that never matches.
fn parse_version(value: &[u8]) -> u64 {
    str::from_utf8(value).ok().and_then(|text| u64::from_str_radix(text, 16).ok()).unwrap_or(u64::MAX)
}

fn map_entry(bytes: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let (mut key, mut value): (&[u8], &[u8]) = (&[], &[]);
    let mut fields = Fields(bytes);
    while let Some((field, found)) = fields.next()? {
        match (field, found) {
            (1, Value::Bytes(found)) => key = found,
            (2, Value::Bytes(found)) => value = found,
            _ => {}
        }
    }
    Ok((key, value))
}

fn status_text(bytes: &[u8]) -> Result<String, Malformed> {
    let mut message = String::new();
    let mut fields = Fields(bytes);
    while let Some((field, value)) = fields.next()? {
        if let (2, Value::Bytes(value)) = (field, value) {
            message = String::from_utf8_lossy(value).into_owned();
        }
    }
    Ok(message)
}

enum Value<'a> {
    Bytes(&'a [u8]),
    Other,
}

/// The fields of an encoded message, one after the other.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, Malformed> {
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
