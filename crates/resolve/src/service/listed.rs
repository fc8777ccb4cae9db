//! Endpoints listed in an annotation of the Service, `host:port,host:port`: plain local backends beside a folder of files.

use crate::{No, Settings};
use kinds::Meta;
use model::{Code, Fqdn, cluster::DnsTarget};
use std::net::IpAddr;

/// The annotation.
pub const ENDPOINTS: &str = "projectsesame.io/endpoints";

/// The list, if the Service has one and may have one.
pub fn read(meta: &Meta, settings: &Settings) -> Result<Option<Vec<DnsTarget>>, No> {
    let no = |why: String| No::new(Code::EndpointsNotValid, format!("Service {}/{}: {why}", meta.namespace, meta.name));
    let list = match meta.annotations.get(ENDPOINTS) {
        Ok(None) => return Ok(None),
        Ok(Some(list)) => list,
        Err(fault) => return Err(no(fault.to_string())),
    };
    if !settings.listed_endpoints {
        return Err(no(format!(
            "the annotation {ENDPOINTS} is for folders of files; in a cluster, use EndpointSlices"
        )));
    }
    let targets = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let targets: Result<Vec<DnsTarget>, No> =
        targets.map(|entry| target(entry).ok_or_else(|| no(format!("`{entry}` is not host:port")))).collect();
    targets.map(Some)
}

/// Whether DNS need not be asked.
pub fn all_addresses(list: &[DnsTarget]) -> bool {
    list.iter().all(|target| target.host.parse::<IpAddr>().is_ok())
}

fn target(entry: &str) -> Option<DnsTarget> {
    let (host, port) = entry.rsplit_once(':')?;
    let port = port.parse().ok().filter(|&port| port != 0)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let known = host.parse::<IpAddr>().is_ok() || Fqdn::parse(host).is_ok();
    known.then(|| DnsTarget { host: if host == "localhost" { "127.0.0.1" } else { host }.into(), port })
}
