//! Which hosts objects may lead to, and why not to others; the rule is that of [`model::address`].

pub use model::address::is_reachable;

use model::{
    Fqdn,
    address::{is_local_name, is_number},
};
use std::net::IpAddr;

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
    if is_local_name(host) {
        return Err(format!("`{host}` is a name of the local host or of a metadata service"));
    }
    Ok(())
}

/// Why an address is not [reachable](is_reachable).
pub fn unreachable(address: IpAddr) -> String {
    format!("{address} is a loopback, link-local, unspecified, multicast, broadcast or metadata address")
}
