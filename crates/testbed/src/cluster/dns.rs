//! The DNS server of a cluster, as objects.
//!
//! In: its address and image. Out: the YAML to apply.

use std::net::Ipv4Addr;

use crate::image::Image;

/// Namespace and name of its Deployment.
pub(super) const DEPLOYMENT: (&str, &str) = ("kube-system", "coredns");

pub(super) fn objects(address: Ipv4Addr, image: &Image) -> String {
    let name = image.names().first().map(String::as_str).unwrap_or_default();
    include_str!("dns.yaml").replace("{address}", &address.to_string()).replace("{image}", name)
}
