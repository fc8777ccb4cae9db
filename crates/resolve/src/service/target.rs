//! Where the endpoints of a Service come from: its EndpointSlices, a list in an annotation, or a DNS name.
//!
//! The list, `host:port,host:port`, is for plain local backends beside a folder of files.
//!
//! With `ExternalName`, whoever may write a Service could make the proxies connect to themselves, to the node, or to
//! the cloud's metadata service. So the type is off unless the operator turns it on, and names that lead there in so
//! many words are refused even then. What a name resolves to is up to whoever owns the zone: that is why it is a
//! switch.

use super::Target;
use crate::{Rejection, Settings};
use kinds::{Meta, service::ServiceType};
use model::{Code, Fqdn, cluster::DnsTarget};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

/// Where they come from.
pub(super) fn target(object: &kinds::Service, settings: &Settings) -> Target {
    match listed(&object.meta, settings) {
        Ok(None) => {}
        Ok(Some(list)) => return Target::Listed(list),
        Err(no) => return Target::Refused(no),
    }
    match object.spec.service_type.get() {
        Ok(Some(ServiceType::ExternalName)) => match external_name(object, settings) {
            Ok(host) => Target::External(host),
            Err(no) => Target::Refused(no),
        },
        Ok(_) => Target::Slices,
        Err(fault) => Target::Refused(Rejection::new(Code::NotDecodable, fault.to_string())),
    }
}

/// Names that lead to the machine itself or to a metadata service.
const REFUSED: [&str; 6] = [
    "localhost",
    "localhost.localdomain",
    "local",
    "metadata",
    "metadata.google.internal",
    "instance-data.ec2.internal",
];

/// The host behind a Service that is a DNS name.
fn external_name(object: &kinds::Service, settings: &Settings) -> Result<Arc<str>, Rejection> {
    let subject = format!("Service {}/{}", object.meta.namespace, object.meta.name);
    if !settings.external_names {
        return Err(Rejection::new(Code::ExternalNameOff, format!("{subject} is of type ExternalName")));
    }
    let refused = |why: String| Rejection::new(Code::ExternalNameRefused, format!("{subject}: {why}"));
    let name = match object.spec.external_name.get() {
        Ok(Some(name)) => name.trim_end_matches('.').to_ascii_lowercase(),
        Ok(None) => return Err(refused("externalName is missing".into())),
        Err(fault) => return Err(refused(fault.to_string())),
    };
    if let Ok(address) = name.parse::<IpAddr>() {
        return if is_reachable(address) {
            Ok(name.into())
        } else {
            Err(refused(format!(
                "{name} is a loopback, link-local, unspecified, multicast, broadcast or metadata address"
            )))
        };
    }
    if Fqdn::parse(&name).is_err() || is_number(&name) {
        return Err(refused(format!("`{name}` is not a DNS name")));
    }
    if REFUSED.contains(&&*name) || name.ends_with(".localhost") {
        return Err(refused(format!("`{name}` is a name of the local host or of a metadata service")));
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

/// The annotation.
const ENDPOINTS: &str = "projectsesame.io/endpoints";

/// The list, if the Service has one and may have one.
fn listed(meta: &Meta, settings: &Settings) -> Result<Option<Vec<DnsTarget>>, Rejection> {
    let no = |why: String| {
        Rejection::new(Code::EndpointsNotValid, format!("Service {}/{}: {why}", meta.namespace, meta.name))
    };
    let list = match meta.annotations.get(ENDPOINTS) {
        Ok(None) => return Ok(None),
        Ok(Some(list)) => list,
        Err(fault) => return Err(no(fault.to_string())),
    };
    if !settings.listed_endpoints {
        return Err(no(format!(
            "the annotation {ENDPOINTS} is only supported for directories of files; use EndpointSlices in a cluster"
        )));
    }
    let targets = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let targets: Result<Vec<DnsTarget>, Rejection> = targets
        .map(|entry| host_and_port(entry).ok_or_else(|| no(format!("must be host:port, not `{entry}`"))))
        .collect();
    targets.map(Some)
}

/// Whether DNS need not be asked.
pub fn all_addresses(list: &[DnsTarget]) -> bool {
    list.iter().all(|target| target.host.parse::<IpAddr>().is_ok())
}

fn host_and_port(entry: &str) -> Option<DnsTarget> {
    let (host, port) = entry.rsplit_once(':')?;
    let port = port.parse().ok().filter(|&port| port != 0)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let known = host.parse::<IpAddr>().is_ok() || Fqdn::parse(host).is_ok();
    known.then(|| DnsTarget { host: if host == "localhost" { "127.0.0.1" } else { host }.into(), port })
}
