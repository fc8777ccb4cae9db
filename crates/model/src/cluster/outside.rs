//! A backend that is no Service: an IP address, or a name in DNS.
//!
//! Whoever names one chooses what the proxies connect to, so hosts that objects may not lead to ([`crate::address`]) are refused here.

use crate::{
    Fqdn,
    address::{is_local_name, is_number, is_reachable},
};
use std::{fmt, net::IpAddr, sync::Arc};

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
            return match is_reachable(address) {
                true => Ok(Self { host: address.to_string().into(), address: Some(address), port }),
                false => Err(OutsideHostError::Local(shown())),
            };
        }
        let name = Fqdn::parse(lower.trim_end_matches('.')).map_err(|_| OutsideHostError::Name(shown()))?;
        let name = name.as_str();
        if is_number(name) {
            return Err(OutsideHostError::Name(shown()));
        }
        if is_local_name(name) {
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
            "100.100.100.200",
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
