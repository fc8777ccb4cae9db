//! The names of resources: from identity, never from an index, an order or a time.

use crate::listener::slots::Slot;
use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use envoy_api::envoy::config::core::v3::{
    AggregatedConfigSource, ApiVersion, ConfigSource, config_source::ConfigSourceSpecifier,
};
use model::{CertificateRef, ClusterId, Host, ListenerId, ObjectRef, RouteTableId};
use std::fmt;

/// The cluster of the bootstrap that leads to Envoy's own admin interface.
pub const ADMIN_CLUSTER: &str = "envoy-admin";

/// The cluster of the bootstrap behind which the xDS server stands.
pub const XDS_CLUSTER: &str = "sesame";

/// The DNS names of which the xDS server's certificate must have one. The second is Contour's: certificates that were
/// made for it keep working.
pub const XDS_SERVER_SANS: [&str; 2] = ["sesame", "contour"];

/// Envoy's own certificate for the xDS connection, as a secret in a file.
pub const XDS_CERTIFICATE: &str = "sesame_xds_tls_certificate";

/// What the xDS server's certificate must fulfil, as a secret in a file.
pub const XDS_VALIDATION: &str = "sesame_xds_tls_validation_context";

/// The runtime resource that every Envoy asks for, and the layer that holds it.
pub const RUNTIME: &str = "dynamic";

/// A cluster, and the endpoint set that belongs to it: `namespace/service/port`.
pub fn cluster(id: &ClusterId) -> String {
    id.to_string()
}

/// A cluster in statistics: `namespace_service_port`, as Contour has it.
pub fn cluster_in_stats(id: &ClusterId) -> String {
    let model::EndpointsId { namespace, service, port } = &id.backend;
    format!("{namespace}_{service}_{port}")
}

/// A route configuration: the listener, and the chain's certificate and settings under TLS.
pub fn route_table(id: &RouteTableId) -> String {
    id.to_string()
}

/// The hosts of a route table in the keys of scopes. Secrets' names are in it and it stands in a header: a character that
/// could end it, or that Envoy would take for something to fill in, is written as `~` and its number.
pub fn group(table: &RouteTableId) -> String {
    let mut group = String::new();
    for character in route_table(table).chars() {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' | '/' | '(' | ')' => group.push(character),
            other => group.push_str(&format!("~{:x}", u32::from(other))),
        }
    }
    group
}

/// The key of a scope: `<group>|<host>`.
pub fn scope_key(table: &RouteTableId, host: &Host) -> String {
    format!("{}|{host}", group(table))
}

/// The key under which redirects are looked up that Envoy follows by itself. No host is called so.
pub fn redirects_key(table: &RouteTableId) -> String {
    format!("{}|~", group(table))
}

/// How much of a scope's name is the hash of its group.
const GROUP_LENGTH: usize = 5;
/// How long the name of a scope is. Envoy copies the names of all scopes at every update of one of them, and does so
/// three times as fast where they fit into a C++ string object without an allocation.
const SCOPE_LENGTH: usize = 22;

/// The name of the scope of a host.
pub fn scope(table: &RouteTableId, host: &Host) -> String {
    scope_of_key(table, &scope_key(table, host))
}

/// The name of the scope in which redirects are looked up.
pub fn redirects_scope(table: &RouteTableId) -> String {
    scope_of_key(table, &redirects_key(table))
}

/// The name of a scope: [`scope_group`], then 102 bits of a hash of its key. The hash is cryptographic, because tenants
/// choose their hosts: nobody can make one whose scope has the name of another's.
pub fn scope_of_key(table: &RouteTableId, key: &str) -> String {
    let mut name = scope_group(table);
    name.push_str(&hash(key)[..SCOPE_LENGTH - GROUP_LENGTH]);
    name
}

/// What the names of all scopes of a route table begin with. Two tables may have the same.
pub fn scope_group(table: &RouteTableId) -> String {
    hash(&group(table))[..GROUP_LENGTH].to_owned()
}

fn hash(text: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, text.as_bytes()))
}

/// A certificate: the Secret it stands in. A rotated certificate keeps its name, so that no listener changes.
pub fn secret(certificate: &CertificateRef) -> String {
    certificate.to_string()
}

/// The certificate of a host where proxies ask for it by the name that a client asks for. No host has a `/`, so it is never
/// taken for another secret.
pub fn host_secret(host: &Host) -> String {
    host.to_string()
}

/// The cluster that holds the certificates of a range of hosts of a listener. No namespace has a `_`, so it is never taken for
/// the cluster of a Service.
pub fn holder(listener: &ListenerId, range: &impl fmt::Display) -> String {
    format!("tls_holder/{listener}/{range}")
}

/// A slot of a listener, as a filter and as the extension that fills it.
pub fn slot(listener: &ListenerId, slot: Slot) -> String {
    format!("slot/{listener}/{slot}")
}

/// A CA bundle: the Secret it stands in, apart from a certificate that may stand there too.
pub fn ca(secret: &ObjectRef) -> String {
    format!("ca/{}/{}", secret.namespace, secret.name)
}

/// The filter chain of a host whose connections are passed on, and the extension that says where to. No other chain is
/// called so: those of certificates have three parts.
pub fn tcp_chain(host: &Host) -> String {
    format!("tcp/{host}")
}

/// The filter chain for clients that name no host, or one that is not known.
pub const FALLBACK_CHAIN: &str = "fallback-certificate";

/// A filter chain that there is not: connections that are led to it are closed, and take no other chain.
pub const REFUSED_CHAIN: &str = "refused";

/// A cluster that there is not: connections to it are ended.
pub const NOWHERE: &str = "nowhere";

/// "Ask for it on the stream that you have."
pub fn on_this_stream() -> ConfigSource {
    ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(AggregatedConfigSource {})),
        ..Default::default()
    }
}
