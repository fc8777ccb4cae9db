//! Which clients may, by their address.

use crate::Rejection;
use kinds::{
    Checked,
    http_proxy::security::{self, IpSource},
};
use model::{
    Code, FieldPath,
    route::{AddressOf, Cidr, IpFilter},
};

/// A list, as a route and a host have it.
type Filters = Checked<Option<Box<[security::IpFilter]>>>;

/// How many ranges a list for connections that are passed on may have. They stand in the listener, which all hosts share.
const MOST_FOR_CONNECTIONS: usize = 1000;

/// The same list for connections, if it is not too long for them.
pub(crate) fn of_connections(ip_filter: Option<&IpFilter>, field: &FieldPath) -> Result<Option<IpFilter>, Rejection> {
    let Some(ip_filter) = ip_filter.filter(|ip_filter| ip_filter.ranges.len() > MOST_FOR_CONNECTIONS) else {
        return Ok(ip_filter.cloned());
    };
    let list = if ip_filter.allow { "ipAllowPolicy" } else { "ipDenyPolicy" };
    let why = format!(
        "the list has {} ranges; with tcpproxy the limit is {MOST_FOR_CONNECTIONS}; all connections are closed",
        ip_filter.ranges.len()
    );
    Err(Rejection::new(Code::ProxyIpPolicy, field.field(list), why))
}

/// Reads the two lists, of which one may be there. A range that cannot be read takes the whole list with it: a shorter one
/// would let in or keep out whom nobody meant.
pub(crate) fn filter(allow: &Filters, deny: &Filters, field: &FieldPath) -> Result<Option<IpFilter>, Vec<Rejection>> {
    let mut rejections = Vec::new();
    let mut listed = |list: &'static str, filters: &Filters| {
        let filters = filters.get().map_err(|fault| rejections.push(fault.into())).ok()?.as_deref();
        let filters = filters.filter(|filters| !filters.is_empty())?;
        let ranges = filters.iter().enumerate().map(|(index, entry)| range(entry, &field.field(list).index(index)));
        Some(ranges.filter_map(|range| range.map_err(|rejection| rejections.push(rejection)).ok()).collect())
    };
    let (allowed, denied): (Option<Vec<_>>, Option<Vec<_>>) =
        (listed("ipAllowPolicy", allow), listed("ipDenyPolicy", deny));
    if allowed.is_some() && denied.is_some() {
        let why = "ipAllowPolicy and ipDenyPolicy are mutually exclusive";
        rejections.push(Rejection::new(Code::ProxyIpPolicyBoth, field.field("ipDenyPolicy"), why));
    }
    if !rejections.is_empty() {
        return Err(rejections);
    }
    let allow = allowed.is_some();
    Ok(allowed.or(denied).map(|ranges| IpFilter { allow, ranges }))
}

fn range(entry: &security::IpFilter, field: &FieldPath) -> Result<(AddressOf, Cidr), Rejection> {
    let of = match &entry.source {
        Some(IpSource::Peer) => AddressOf::Peer,
        Some(IpSource::Remote) => AddressOf::Remote,
        other => {
            let word = other.as_ref().map_or("", |source| source.as_str());
            let why = format!("must be `Peer` or `Remote`, not `{word}`");
            return Err(Rejection::new(Code::ProxyIpPolicy, field.field("source"), why));
        }
    };
    let cidr = Cidr::parse(&entry.cidr)
        .map_err(|error| Rejection::new(Code::ProxyIpPolicyRange, field.field("cidr"), error.to_string()))?;
    Ok((of, cidr))
}
