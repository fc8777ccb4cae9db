//! What is published: clusters and scopes of the size that they have in practice.

use xds::{Kind, Resource, content_version};

pub const KINDS: [Kind; 2] = [Kind::Cluster, Kind::ScopedRoute];

pub fn name(kind: Kind, at: usize) -> String {
    match kind {
        Kind::Cluster => format!("namespace-{}/service-{at}/8080", at % 100),
        _ => format!("g1|host-{at}.example.com"),
    }
}

/// About as many bytes as such a resource has.
fn body(kind: Kind, at: usize, edition: usize) -> Vec<u8> {
    let mut body = format!("{}#{edition:08}", name(kind, at)).into_bytes();
    body.resize(if kind == Kind::Cluster { 120 } else { 190 }, b'.');
    body
}

pub fn resource(kind: Kind, at: usize, edition: usize) -> Resource {
    let resource = Resource::new(kind, name(kind, at), body(kind, at, edition));
    match kind {
        Kind::ScopedRoute => resource.refers_to(Kind::Cluster, name(Kind::Cluster, at)),
        _ => resource,
    }
}

pub fn version(kind: Kind, at: usize) -> u64 {
    content_version(&body(kind, at, 0))
}
