//! Which clients may, by their address.

use std::{fmt, net::IpAddr};

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    /// The address, with nothing beyond the prefix.
    pub address: IpAddr,
    /// How many of its bits count.
    pub bits: u8,
}

/// Why a text is no range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither an address nor a range such as 10.0.0.0/8")]
pub struct CidrError(Box<str>);

impl Cidr {
    /// Reads a range, or an address for that one alone.
    pub fn parse(text: &str) -> Result<Self, CidrError> {
        let wrong = || CidrError(text.chars().take(80).collect::<String>().escape_debug().to_string().into());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) if bits.len() <= 3 && bits.bytes().all(|b| b.is_ascii_digit()) => {
                bits.parse().ok().filter(|&bits| bits <= most).ok_or_else(wrong)?
            }
            Some(_) => return Err(wrong()),
        };
        Ok(Self { address: masked(address, bits), bits })
    }
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4((u32::from(v4) & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6((u128::from(v6) & mask).into())
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Which address of a client is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressOf {
    /// The other end of the connection.
    Peer,
    /// What trusted proxies tell.
    Remote,
}

/// Which clients may.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientFilter {
    /// Whether those in the ranges are the only ones that may, or the ones that may not.
    pub allow: bool,
    /// The ranges; never empty.
    pub ranges: Vec<(AddressOf, Cidr)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_are_ranges() {
        let shown = |text: &str| Cidr::parse(text).map(|cidr| cidr.to_string());
        for (text, expected) in [
            ("10.1.2.3", "10.1.2.3/32"),
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("fd00::1", "fd00::1/128"),
            ("fd00:1:2::/32", "fd00:1::/32"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(shown(text), Ok(expected.to_owned()), "{text}");
        }
        for wrong in ["", "10.0.0.0/33", "10.0.0.0/", "10.0.0/8", "a", "fd00::/129", "10.0.0.0/+8", "10.0.0.0/8/8"] {
            assert!(Cidr::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
