//! `ExternalName`: a Service that is a DNS name.
//!
//! Whoever may write a Service could make the proxies connect to themselves, to the node, or to the cloud's metadata
//! service. So the type is off unless the operator turns it on, and names that lead there in so many words are refused
//! even then. What a name resolves to is up to whoever owns the zone: that is why it is a switch.

use crate::{No, Settings};
use model::{Code, Fqdn};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

/// Names that lead to the machine itself or to a metadata service.
const REFUSED: [&str; 6] = [
    "localhost",
    "localhost.localdomain",
    "local",
    "metadata",
    "metadata.google.internal",
    "instance-data.ec2.internal",
];

/// The host behind the Service.
pub fn host(object: &kinds::Service, settings: &Settings) -> Result<Arc<str>, No> {
    let subject = format!("Service {}/{}", object.meta.namespace, object.meta.name);
    if !settings.external_names {
        return Err(No::new(Code::ExternalNameOff, format!("{subject} is of type ExternalName")));
    }
    let refused = |why: String| No::new(Code::ExternalNameRefused, format!("{subject}: {why}"));
    let name = match object.spec.external_name.get() {
        Ok(Some(name)) => name.trim_end_matches('.').to_ascii_lowercase(),
        Ok(None) => return Err(refused("it has no externalName".into())),
        Err(fault) => return Err(refused(fault.to_string())),
    };
    if let Ok(address) = name.parse::<IpAddr>() {
        return if is_reachable(address) {
            Ok(name.into())
        } else {
            Err(refused(format!("{name} is not a remote address")))
        };
    }
    if Fqdn::parse(&name).is_err() || is_number(&name) {
        return Err(refused(format!("`{name}` is not a DNS name")));
    }
    if REFUSED.contains(&&*name) || name.ends_with(".localhost") {
        return Err(refused(format!("`{name}` leads to this machine or to a metadata service")));
    }
    Ok(name.into())
}

/// Resolvers read `127.1`, `2130706433` and `0x7f.1` as addresses: no top-level domain looks like a number.
fn is_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    last.bytes().all(|b| b.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn is_reachable(address: IpAddr) -> bool {
    /// Where one cloud has its metadata service under IPv6.
    const METADATA: std::net::Ipv6Addr = std::net::Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
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
