//! What is published, as bytes that another process can read: names, messages and what they point at.
//!
//! In: snapshots of fleets. Out: bytes, and from bytes the [`Resource`]s. Versions are not among them, because they are hashes of
//! content: the next process computes the same ones. Types stand with their URLs, so that the order of [`Kind`] may change; bytes with a
//! type that this build does not know are refused as a whole, for half of what is published is worse than nothing.

use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes};
use thiserror::Error;

use crate::identity::Fleet;
use crate::kind::Kind;
use crate::resource::{Entry, Name, Ref, Resource, Role};
use crate::table::Snapshot;

/// Why bytes are not read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum StoredError {
    /// They end too early, or too late.
    #[error("the resources end in the middle")]
    Truncated,
    /// A text or a number that cannot be.
    #[error("{0} is not valid")]
    Invalid(&'static str),
    /// A type of resource that another version knows.
    #[error("unknown type of resource {0:?}")]
    UnknownType(String),
}

/// Writes everything that is published to these fleets.
pub fn encode(fleets: &[(Fleet, Arc<Snapshot>)]) -> Vec<u8> {
    let bytes: usize = fleets
        .iter()
        .map(|(_, snapshot)| Kind::ALL.iter().map(|kind| snapshot.table(*kind).bytes()).sum::<usize>())
        .sum();
    let mut out = Vec::with_capacity(bytes);
    put_len(&mut out, Kind::COUNT);
    for kind in Kind::ALL {
        put_bytes(&mut out, kind.type_url().as_bytes());
    }
    put_len(&mut out, fleets.len());
    for (fleet, snapshot) in fleets {
        put_bytes(&mut out, fleet.to_string().as_bytes());
        for kind in Kind::ALL {
            let table = snapshot.table(kind);
            put_len(&mut out, table.len());
            for entry in table.iter() {
                put_entry(&mut out, entry);
            }
        }
    }
    out
}

/// Reads what [`encode`] wrote. Messages are not copied.
pub fn decode(mut bytes: Bytes) -> Result<Vec<(Fleet, Vec<Resource>)>, StoredError> {
    let mut kinds = Vec::new();
    for _ in 0..len(&mut bytes)? {
        let url = text(&mut bytes)?;
        kinds.push(Kind::from_type_url(&url).ok_or_else(|| StoredError::UnknownType((*url).to_owned()))?);
    }
    let mut fleets = Vec::new();
    for _ in 0..len(&mut bytes)? {
        let fleet = text(&mut bytes)?.parse().map_err(|_| StoredError::Invalid("the name of a fleet"))?;
        let mut resources = Vec::new();
        for kind in &kinds {
            for _ in 0..len(&mut bytes)? {
                resources.push(resource(&mut bytes, *kind, &kinds)?);
            }
        }
        fleets.push((fleet, resources));
    }
    if bytes.has_remaining() { Err(StoredError::Truncated) } else { Ok(fleets) }
}

fn put_entry(out: &mut Vec<u8>, entry: &Entry) {
    put_bytes(out, entry.name.as_bytes());
    let role = match entry.role {
        Role::Own => 0,
        Role::StandIn => 1,
        Role::Withheld => 2,
    };
    out.put_u8(u8::from(entry.warms) | u8::from(entry.idle) << 1 | role << 2);
    put_len(out, entry.refs.len());
    for to in &entry.refs {
        let (is_prefix, kind, name) = match to {
            Ref::To(kind, name) => (0, kind, name),
            Ref::Under(kind, name) => (1, kind, name),
        };
        out.put_u8(is_prefix);
        put_len(out, kind.index());
        put_bytes(out, name.as_bytes());
    }
    put_bytes(out, &entry.body);
}

fn resource(bytes: &mut Bytes, kind: Kind, kinds: &[Kind]) -> Result<Resource, StoredError> {
    let name = text(bytes)?;
    let flags = byte(bytes)?;
    let role = match flags >> 2 {
        0 => Role::Own,
        1 => Role::StandIn,
        2 => Role::Withheld,
        _ => return Err(StoredError::Invalid("the role of a resource")),
    };
    let mut refs = Vec::new();
    for _ in 0..len(bytes)? {
        let is_prefix = byte(bytes)? == 1;
        let to = *kinds.get(len(bytes)?).ok_or(StoredError::Invalid("a reference"))?;
        let name = text(bytes)?;
        refs.push(if is_prefix { Ref::Under(to, name) } else { Ref::To(to, name) });
    }
    let body = take(bytes)?;
    Ok(Resource { kind, name, body, refs, warms: flags & 1 != 0, idle: flags & 2 != 0, role, origin: None })
}

/// Lengths have four bytes: a table has less than 4 GiB, for an Envoy reads no message of 2.
fn put_len(out: &mut Vec<u8>, len: usize) {
    out.put_u32_le(u32::try_from(len).unwrap_or(u32::MAX));
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.put_slice(bytes);
}

fn len(bytes: &mut Bytes) -> Result<usize, StoredError> {
    bytes.try_get_u32_le().map(|len| len as usize).map_err(|_| StoredError::Truncated)
}

fn byte(bytes: &mut Bytes) -> Result<u8, StoredError> {
    bytes.try_get_u8().map_err(|_| StoredError::Truncated)
}

fn take(bytes: &mut Bytes) -> Result<Bytes, StoredError> {
    let len = len(bytes)?;
    if len > bytes.remaining() { Err(StoredError::Truncated) } else { Ok(bytes.split_to(len)) }
}

fn text(bytes: &mut Bytes) -> Result<Name, StoredError> {
    let bytes = take(bytes)?;
    std::str::from_utf8(&bytes).map(Name::from).map_err(|_| StoredError::Invalid("a text"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::publish::{Changes, Writer};

    fn snapshot(upserts: Vec<Resource>) -> Arc<Snapshot> {
        Writer::default().apply(Changes { upserts, removes: Vec::new() })
    }

    fn fleets() -> Vec<(Fleet, Arc<Snapshot>)> {
        let shared = vec![
            Resource::new(Kind::Cluster, "a", "cluster a").refers_to(Kind::Endpoints, "a").warming(),
            Resource::new(Kind::Endpoints, "a", "endpoints a"),
            Resource::new(Kind::Route, "r", "stands in").standing_in().refers_to(Kind::Cluster, "a"),
            Resource::withheld(Kind::Secret, "bad"),
            Resource::new(Kind::Listener, "http", "listener").refers_under(Kind::ScopedRoute, "http/").idling(),
        ];
        let own = vec![Resource::new(Kind::Cluster, "a", "another")];
        vec![(Fleet::Shared, snapshot(shared)), (Fleet::named("shop", "web"), snapshot(own))]
    }

    #[test]
    fn what_is_read_has_the_versions_of_what_was_written() {
        let fleets = fleets();
        let read = decode(encode(&fleets).into()).unwrap();
        assert_eq!(read.len(), fleets.len());
        for ((fleet, before), (read, resources)) in fleets.iter().zip(read) {
            assert_eq!(*fleet, read);
            let after = snapshot(resources);
            for kind in Kind::ALL {
                assert_eq!(before.table(kind).version(), after.table(kind).version(), "{fleet} {kind}");
                for (before, after) in before.table(kind).iter().zip(after.table(kind).iter()) {
                    assert_eq!((&before.name, &before.refs, &before.body), (&after.name, &after.refs, &after.body));
                    assert_eq!((before.warms, before.idle, before.role), (after.warms, after.idle, after.role));
                }
            }
        }
    }

    /// None of them may be taken for something smaller, or take the process down.
    #[test]
    fn bytes_that_end_early_or_go_on_are_refused() {
        let bytes = encode(&fleets());
        for end in 0..bytes.len() {
            assert!(decode(Bytes::copy_from_slice(&bytes[..end])).is_err(), "{end}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(matches!(decode(longer.into()), Err(StoredError::Truncated)));
        let mut garbled = bytes.clone();
        garbled[10] ^= 1;
        assert!(matches!(decode(garbled.into()), Err(StoredError::UnknownType(_))));
    }
}
