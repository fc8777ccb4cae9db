//! Which addresses objects may lead to: neither the machine itself, nor its network segment, nor a metadata service.
//!
//! Whoever may write an object could otherwise make Sesame or its proxies ask there in their own name. Addresses inside the cluster
//! are not refused: what listens there is the business of network policies.

use model::Fqdn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Names that lead to the machine itself or to a metadata service.
const REFUSED: [&str; 6] = [
    "localhost",
    "localhost.localdomain",
    "local",
    "metadata",
    "metadata.google.internal",
    "instance-data.ec2.internal",
];

/// Whether a name or an address in lower case may be led to, as far as the text tells. What a name resolves to is up to whoever
/// owns the zone: see [`is_reachable`].
///
/// # Errors
/// Why not.
pub fn check(host: &str) -> Result<(), String> {
    let host = host.trim_end_matches('.');
    if let Ok(address) = host.parse::<IpAddr>() {
        return if is_reachable(address) { Ok(()) } else { Err(unreachable(address)) };
    }
    if Fqdn::parse(host).is_err() || is_number(host) {
        return Err(format!("`{host}` is not a DNS name"));
    }
    if REFUSED.contains(&host) || host.ends_with(".localhost") {
        return Err(format!("`{host}` is a name of the local host or of a metadata service"));
    }
    Ok(())
}

/// Why an address is not [reachable](is_reachable).
pub fn unreachable(address: IpAddr) -> String {
    format!("{address} is a loopback, link-local, unspecified, multicast, broadcast or metadata address")
}

/// Resolvers read `127.1`, `2130706433` and `0x7f.1` as addresses: no top-level domain looks like a number.
fn is_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    last.bytes().all(|b| b.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Whether an address may be connected to.
pub fn is_reachable(address: IpAddr) -> bool {
    /// Where one cloud has its metadata service under IPv6.
    const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    let local = |v4: Ipv4Addr| {
        v4.is_loopback() || v4.is_link_local() || v4.is_unspecified() || v4.is_broadcast() || v4.octets()[0] == 0
    };
    match address.to_canonical() {
        IpAddr::V4(v4) => !local(v4) && !v4.is_multicast(),
        IpAddr::V6(v6) => {
            let embedded = v6.to_ipv4().is_some_and(local);
            !(v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_unicast_link_local()
                || v6.is_multicast()
                || v6 == METADATA
                || embedded)
        }
    }
}
