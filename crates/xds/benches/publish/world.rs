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

/// All resources of a host with a certificate of its own, of about the size that they have.
pub fn host(at: usize) -> Vec<Resource> {
    let cluster = name(Kind::Cluster, at);
    let filled = |text: &str, len: usize| {
        let mut body = format!("{text}-{at}").into_bytes();
        body.resize(len, b'.');
        body
    };
    vec![
        Resource::new(Kind::Cluster, &*cluster, filled("cluster", 250)).refers_to(Kind::Endpoints, &*cluster),
        Resource::new(Kind::Endpoints, &*cluster, filled("endpoints", 120)),
        Resource::new(Kind::Secret, format!("namespace/secret-{at}"), filled("secret", 3000)),
        Resource::new(Kind::ScopedRoute, name(Kind::ScopedRoute, at), filled("scope", 500))
            .refers_to(Kind::Cluster, &*cluster),
    ]
}
