//! Host names: which requests a virtual host is for.

use std::{cmp::Ordering, fmt, sync::Arc};

/// A DNS name: lower case, labels of letters, digits and hyphens, no final dot. An IPv4 address is one where a dialect
/// takes it for a name ([`Fqdn::parse_or_ipv4`]).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fqdn(Arc<str>);

/// Why a text is no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Nothing there.
    #[error("the host is empty")]
    Empty,
    /// Longer than DNS allows.
    #[error("`{0}` is longer than 253 characters")]
    TooLong(Box<str>),
    /// A label that is empty, too long, or has a character that DNS does not know.
    #[error("`{label}` in `{host}` is not a valid DNS label: 1 to 63 lower-case letters, digits and hyphens")]
    Label {
        /// The whole host.
        host: Box<str>,
        /// The part that is wrong.
        label: Box<str>,
    },
    /// An address where a name is asked for.
    #[error("`{0}` is an IP address, not a DNS name")]
    Address(Box<str>),
    /// A `*` elsewhere than as the whole first label.
    #[error("`*` may only be the whole first label of `{0}`, and a name must follow")]
    Wildcard(Box<str>),
}

impl Fqdn {
    /// Reads a name.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if text.len() > 253 {
            return Err(HostError::TooLong(text.into()));
        }
        if text.parse::<std::net::IpAddr>().is_ok() {
            return Err(HostError::Address(text.into()));
        }
        for label in text.split('.') {
            let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
            let fits = (1..=63).contains(&label.len())
                && label.bytes().all(inner)
                && !label.starts_with('-')
                && !label.ends_with('-');
            if !fits {
                return Err(HostError::Label { host: text.into(), label: label.into() });
            }
        }
        Ok(Self(text.into()))
    }

    /// Reads a name, or an IPv4 address for requests whose Host is that address.
    pub fn parse_or_ipv4(text: &str) -> Result<Self, HostError> {
        match text.parse::<std::net::Ipv4Addr>() {
            Ok(address) => Ok(Self(address.to_string().into())),
            Err(_) => Self::parse(text),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fqdn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The hosts that a route is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// This name.
    Exact(Fqdn),
    /// Names below this one. How many labels deep is a property of each route, not of the virtual host: dialects differ.
    Wildcard(Fqdn),
    /// Every name that no other host takes.
    Any,
}

impl Host {
    /// Reads a name, a name with `*.` in front, or nothing for every host.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() || text == "*" {
            return Ok(Host::Any);
        }
        match text.strip_prefix("*.") {
            Some(rest) if rest.contains('*') || rest.is_empty() => Err(HostError::Wildcard(text.into())),
            Some(rest) => Fqdn::parse(rest).map(Host::Wildcard),
            None if text.contains('*') => Err(HostError::Wildcard(text.into())),
            None => Fqdn::parse(text).map(Host::Exact),
        }
    }

    /// The same, or an IPv4 address, where the dialect takes it for a name like any other.
    pub fn parse_or_ipv4(text: &str) -> Result<Self, HostError> {
        match Fqdn::parse_or_ipv4(text) {
            Ok(name) => Ok(Host::Exact(name)),
            Err(_) => Self::parse(text),
        }
    }

    /// Whether requests for `name` (lower case, without port) belong to this host, a wildcard taken one label deep.
    pub fn covers(&self, name: &str) -> bool {
        match self {
            Host::Exact(own) => own.as_str() == name,
            Host::Wildcard(below) => {
                name.split_once('.').is_some_and(|(label, rest)| !label.is_empty() && rest == below.as_str())
            }
            Host::Any => true,
        }
    }

    /// The wildcards that it lies below, at any depth; the nearest first.
    pub fn wildcards_above(&self) -> Vec<Self> {
        let (Host::Exact(name) | Host::Wildcard(name)) = self else { return Vec::new() };
        let above = std::iter::successors(name.as_str().split_once('.'), |(_, rest)| rest.split_once('.'));
        above.filter_map(|(_, rest)| Fqdn::parse(rest).ok().map(Host::Wildcard)).collect()
    }

    fn rank(&self) -> (u8, &str) {
        match self {
            Host::Exact(name) => (0, name.as_str()),
            Host::Wildcard(name) => (1, name.as_str()),
            Host::Any => (2, ""),
        }
    }
}

/// Exact names first, then wildcards, then the rest; by name inside.
impl Ord for Host {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for Host {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Exact(name) => write!(f, "{name}"),
            Host::Wildcard(name) => write!(f, "*.{name}"),
            Host::Any => f.write_str("*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_are_hosts() {
        assert!(matches!(Host::parse("a.example.com"), Ok(Host::Exact(_))));
        assert!(matches!(Host::parse("*.example.com"), Ok(Host::Wildcard(_))));
        assert_eq!(Host::parse(""), Ok(Host::Any));
        assert_eq!(Host::parse("*"), Ok(Host::Any));
        assert_eq!(Host::parse("*.example.com").map(|h| h.to_string()), Ok("*.example.com".into()));
    }

    #[test]
    fn hosts_that_are_none() {
        for wrong in
            ["A.com", "a..b", "-a.com", "a-.com", "a_b.com", "*.*.com", "a.*.com", "*.", "a.com.", "10.0.0.1", "a b"]
        {
            assert!(Host::parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(matches!(Host::parse(&"a.".repeat(200)), Err(HostError::TooLong(_))));
    }

    #[test]
    fn an_ipv4_address_is_a_host_where_it_may_be() {
        assert_eq!(Host::parse_or_ipv4("10.0.0.1").map(|h| h.to_string()), Ok("10.0.0.1".into()));
        for name in ["a.example.com", "*.example.com", "", "127.1"] {
            assert_eq!(Host::parse_or_ipv4(name), Host::parse(name), "{name:?}");
        }
        for wrong in ["::1", "[::1]", "10.0.0.1:80", "*.10.0.0.1", "a..b"] {
            assert!(Host::parse_or_ipv4(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn wildcards_are_one_label_deep() {
        let host = Host::parse("*.example.com").expect("a host");
        assert!(host.covers("a.example.com"));
        assert!(!host.covers("a.b.example.com"));
        assert!(!host.covers("example.com"));
    }

    #[test]
    fn the_specific_comes_first() {
        let mut hosts: Vec<_> = ["*", "*.a", "b", "a"].iter().filter_map(|h| Host::parse(h).ok()).collect();
        hosts.sort();
        assert_eq!(hosts.iter().map(Host::to_string).collect::<Vec<_>>(), ["a", "b", "*.a", "*"]);
    }
}
