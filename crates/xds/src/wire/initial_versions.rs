//! What a client has from an earlier stream: names and versions, as its first request of a type lists them.
//!
//! They are read where they stand, each time they are asked for. A list of 50,000 names made into as many strings is ten
//! times the memory, and the pieces of it would stay behind between what clients need for as long as they are connected.

use bytes::{Bytes, BytesMut};

use super::fields::{Fields, Value, parse_version, text};
use super::put_field;
use super::request::Malformed;
use crate::resource::Name;

/// The number of `DeltaDiscoveryRequest.initial_resource_versions`.
pub(crate) const FIELD: u64 = 5;

/// Names and versions that a client has.
#[derive(Clone, Debug, Default)]
pub struct InitialVersions {
    /// The whole request, of which only this field is looked at.
    request: Bytes,
    len: usize,
}

impl InitialVersions {
    /// What a request lists, all of which was read before.
    pub(crate) fn new(request: Bytes, len: usize) -> Self {
        Self { request, len }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bytes the request has.
    pub(crate) fn bytes(&self) -> usize {
        self.request.len()
    }

    /// All of them, as they were listed.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let mut fields = Fields::of(&self.request);
        std::iter::from_fn(move || {
            loop {
                match fields.next().ok()?? {
                    (FIELD, Value::Bytes(value)) => return entry(value).ok(),
                    _ => continue,
                }
            }
        })
    }
}

/// Lists them as a request does.
impl FromIterator<(Name, u64)> for InitialVersions {
    fn from_iter<T: IntoIterator<Item = (Name, u64)>>(list: T) -> Self {
        let (mut request, mut len) = (BytesMut::new(), 0);
        for (name, version) in list {
            let mut entry = BytesMut::new();
            put_field(&mut entry, 1, name.as_bytes());
            put_field(&mut entry, 2, format!("{version:016x}").as_bytes());
            put_field(&mut request, FIELD as u32, &entry);
            len += 1;
        }
        Self { request: request.freeze(), len }
    }
}

/// One entry of the list.
pub(crate) fn entry(bytes: &[u8]) -> Result<(&str, u64), Malformed> {
    let (mut name, mut version): (&[u8], &[u8]) = (&[], &[]);
    let mut fields = Fields::of(bytes);
    while let Some((field, found)) = fields.next()? {
        match (field, found) {
            (1, Value::Bytes(found)) => name = found,
            (2, Value::Bytes(found)) => version = found,
            _ => {}
        }
    }
    Ok((text(name)?, parse_version(version)))
}
