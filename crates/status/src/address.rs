//! The addresses at which objects are served.
//!
//! In: the addresses that the operator configured, or the Service of the proxies. Out: a list of addresses.

use kinds::{ObjectRef, Service, kind};
use model::status::Address;
use std::{net::IpAddr, str::FromStr};

/// Where the addresses come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// The operator configured them.
    Fixed(Vec<Address>),
    /// The load balancer of this Service.
    Service(ObjectRef),
}

impl Addresses {
    /// Those of the load balancer of a Service. The source must read the namespace of that Service.
    pub fn of_service(namespace: &str, name: &str) -> Self {
        Self::Service(ObjectRef::new(kind::SERVICE, namespace, name))
    }
}

/// Why a text is no list of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither an IP address nor a lower-case DNS name")]
pub struct NotAnAddress(Box<str>);

impl FromStr for Addresses {
    type Err = NotAnAddress;

    /// Reads IP addresses and host names, separated by commas.
    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(address).collect::<Result<_, _>>().map(Self::Fixed)
    }
}

fn address(text: &str) -> Result<Address, NotAnAddress> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok(Address::ip(&ip.to_string()));
    }
    if !is_name(text) {
        return Err(NotAnAddress(text.into()));
    }
    Ok(Address::hostname(text))
}

/// Whether the API server accepts it as a host name.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        !label.is_empty()
            && label.bytes().all(|byte| plain(byte) || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

/// The addresses of a Service's load balancer.
pub fn of(service: &Service) -> Vec<Address> {
    let status = service.status.ok();
    let all = status.into_iter().flat_map(|status| status.load_balancer.ingress.good());
    let all = all.map(|(_, address)| Address { ip: address.ip.clone(), hostname: address.hostname.clone() });
    all.filter(|address| address.ip.is_some() || address.hostname.is_some()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn addresses_are_checked_where_they_are_set() {
        let expected = Addresses::Fixed(vec![Address::ip("192.0.2.1"), Address::hostname("lb.example")]);
        assert_eq!(" 192.0.2.1, lb.example ,".parse::<Addresses>().unwrap(), expected);
        for bad in ["LB.example", "a_b", "a b", "-a.example", "1.2.3.4:80"] {
            assert!(bad.parse::<Addresses>().is_err(), "{bad}");
        }
    }
}
