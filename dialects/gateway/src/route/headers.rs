//! Header modifiers. Values are sent as they are written: nothing in them is filled in by the proxy.
//!
//! `Host` is no header like the others: a request modifier that sets it rewrites the host, and nothing else can be done with it.

use super::{Rejection, Wrong};
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

/// The changes of a modifier, and the host that it sets. One that is wrong in part is not used, so what is left out here does not
/// matter.
pub(crate) fn changes(
    written: &HeaderModifier,
    direction: Direction,
    field: &FieldPath,
    wrong: &mut Wrong,
) -> (HeaderChanges, Option<HeaderValue>) {
    for (list, count) in
        [("set", written.set.iter().count() + written.add.iter().count()), ("remove", written.remove.iter().count())]
    {
        if let Err(why) = HeaderChanges::check_count(count) {
            wrong.add(reject(&field.field(list), why));
            return (HeaderChanges::default(), None);
        }
    }
    let (mut set, mut host) = (BTreeMap::new(), None);
    for (field, header) in good(&written.set, &field.field("set"), wrong) {
        let value = wrong.take(value(header, &field));
        match (MutableHeader::parse(&header.name), value) {
            // Of several values for a header the first counts, as the API says.
            (Ok(name), Some(value)) => {
                let format = wrong.take(format(&value, &field));
                format.into_iter().for_each(|format| _ = set.entry(name.clone()).or_insert(format));
            }
            (Err(HeaderError::Host), value) if direction == Direction::Request => host = host.or(value),
            (Err(error), _) => wrong.add(reject(&field.field("name"), error.to_string())),
            (Ok(_), None) => {}
        }
    }
    let mut add = Vec::new();
    for (field, header) in good(&written.add, &field.field("add"), wrong) {
        let name = wrong.take(name(&header.name, &field.field("name")));
        let value = wrong.take(value(header, &field).and_then(|value| format(&value, &field)));
        add.extend(name.zip(value));
    }
    // By name alone: what is added to one header, in whatever case it is written, stays in the order in which it is written.
    add.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut remove = BTreeSet::new();
    for (field, header) in good(&written.remove, &field.field("remove"), wrong) {
        remove.extend(wrong.take(name(header, &field)));
    }
    (HeaderChanges { set: set.into_iter().collect(), add, remove: remove.into_iter().collect() }, host)
}

/// All entries of a list that can be read; another makes the modifier unusable.
fn good<'l, T>(list: &'l List<T>, field: &FieldPath, wrong: &mut Wrong) -> Vec<(FieldPath, &'l T)> {
    let mut found = Vec::new();
    for (index, entry) in list.iter().enumerate() {
        let entry = entry.get().map_err(|fault| Rejection::fault(Code::GatewayRouteFilter, fault));
        found.extend(wrong.take(entry).map(|entry| (field.index(index), entry)));
    }
    found
}

fn reject(field: &FieldPath, why: String) -> Rejection {
    Rejection::new(Code::GatewayRouteFilter, field.clone(), why)
}

fn name(text: &str, field: &FieldPath) -> Result<MutableHeader, Rejection> {
    MutableHeader::parse(text).map_err(|error| reject(field, error.to_string()))
}

fn value(header: &HttpHeader, field: &FieldPath) -> Result<HeaderValue, Rejection> {
    HeaderValue::parse(&header.value).map_err(|error| reject(&field.field("value"), error.to_string()))
}

fn format(value: &HeaderValue, field: &FieldPath) -> Result<HeaderFormat, Rejection> {
    HeaderFormat::plain(value).map_err(|error| reject(&field.field("value"), error.to_string()))
}
