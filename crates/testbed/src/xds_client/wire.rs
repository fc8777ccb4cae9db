//! Responses off the wire, read by hand: only the fields that are needed, without copying any.
//!
//! In: an encoded `DeltaDiscoveryResponse` or `DiscoveryResponse`. Out: a [`Raw`] that points into it. The two messages
//! agree on the numbers of the fields that matter, except that only delta names what was removed.

use bytes::{Buf, Bytes};

/// A resource as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its name.
    pub name: String,
    /// Its version; in state of the world, that of the whole response.
    pub version: String,
    /// The encoded message, without the `Any` around it; none where the server sent only the name.
    pub message: Option<Bytes>,
}

/// A response with its resources still encoded.
#[derive(Debug, Default)]
pub(super) struct Raw {
    pub version: String,
    pub type_url: String,
    pub nonce: String,
    pub resources: Vec<Bytes>,
    pub removed: Vec<String>,
}

/// What is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server sent something that is no response")]
pub(super) struct Malformed;

pub(super) fn response(message: &Bytes, delta: bool) -> Result<Raw, Malformed> {
    let mut raw = Raw::default();
    for field in fields(message) {
        match field? {
            (1, value) => raw.version = text(value)?,
            (2, value) => raw.resources.push(value),
            (4, value) => raw.type_url = text(value)?,
            (5, value) => raw.nonce = text(value)?,
            (6, value) if delta => raw.removed.push(text(value)?),
            _ => {}
        }
    }
    Ok(raw)
}

/// A resource of a delta response.
pub(super) fn delta_resource(bytes: &Bytes) -> Result<Resource, Malformed> {
    let mut resource = Resource { name: String::new(), version: String::new(), message: None };
    for field in fields(bytes) {
        match field? {
            (1, value) => resource.version = text(value)?,
            (2, value) => resource.message = Some(inside(&value)?),
            (3, value) => resource.name = text(value)?,
            _ => {}
        }
    }
    Ok(resource)
}

/// A resource of a state-of-the-world response: an `Any` whose message has its name in the first field, as all have.
pub(super) fn sotw_resource(any: &Bytes, version: &str) -> Result<Resource, Malformed> {
    let message = inside(any)?;
    let first = fields(&message).find(|field| !matches!(field, Ok((number, _)) if *number != 1));
    let name = first.transpose()?.map(|(_, value)| text(value)).transpose()?.unwrap_or_default();
    Ok(Resource { name, version: version.to_owned(), message: Some(message) })
}

/// What an `Any` holds.
fn inside(any: &Bytes) -> Result<Bytes, Malformed> {
    let value = fields(any).find(|field| !matches!(field, Ok((number, _)) if *number != 2));
    Ok(value.transpose()?.map(|(_, value)| value).unwrap_or_default())
}

fn text(bytes: Bytes) -> Result<String, Malformed> {
    String::from_utf8(bytes.into()).map_err(|_| Malformed)
}

/// The fields of a message that have a length; numbers are passed over.
fn fields(message: &Bytes) -> impl Iterator<Item = Result<(u64, Bytes), Malformed>> {
    let mut rest = message.clone();
    std::iter::from_fn(move || {
        while rest.has_remaining() {
            match field(&mut rest) {
                Ok(Some(field)) => return Some(Ok(field)),
                Ok(None) => {}
                Err(malformed) => {
                    rest.clear();
                    return Some(Err(malformed));
                }
            }
        }
        None
    })
}

fn field(rest: &mut Bytes) -> Result<Option<(u64, Bytes)>, Malformed> {
    let key = varint(rest)?;
    let skip = match key & 7 {
        0 => varint(rest).map(|_| 0)?,
        1 => 8,
        2 => {
            let length = usize::try_from(varint(rest)?).map_err(|_| Malformed)?;
            return match length <= rest.remaining() {
                true => Ok(Some((key >> 3, rest.split_to(length)))),
                false => Err(Malformed),
            };
        }
        5 => 4,
        _ => return Err(Malformed),
    };
    if skip > rest.remaining() {
        return Err(Malformed);
    }
    rest.advance(skip);
    Ok(None)
}

fn varint(rest: &mut Bytes) -> Result<u64, Malformed> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        if !rest.has_remaining() {
            return Err(Malformed);
        }
        let byte = rest.get_u8();
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Malformed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use envoy_api::envoy::config::cluster::v3::Cluster;
    use envoy_api::envoy::service::discovery::v3 as discovery;
    use envoy_api::{Message, any};

    use super::*;

    fn cluster(name: &str) -> Cluster {
        Cluster { name: name.into(), alt_stat_name: "x".repeat(300), ..Default::default() }
    }

    #[test]
    fn a_delta_response_is_read_as_it_was_written() {
        let resource = |name: &str| discovery::Resource {
            name: name.into(),
            version: format!("v-{name}"),
            resource: Some(any(&cluster(name))),
            ..Default::default()
        };
        let response = discovery::DeltaDiscoveryResponse {
            system_version_info: "7".into(),
            type_url: "url".into(),
            nonce: "n".into(),
            resources: vec![resource("a"), resource("b")],
            removed_resources: vec!["\nodd".into(), "gone".into()],
            control_plane: Some(Default::default()),
            ..Default::default()
        };
        let raw = super::response(&response.encode_to_vec().into(), true).unwrap();
        assert_eq!((&*raw.version, &*raw.type_url, &*raw.nonce), ("7", "url", "n"));
        assert_eq!(raw.removed, ["\nodd", "gone"]);
        let read: Vec<Resource> = raw.resources.iter().map(|bytes| delta_resource(bytes).unwrap()).collect();
        assert_eq!(read.iter().map(|r| (&*r.name, &*r.version)).collect::<Vec<_>>(), [("a", "v-a"), ("b", "v-b")]);
        assert_eq!(Cluster::decode(read[0].message.clone().unwrap()).unwrap(), cluster("a"));
    }

    #[test]
    fn a_state_of_the_world_response_is_read_as_it_was_written() {
        let response = discovery::DiscoveryResponse {
            version_info: "7".into(),
            type_url: "url".into(),
            nonce: "n".into(),
            resources: vec![any(&cluster("a"))],
            canary: true,
            control_plane: Some(envoy_api::envoy::config::core::v3::ControlPlane { identifier: "x".into() }),
            ..Default::default()
        };
        let raw = super::response(&response.encode_to_vec().into(), false).unwrap();
        assert!(raw.removed.is_empty());
        let read = sotw_resource(&raw.resources[0], &raw.version).unwrap();
        assert_eq!((&*read.name, &*read.version), ("a", "7"));
    }

    #[test]
    fn what_is_no_message_is_noticed() {
        for bytes in [&[0x0a, 5, 1][..], &[0x0a], &[0x0b], &[0xff; 11], &[0x09, 1, 2], &[0x22, 1, 0xff]] {
            assert_eq!(super::response(&Bytes::copy_from_slice(bytes), true).unwrap_err(), Malformed, "{bytes:?}");
        }
    }
}
