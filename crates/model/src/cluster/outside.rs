//! A backend that is no Service: an IP address, or a name in DNS.
//!
//! Whoever names one chooses what the proxies connect to, so addresses that only make sense to the proxy itself are refused here:
//! loopback, link-local (where clouds keep their metadata), unspecified and multicast addresses, and names for them.

use crate::Fqdn;
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

/// A host and a port of it that is no Service's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutsideHost {
    host: Arc<str>,
    address: Option<IpAddr>,
    port: u16,
}

/// Why a text is no host that proxies may connect to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutsideHostError {
    /// It is the proxy itself, its node or its cloud.
    #[error(
        "`{0}` is an address of the proxy itself, of its node or of its cloud's metadata; proxies do not connect to it"
    )]
    Local(Box<str>),
    /// Neither a name nor an address.
    #[error("`{0}` is neither an IP address nor a DNS name")]
    Name(Box<str>),
    /// Port 0.
    #[error("must be a port number from 1 to 65535")]
    Port,
}

/// Names that lead to the proxy itself or to the metadata of a cloud.
const LOCAL_NAMES: [&str; 6] =
    ["localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback", "metadata", "metadata.google.internal"];

impl OutsideHost {
    /// Reads a host; an address of IPv6 with or without brackets.
    pub fn parse(host: &str, port: u16) -> Result<Self, OutsideHostError> {
        let shown = || host.chars().take(80).collect::<String>().escape_debug().to_string().into();
        if port == 0 {
            return Err(OutsideHostError::Port);
        }
        let lower = host.to_ascii_lowercase();
        let bare = lower.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&lower);
        if let Ok(address) = bare.parse::<IpAddr>() {
            let address = address.to_canonical();
            return match is_local(address) {
                true => Err(OutsideHostError::Local(shown())),
                false => Ok(Self { host: address.to_string().into(), address: Some(address), port }),
            };
        }
        let name = Fqdn::parse(lower.trim_end_matches('.')).map_err(|_| OutsideHostError::Name(shown()))?;
        let name = name.as_str();
        // Systems take other spellings of an address for one, such as `127.1` and `2130706433`.
        let is_number = |label: &str| label.bytes().all(|b| b.is_ascii_digit()) || label.starts_with("0x");
        if name.split('.').next_back().is_some_and(is_number) {
            return Err(OutsideHostError::Name(shown()));
        }
        if LOCAL_NAMES.contains(&name) || name.ends_with(".localhost") {
            return Err(OutsideHostError::Local(shown()));
        }
        Ok(Self { host: name.into(), address: None, port })
    }

    /// The address, or the name.
    pub fn host(&self) -> &Arc<str> {
        &self.host
    }

    /// The address, if it is one.
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Whether an address is the proxy's own, its node's, or no host's at all.
fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let carrier = v4.octets()[0] == 0;
            carrier || v4.is_loopback() || v4.is_link_local() || v4.is_multicast() || v4 == Ipv4Addr::BROADCAST
        }
        IpAddr::V6(v6) => {
            // Translations of IPv4 (`64:ff9b::/96`) lead to the address in their last four bytes.
            let embedded = v6.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
            let [.., a, b, c, d] = v6.octets();
            let metadata = v6 == Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unicast_link_local()
                || metadata
                || (embedded && is_local(Ipv4Addr::new(a, b, c, d).into()))
        }
    }
}

impl fmt::Display for OutsideHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_that_proxies_connect_to() {
        for (text, expected) in [
            ("example.com", "example.com/80"),
            ("Example.COM.", "example.com/80"),
            ("192.0.2.1", "192.0.2.1/80"),
            ("10.0.0.1", "10.0.0.1/80"),
            ("[2001:db8::1]", "2001:db8::1/80"),
            ("2001:db8::1", "2001:db8::1/80"),
            ("::ffff:192.0.2.1", "192.0.2.1/80"),
        ] {
            assert_eq!(OutsideHost::parse(text, 80).map(|host| host.to_string()), Ok(expected.to_owned()), "{text}");
        }
        assert_eq!(OutsideHost::parse("example.com", 0), Err(OutsideHostError::Port));
    }

    #[test]
    fn the_proxy_its_node_and_its_cloud_are_refused() {
        let local = [
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "metadata.google.internal",
            "127.0.0.1",
            "127.8.9.1",
            "0.0.0.0",
            "169.254.169.254",
            "[::1]",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "fe80::1",
            "fd00:ec2::254",
            "64:ff9b::7f00:1",
            "255.255.255.255",
            "224.0.0.1",
            "ff02::1",
        ];
        for text in local {
            assert!(matches!(OutsideHost::parse(text, 80), Err(OutsideHostError::Local(_))), "{text}");
        }
        for text in ["127.1", "2130706433", "0x7f.1", "0x7f000001", "a b", "", "a/b", "a_b"] {
            assert!(matches!(OutsideHost::parse(text, 80), Err(OutsideHostError::Name(_))), "{text}");
        }
    }
}
