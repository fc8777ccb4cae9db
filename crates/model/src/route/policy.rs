//! Policies of a route, whatever its action is: IP filters, local rate limits, header and cookie changes, CORS.

use super::{Authorization, CookieRewrite, Cors, GlobalRateLimit};
use crate::{MutableHeader, header::HeaderFormat, jwt::JwtProviderId, or_default::StaticDefault};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

/// Header changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeaderChanges {
    /// Headers that are set, whatever their value was; sorted, each once.
    pub set: Vec<(MutableHeader, HeaderFormat)>,
    /// Values that are added to those that a header has; sorted by header.
    pub add: Vec<(MutableHeader, HeaderFormat)>,
    /// Headers that are removed before the others are set and added; sorted, each once.
    pub remove: Vec<MutableHeader>,
}

/// The policies of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Changes of request headers.
    pub request_headers: HeaderChanges,
    /// Changes of response headers.
    pub response_headers: HeaderChanges,
    /// Which clients may send requests, by IP address.
    pub ip_filter: Option<IpFilter>,
    /// Whether requests with an escaped slash in the path are refused.
    pub rejects_escaped_slashes: bool,
    /// Whether requests and responses go through the script of the fleet.
    pub runs_script: bool,
    /// The local rate limit of this route.
    pub local_rate_limit: Option<LocalRateLimitPolicy>,
    /// The local rate limit that all routes of the host without one of their own share.
    pub host_rate_limit: Option<Arc<LocalRateLimitPolicy>>,
    /// The global rate limit, its own or that of the host.
    pub global_limit: Option<Arc<GlobalRateLimit>>,
    /// The CORS policy.
    pub cors: Option<Arc<Cors>>,
    /// Changes of the cookies that backends set; sorted, each cookie once.
    pub cookies: Vec<CookieRewrite>,
    /// The provider whose token a request must have.
    pub jwt: Option<Arc<JwtProviderId>>,
    /// Who is asked whether a request may pass.
    pub authorization: Authorization,
}

impl HeaderChanges {
    /// How many headers an object may set and add, or remove, in one place. Envoy rejects more than 1,000 in a list, which has the
    /// operator's and Sesame's own, too.
    pub const MOST: usize = 400;

    /// Says so of more.
    ///
    /// # Errors
    /// That there are too many.
    pub fn check_count(count: usize) -> Result<(), String> {
        if count <= Self::MOST {
            return Ok(());
        }
        Err(format!("must have at most {} headers, not {count}", Self::MOST))
    }
}

impl StaticDefault for HeaderChanges {
    fn static_default() -> &'static Self {
        static NONE: HeaderChanges = HeaderChanges { set: Vec::new(), add: Vec::new(), remove: Vec::new() };
        &NONE
    }
}

impl StaticDefault for Policy {
    fn static_default() -> &'static Self {
        static NONE: Policy = Policy {
            request_headers: HeaderChanges { set: Vec::new(), add: Vec::new(), remove: Vec::new() },
            response_headers: HeaderChanges { set: Vec::new(), add: Vec::new(), remove: Vec::new() },
            ip_filter: None,
            rejects_escaped_slashes: false,
            runs_script: false,
            local_rate_limit: None,
            host_rate_limit: None,
            global_limit: None,
            cors: None,
            cookies: Vec::new(),
            jwt: None,
            authorization: Authorization::Unset,
        };
        &NONE
    }
}

/// A CIDR range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    /// The address, with zeroes after the prefix.
    pub address: IpAddr,
    /// The length of the prefix.
    pub bits: u8,
}

/// Why a text is not a CIDR range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an IP address or a CIDR range such as 10.0.0.0/8, not `{0}`")]
pub struct CidrError(Box<str>);

impl Cidr {
    /// Reads a range, or a single address.
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

    /// The same clients in the other family: an IPv4 address may be told as `::ffff:a.b.c.d`, and a range of such addresses
    /// means IPv4. Other ranges of IPv6 have no other form.
    #[must_use]
    pub fn mapped(&self) -> Option<Self> {
        match self.address {
            IpAddr::V4(v4) => Some(Self { address: v4.to_ipv6_mapped().into(), bits: self.bits + MAPPED_BITS }),
            IpAddr::V6(v6) => {
                let bits = self.bits.checked_sub(MAPPED_BITS)?;
                Some(Self { address: v6.to_ipv4_mapped()?.into(), bits })
            }
        }
    }
}

/// The length of `::ffff:0:0/96`, below which IPv4 addresses stand in IPv6.
const MAPPED_BITS: u8 = 96;

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
    /// The client address that trusted proxies forward.
    Remote,
}

/// Which clients may send requests, by IP address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpFilter {
    /// Whether the ranges are an allow list; otherwise they are a deny list.
    pub allow: bool,
    /// The ranges; never empty.
    pub ranges: Vec<(AddressOf, Cidr)>,
}

impl IpFilter {
    /// The ranges in every form that the address of a client may have.
    pub fn forms(&self) -> impl Iterator<Item = (AddressOf, Cidr)> + '_ {
        self.ranges
            .iter()
            .flat_map(|(of, cidr)| [Some(*cidr), cidr.mapped()].into_iter().flatten().map(|cidr| (*of, cidr)))
    }
}

/// Whether Envoy accepts a status for rate limited responses: from 400 on, only registered ones.
pub fn is_status(code: u16) -> bool {
    matches!(code, 400..=417 | 421..=424 | 426 | 428 | 429 | 431 | 500..=508 | 510 | 511)
}

/// A local rate limit: each proxy counts by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalRateLimitPolicy {
    /// The requests in an interval; at least 1.
    pub requests: u32,
    /// The interval.
    pub interval: Duration,
    /// The burst above that.
    pub burst: u32,
    /// The status of a rate limited response; see [`is_status`].
    pub status: u16,
    /// Headers of that response.
    pub headers: Vec<(MutableHeader, HeaderFormat)>,
}

/// Header changes that apply where a route does not change the header itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HeaderDefaults {
    /// Headers that are set: as written, since a value may contain variables of the backend.
    pub set: BTreeMap<MutableHeader, Box<str>>,
    /// Headers that are removed.
    pub remove: BTreeSet<MutableHeader>,
}

impl HeaderDefaults {
    /// The changes of a route, and these where it does not change a header; `own` are variables in values.
    #[must_use]
    pub fn under(&self, changes: HeaderChanges, own: &[(&str, &str)]) -> HeaderChanges {
        let mut set: BTreeMap<MutableHeader, HeaderFormat> = changes.set.into_iter().collect();
        let mut remove: BTreeSet<MutableHeader> = changes.remove.into_iter().collect();
        let adds = |name: &MutableHeader| changes.add.iter().any(|(own, _)| own == name);
        for (name, value) in &self.set {
            if !set.contains_key(name)
                && !remove.contains(name)
                && !adds(name)
                && let Ok(read) = HeaderFormat::read(value, own)
            {
                set.insert(name.clone(), read.format);
            }
        }
        remove.extend(self.remove.iter().filter(|name| !set.contains_key(name) && !adds(name)).cloned());
        HeaderChanges { set: set.into_iter().collect(), add: changes.add, remove: remove.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

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

    #[test]
    fn ipv4_has_a_form_in_ipv6() {
        let mapped = |text: &str| Cidr::parse(text).unwrap().mapped().map(|cidr| cidr.to_string());
        for (text, expected) in [
            ("10.0.0.0/8", Some("::ffff:10.0.0.0/104")),
            ("10.1.2.3", Some("::ffff:10.1.2.3/128")),
            ("0.0.0.0/0", Some("::ffff:0.0.0.0/96")),
            ("::ffff:10.0.0.0/104", Some("10.0.0.0/8")),
            ("::ffff:0:0/96", Some("0.0.0.0/0")),
            ("::ffff:0:0/95", None),
            ("fd00::/104", None),
            ("::/0", None),
        ] {
            assert_eq!(mapped(text).as_deref(), expected, "{text}");
        }
    }

    fn name(text: &str) -> MutableHeader {
        MutableHeader::parse(text).unwrap()
    }

    fn value(text: &str) -> HeaderFormat {
        HeaderFormat::read(text, &[]).unwrap().format
    }

    #[test]
    fn the_changes_of_a_route_come_first() {
        let defaults = HeaderDefaults {
            set: [("x-a", "%CONTOUR_NAMESPACE%"), ("x-b", "b"), ("x-c", "c"), ("x-f", "f")]
                .map(|(n, v)| (name(n), v.into()))
                .into(),
            remove: ["x-d", "x-e"].map(name).into(),
        };
        let changes = HeaderChanges {
            set: vec![(name("x-b"), value("own")), (name("x-d"), value("own"))],
            add: vec![(name("x-f"), value("own"))],
            remove: vec![name("x-c")],
        };
        let expected = HeaderChanges {
            set: vec![(name("x-a"), value("shop")), (name("x-b"), value("own")), (name("x-d"), value("own"))],
            add: vec![(name("x-f"), value("own"))],
            remove: vec![name("x-c"), name("x-e")],
        };
        assert_eq!(defaults.under(changes, &[("CONTOUR_NAMESPACE", "shop")]), expected);
        assert_eq!(HeaderDefaults::default().under(expected.clone(), &[]), expected);
    }
}
