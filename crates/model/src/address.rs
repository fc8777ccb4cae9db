//! Which hosts objects may lead to: neither the machine itself, nor its network segment, nor a metadata service of its cloud.
//!
//! Whoever may write an object could otherwise make Sesame or its proxies connect there in their own name. Addresses inside the
//! cluster are not refused: what listens there is the business of network policies.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Names that lead to the machine itself or to a metadata service.
const LOCAL_NAMES: [&str; 10] = [
    "localhost",
    "localhost.localdomain",
    "local",
    "ip6-localhost",
    "ip6-loopback",
    "metadata",
    "metadata.goog",
    "metadata.google.internal",
    "instance-data",
    "instance-data.ec2.internal",
];

/// Services of clouds for their machines at addresses that are not link-local: those of Alibaba Cloud, Azure and Oracle Cloud.
const METADATA: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];

/// The same under IPv6: that of Google.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254);

/// The prefix of all services of Amazon for its machines: metadata, DNS, time and credentials of pods.
const AMAZON: [u16; 2] = [0xfd00, 0xec2];

/// The prefix of addresses that are translated to the IPv4 address in their last four bytes (RFC 6052).
const TRANSLATED: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

/// The prefix below which networks have translations of their own (RFC 8215): where the IPv4 address stands is up to each (RFC 6052).
const TRANSLATED_LOCALLY: [u16; 3] = [0x64, 0xff9b, 1];

/// Whether an address may be connected to.
pub fn is_reachable(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let is_local = v4.octets()[0] == 0 || v4.is_loopback() || v4.is_link_local();
            !(is_local || v4.is_multicast() || v4.is_broadcast() || METADATA.contains(&v4))
        }
        IpAddr::V6(v6) => {
            let is_local = v6.is_loopback() || v6.is_unspecified() || v6.is_unicast_link_local();
            let is_metadata = v6 == METADATA_V6 || v6.segments().starts_with(&AMAZON);
            let is_refused = is_local || v6.is_multicast() || is_metadata;
            !is_refused && embedded(v6).is_none_or(|v4| is_reachable(v4.into())) && is_translated_to_reachable(v6)
        }
    }
}

/// Whether an address that the network translates in a way of its own leads to none that is refused, wherever its IPv4 address stands.
fn is_translated_to_reachable(address: Ipv6Addr) -> bool {
    if !address.segments().starts_with(&TRANSLATED_LOCALLY) {
        return true;
    }
    let [.., b6, b7, _, b9, b10, b11, b12, b13, b14, b15] = address.octets();
    let places = [[b6, b7, b9, b10], [b7, b9, b10, b11], [b9, b10, b11, b12], [b12, b13, b14, b15]];
    // No translated address begins with zero: that is a place where this one has none.
    let mut found = places.into_iter().filter(|[first, ..]| *first != 0).map(Ipv4Addr::from).peekable();
    found.peek().is_some() && found.all(|v4| is_reachable(v4.into()))
}

/// The IPv4 address that one of IPv6 leads to.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [.., a, b, c, d] = address.octets();
    let is_translated = address.segments().starts_with(&TRANSLATED);
    if is_translated { Some(Ipv4Addr::new(a, b, c, d)) } else { address.to_ipv4() }
}

/// Whether a name in lower case, without a final dot, is one of the machine itself or of a metadata service. What other names resolve
/// to is up to whoever owns the zone: see [`is_reachable`].
pub fn is_local_name(name: &str) -> bool {
    LOCAL_NAMES.contains(&name) || name.ends_with(".localhost")
}

/// Whether resolvers may read a name as an address, such as `127.1`, `2130706433` and `0x7f.1`: no top-level domain looks like a
/// number.
pub fn is_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    last.bytes().all(|b| b.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_machine_its_segment_and_its_cloud_are_not_reachable() {
        for refused in [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "169.254.170.2",
            "224.0.0.1",
            "255.255.255.255",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "::",
            "::1",
            "fe80::1",
            "ff02::1",
            "fd00:ec2::23",
            "fd00:ec2::123",
            "fd00:ec2::253",
            "fd00:ec2::254",
            "fd00:ec2:ffff::1",
            "fd20:ce::254",
            // Of IPv4, as it is mapped, compatible and translated.
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:100.100.100.200",
            "::ffff:224.0.0.1",
            "::127.0.0.1",
            "::169.254.169.254",
            "::168.63.129.16",
            "::224.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b::192.0.0.192",
            "64:ff9b::255.255.255.255",
            "64:ff9b:1::",
            "64:ff9b:1::127.0.0.1",
            "64:ff9b:1:1:2:3:169.254.169.254",
            "64:ff9b:1:a9fe:a9:fe00::",
            "64:ff9b:1:a9:fe:a9fe::",
            "64:ff9b:1::a9:fea9:fe00:0",
        ] {
            assert!(!is_reachable(refused.parse().expect("an address")), "{refused}");
        }
    }

    #[test]
    fn addresses_of_the_cluster_and_of_others_are_reachable() {
        for allowed in [
            "10.0.0.1",
            "100.100.100.201",
            "168.63.129.17",
            "192.0.2.1",
            "192.168.0.1",
            "fd00::1",
            "fd00:ec3::1",
            "fd20:ce::253",
            "2001:db8::1",
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:0:0:1::127.0.0.1",
            "64:ff9b:1::10.0.0.1",
            "64:ff9b:1:a00:0:100::",
            "64:ff9b:1::a:0:100:0",
            "64:ff9b:2::127.0.0.1",
        ] {
            assert!(is_reachable(allowed.parse().expect("an address")), "{allowed}");
        }
    }

    #[test]
    fn names_that_lead_to_the_machine_or_read_as_addresses_are_known() {
        let local = [
            "localhost",
            "a.localhost",
            "ip6-loopback",
            "metadata",
            "metadata.goog",
            "metadata.google.internal",
            "instance-data",
            "instance-data.ec2.internal",
        ];
        for name in local {
            assert!(is_local_name(name), "{name}");
        }
        for number in ["127.1", "2130706433", "0x7f.1", "0x7f000001", "a.0x7f"] {
            assert!(is_number(number), "{number}");
        }
        let others = [
            "example.com",
            "localhost.example.com",
            "metadata.example.com",
            "a.metadata.goog",
            "instance-data.example.com",
            "0xyz",
            "a1",
        ];
        for name in others {
            assert!(!is_local_name(name) && !is_number(name), "{name}");
        }
    }
}
