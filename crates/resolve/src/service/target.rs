//! Where the endpoints of a Service come from: its EndpointSlices, a list in an annotation, or a DNS name.
//!
//! The list, `host:port,host:port`, is for plain local backends beside a folder of files.
//!
//! With `ExternalName`, whoever may write a Service could make the proxies connect to themselves, to the node, or to
//! the cloud's metadata service. So the type is off unless the operator turns it on, and names that lead there in so
//! many words are refused even then. What a name resolves to is up to whoever owns the zone: that is why it is a
//! switch.

use super::Target;
use crate::{Rejection, Settings, address};
use kinds::{Meta, service::ServiceType};
use model::{Code, Fqdn, cluster::DnsTarget};
use std::{net::IpAddr, sync::Arc};

/// Where they come from.
pub(super) fn target(object: &kinds::Service, settings: &Settings) -> Target {
    match listed(&object.meta, settings) {
        Ok(None) => {}
        Ok(Some(list)) => return Target::Listed(list),
        Err(rejection) => return Target::Refused(rejection),
    }
    match object.spec.service_type.get() {
        Ok(Some(ServiceType::ExternalName)) => match external_name(object, settings) {
            Ok(host) => Target::External(host),
            Err(rejection) => Target::Refused(rejection),
        },
        Ok(_) => Target::Slices,
        Err(fault) => Target::Refused(Rejection::new(Code::NotDecodable, fault.to_string())),
    }
}

/// The host behind a Service that is a DNS name.
fn external_name(object: &kinds::Service, settings: &Settings) -> Result<Arc<str>, Rejection> {
    let subject = format!("Service {}/{}", object.meta.namespace, object.meta.name);
    if !settings.external_names {
        return Err(Rejection::new(Code::ExternalNameOff, format!("{subject} is of type ExternalName")));
    }
    let refused = |why: String| Rejection::new(Code::ExternalNameNotAllowed, format!("{subject}: {why}"));
    let name = match object.spec.external_name.get() {
        Ok(Some(name)) => name.trim_end_matches('.').to_ascii_lowercase(),
        Ok(None) => return Err(refused("externalName is missing".into())),
        Err(fault) => return Err(refused(fault.to_string())),
    };
    address::check(&name).map_err(refused)?;
    Ok(name.into())
}

/// The annotation.
const ENDPOINTS: &str = "projectsesame.io/endpoints";

/// The list, if the Service has one and may have one.
fn listed(meta: &Meta, settings: &Settings) -> Result<Option<Vec<DnsTarget>>, Rejection> {
    let reject = |why: String| {
        Rejection::new(Code::EndpointsNotValid, format!("Service {}/{}: {why}", meta.namespace, meta.name))
    };
    let list = match meta.annotations.get(ENDPOINTS) {
        Ok(None) => return Ok(None),
        Ok(Some(list)) => list,
        Err(fault) => return Err(reject(fault.to_string())),
    };
    if !settings.listed_endpoints {
        return Err(reject(format!(
            "the annotation {ENDPOINTS} is only supported for directories of files; use EndpointSlices in a cluster"
        )));
    }
    let targets = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let targets: Result<Vec<DnsTarget>, Rejection> = targets
        .map(|entry| host_and_port(entry).ok_or_else(|| reject(format!("must be host:port, not `{entry}`"))))
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
