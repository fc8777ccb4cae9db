//! Which clients may, by their address.

use crate::No;
use kinds::{
    Checked,
    http_proxy::security::{IpFilter, IpSource},
};
use model::{
    Code, FieldPath,
    route::{AddressOf, Cidr, ClientFilter},
};

/// A list, as a route and a host have it.
type Filters = Checked<Option<Box<[IpFilter]>>>;

/// Reads the two lists, of which one may be there. A range that cannot be read takes the whole list with it: a shorter one
/// would let in or keep out whom nobody meant.
pub(crate) fn filter(allow: &Filters, deny: &Filters, field: &FieldPath) -> Result<Option<ClientFilter>, No> {
    let listed = |list: &'static str, filters: &Filters| -> Result<Option<Vec<(AddressOf, Cidr)>>, No> {
        let Some(filters) = filters.get()?.as_deref().filter(|filters| !filters.is_empty()) else { return Ok(None) };
        let ranges = filters.iter().enumerate().map(|(index, entry)| range(entry, &field.field(list).index(index)));
        ranges.collect::<Result<Vec<_>, No>>().map(Some)
    };
    match (listed("ipAllowPolicy", allow)?, listed("ipDenyPolicy", deny)?) {
        (None, None) => Ok(None),
        (Some(ranges), None) => Ok(Some(ClientFilter { allow: true, ranges })),
        (None, Some(ranges)) => Ok(Some(ClientFilter { allow: false, ranges })),
        (Some(_), Some(_)) => {
            let why = "ipAllowPolicy and ipDenyPolicy exclude each other";
            Err(No::new(Code::ProxyClientsBoth, field.field("ipDenyPolicy"), why))
        }
    }
}

fn range(entry: &IpFilter, field: &FieldPath) -> Result<(AddressOf, Cidr), No> {
    let of = match &entry.source {
        Some(IpSource::Peer) => AddressOf::Peer,
        Some(IpSource::Remote) => AddressOf::Remote,
        other => {
            let word = other.as_ref().map_or("", |source| source.as_str());
            let why = format!("`{word}` is neither `Peer` nor `Remote`");
            return Err(No::new(Code::ProxyClients, field.field("source"), why));
        }
    };
    let cidr = Cidr::parse(&entry.cidr)
        .map_err(|error| No::new(Code::ProxyClientsRange, field.field("cidr"), error.to_string()))?;
    Ok((of, cidr))
}
