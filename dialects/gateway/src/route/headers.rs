//! Header modifiers. Values are sent as they are written: nothing in them is filled in by the proxy.
//!
//! `Host` is no header like the others: a request modifier that sets it rewrites the host, and nothing else can be done with it.

use super::Rejection;
use kinds::{
    List,
    gateway::filter::{HeaderModifier, HttpHeader},
};
use model::{
    Code, FieldPath, HeaderValue, MutableHeader,
    header::{HeaderError, HeaderFormat},
    route::HeaderChanges,
};
use std::collections::{BTreeMap, BTreeSet};

/// Which headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Request,
    Response,
}

/// The changes of a modifier, and the host that it sets.
pub(crate) fn changes(
    written: &HeaderModifier,
    direction: Direction,
    field: &FieldPath,
) -> Result<(HeaderChanges, Option<HeaderValue>), Rejection> {
    let (mut set, mut host) = (BTreeMap::new(), None);
    for (field, header) in good(&written.set, &field.field("set"))? {
        let value = value(header, &field)?;
        match MutableHeader::parse(&header.name) {
            // Of several values for a header the first counts, as the API says.
            Ok(name) => _ = set.entry(name).or_insert(format(&value, &field)?),
            Err(HeaderError::Host) if direction == Direction::Request => _ = host.get_or_insert(value),
            Err(error) => return Err(no(&field.field("name"), error.to_string())),
        }
    }
    let mut add = Vec::new();
    for (field, header) in good(&written.add, &field.field("add"))? {
        add.push((name(&header.name, &field.field("name"))?, format(&value(header, &field)?, &field)?));
    }
    add.sort();
    let mut remove = BTreeSet::new();
    for (field, header) in good(&written.remove, &field.field("remove"))? {
        remove.insert(name(header, &field)?);
    }
    Ok((HeaderChanges { set: set.into_iter().collect(), add, remove: remove.into_iter().collect() }, host))
}

/// All entries of a list; one that cannot be read makes the modifier unusable.
fn good<'l, T>(list: &'l List<T>, field: &FieldPath) -> Result<Vec<(FieldPath, &'l T)>, Rejection> {
    let entries = list.iter().enumerate().map(|(index, entry)| match entry.get() {
        Ok(entry) => Ok((field.index(index), entry)),
        Err(fault) => Err(Rejection::fault(Code::GatewayRouteFilter, fault)),
    });
    entries.collect()
}

fn no(field: &FieldPath, why: String) -> Rejection {
    Rejection::new(Code::GatewayRouteFilter, field.clone(), why)
}

fn name(text: &str, field: &FieldPath) -> Result<MutableHeader, Rejection> {
    MutableHeader::parse(text).map_err(|error| no(field, error.to_string()))
}

fn value(header: &HttpHeader, field: &FieldPath) -> Result<HeaderValue, Rejection> {
    HeaderValue::parse(&header.value).map_err(|error| no(&field.field("value"), error.to_string()))
}

fn format(value: &HeaderValue, field: &FieldPath) -> Result<HeaderFormat, Rejection> {
    HeaderFormat::plain(value).map_err(|error| no(&field.field("value"), error.to_string()))
}
