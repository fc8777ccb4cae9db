//! Whether Envoy's TLS library reads a CRL, and whether it would look anything up in it.
//!
//! In: DER. Out: nothing, or why not. As with certificates, what Envoy cannot read must never be sent. A CRL with a critical
//! extension that the library does not know is read, but then every certificate of its issuer is refused.

use super::{Elements, algorithm, bit_string, integer, name, oid, tag, time};
use std::collections::BTreeSet;

/// The object identifiers of extensions that are looked at.
mod id {
    pub const CRL_NUMBER: &[u8] = &[0x55, 0x1d, 0x14];
    pub const REASON: &[u8] = &[0x55, 0x1d, 0x15];
    pub const DELTA: &[u8] = &[0x55, 0x1d, 0x1b];
    pub const DISTRIBUTION_POINT: &[u8] = &[0x55, 0x1d, 0x1c];
    pub const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 0x23];
}

/// The tag of the extensions of a CRL.
const EXTENSIONS: u8 = 0xa0;
/// The number of version 2, the only one with extensions.
const VERSION_2: &[u8] = &[1];

/// Why a CRL that can be read is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// It lists only what changed since another one.
    Delta,
    /// It is for some certificates of its issuer only, or for those of others, in a way that is not supported.
    Scope,
    /// It has a critical extension that is not supported.
    Critical,
}

/// Reads a CRL: nothing if it is none, else whether it can be used.
pub fn read(der: &[u8]) -> Option<Result<(), Unsupported>> {
    let mut outer = Elements(der);
    let mut list = outer.inside(tag::SEQUENCE)?;
    outer.end()?;
    let body = list.inside(tag::SEQUENCE)?;
    algorithm(list.inside(tag::SEQUENCE)?)?;
    bit_string(list.take(tag::BIT_STRING)?)?;
    list.end()?;
    let mut unsupported = None;
    to_be_signed(body, &mut unsupported)?;
    Some(unsupported.map_or(Ok(()), Err))
}

fn to_be_signed(mut body: Elements<'_>, unsupported: &mut Option<Unsupported>) -> Option<()> {
    let has_version = match body.optional(tag::INTEGER)? {
        None => false,
        Some(version) => (version == VERSION_2).then_some(true)?,
    };
    algorithm(body.inside(tag::SEQUENCE)?)?;
    name(body.inside(tag::SEQUENCE)?)?;
    let (kind, this_update) = body.any()?;
    time(kind, this_update)?;
    if matches!(body.0.first(), Some(&(tag::UTC_TIME | tag::GENERALIZED_TIME))) {
        let (kind, next_update) = body.any()?;
        time(kind, next_update)?;
    }
    let mut revoked = Elements(body.optional(tag::SEQUENCE)?.unwrap_or_default());
    while !revoked.0.is_empty() {
        let mut entry = revoked.inside(tag::SEQUENCE)?;
        integer(entry.take(tag::INTEGER)?)?;
        let (kind, date) = entry.any()?;
        time(kind, date)?;
        if let Some(extensions) = entry.optional(tag::SEQUENCE)? {
            each(Elements(extensions).filter(has_version)?, unsupported, |id, content, _| match id {
                id::REASON => reason(content).map(|()| true),
                _ => Some(false),
            })?;
        }
        entry.end()?;
    }
    if let Some(extensions) = body.optional(EXTENSIONS)? {
        let mut extensions = Elements(extensions);
        let list = extensions.inside(tag::SEQUENCE)?;
        extensions.end()?;
        each(list.filter(has_version)?, unsupported, |id, content, unsupported| match id {
            id::DELTA => {
                *unsupported = Some(Unsupported::Delta);
                Some(true)
            }
            id::DISTRIBUTION_POINT => {
                distribution_point(content).unwrap_or_else(|| *unsupported = Some(Unsupported::Scope));
                Some(true)
            }
            id::AUTHORITY_KEY => authority_key(content).map(|()| true),
            id::CRL_NUMBER => number(content).map(|()| false),
            _ => Some(false),
        })?;
    }
    body.end()
}

impl<'a> Elements<'a> {
    /// These, where there may be some.
    fn filter(self, allowed: bool) -> Option<Elements<'a>> {
        (allowed && !self.0.is_empty()).then_some(self)
    }
}

/// Reads extensions, each of which may be there once; `look` says whether one is supported.
fn each(
    mut list: Elements<'_>,
    unsupported: &mut Option<Unsupported>,
    look: impl Fn(&[u8], &[u8], &mut Option<Unsupported>) -> Option<bool>,
) -> Option<()> {
    let mut seen = BTreeSet::new();
    while !list.0.is_empty() {
        let mut extension = list.inside(tag::SEQUENCE)?;
        let id = extension.take(tag::OID)?;
        oid(id)?;
        let is_critical = match extension.optional(tag::BOOLEAN)? {
            None => false,
            Some(&[value]) => value != 0,
            Some(_) => return None,
        };
        let content = extension.take(tag::OCTET_STRING)?;
        extension.end()?;
        seen.insert(id).then_some(())?;
        if !look(id, content, unsupported)? && is_critical {
            unsupported.get_or_insert(Unsupported::Critical);
        }
    }
    Some(())
}

fn reason(content: &[u8]) -> Option<()> {
    let mut content = Elements(content);
    integer(content.take(tag::ENUMERATED)?)?;
    content.end()
}

fn number(content: &[u8]) -> Option<()> {
    let mut content = Elements(content);
    integer(content.take(tag::INTEGER)?)?;
    content.end()
}

/// The key that signed: its identifier, the names of its issuer, its serial number.
fn authority_key(content: &[u8]) -> Option<()> {
    let mut content = Elements(content);
    let mut key = content.inside(tag::SEQUENCE)?;
    content.end()?;
    key.optional(0x80)?;
    if let Some(names) = key.optional(0xa1)? {
        general_names(Elements(names))?;
    }
    if let Some(serial) = key.optional(0x82)? {
        integer(serial)?;
    }
    key.end()
}

/// For which certificates a CRL is: those of its issuer that name one of these places, or users' or CAs' alone.
fn distribution_point(content: &[u8]) -> Option<()> {
    let mut content = Elements(content);
    let mut point = content.inside(tag::SEQUENCE)?;
    content.end()?;
    if let Some(place) = point.optional(0xa0)? {
        let mut place = Elements(place);
        general_names(place.inside(0xa0)?)?;
        place.end()?;
    }
    for only in [0x81, 0x82] {
        if let Some(value) = point.optional(only)? {
            (value == [0xff]).then_some(())?;
        }
    }
    point.end()
}

/// Names of the types that CRLs mostly have: URIs and distinguished names.
fn general_names(mut names: Elements<'_>) -> Option<()> {
    while !names.0.is_empty() {
        match names.any()? {
            (tag::URI, text) => text.is_ascii().then_some(())?,
            (0xa4, directory) => {
                let mut directory = Elements(directory);
                name(directory.inside(tag::SEQUENCE)?)?;
                directory.end()?;
            }
            _ => return None,
        }
    }
    Some(())
}
