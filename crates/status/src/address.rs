//! Where what we serve is reached: what the status of an Ingress or HTTPProxy says.
//!
//! In: what the operator set, and the Service of the proxies where that is where addresses come from. Out: a list of
//! addresses in the form of the API.

use kinds::{ObjectRef, Service, ingress::LoadBalancerAddress, kind};
use serde_json::{Map, Value};
use std::{net::IpAddr, str::FromStr};

/// Where the addresses come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// The operator named them.
    Fixed(Vec<LoadBalancerAddress>),
    /// The load balancer of this Service.
    Service(ObjectRef),
}

impl Addresses {
    /// Those of the load balancer of a Service. The source must read the namespace of that Service.
    pub fn of_service(namespace: &str, name: &str) -> Self {
        Self::Service(ObjectRef::new(kind::SERVICE, namespace, name))
    }
}

/// Why a text is no list of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither an IP address nor a lower-case DNS name")]
pub struct NotAnAddress(Box<str>);

impl FromStr for Addresses {
    type Err = NotAnAddress;

    /// Reads IP addresses and host names, separated by commas.
    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(address).collect::<Result<_, _>>().map(Self::Fixed)
    }
}

fn address(text: &str) -> Result<LoadBalancerAddress, NotAnAddress> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok(LoadBalancerAddress { ip: Some(ip.to_string().into()), hostname: None });
    }
    if !is_name(text) {
        return Err(NotAnAddress(text.into()));
    }
    Ok(LoadBalancerAddress { ip: None, hostname: Some(text.into()) })
}

/// Whether the API server takes it for a host name.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        !label.is_empty()
            && label.bytes().all(|byte| plain(byte) || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

/// The addresses of a Service's load balancer.
pub fn of(service: &Service) -> Vec<LoadBalancerAddress> {
    let status = service.status.ok();
    let all = status.into_iter().flat_map(|status| said(&status.load_balancer)).cloned();
    all.filter(|address| address.ip.is_some() || address.hostname.is_some()).collect()
}

/// The addresses that an object says, without those that could not be read.
pub(crate) fn said(balancer: &kinds::ingress::LoadBalancer) -> impl Iterator<Item = &LoadBalancerAddress> {
    balancer.ingress.good().map(|(_, address)| address)
}

/// An address as it is written.
pub(crate) fn written(address: &LoadBalancerAddress) -> Value {
    let fields = [("ip", &address.ip), ("hostname", &address.hostname)];
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.as_deref()?.into())));
    Value::Object(fields.collect::<Map<_, _>>())
}
