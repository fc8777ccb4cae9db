//! The names of resources: from identity, never from an index, an order or a time.

use crate::listener::slots::Slot;
use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use envoy_api::envoy::config::core::v3::{
    AggregatedConfigSource, ApiVersion, ConfigSource, config_source::ConfigSourceSpecifier,
};
use model::{
    CertificateRef, ChainId, ClusterId, EndpointsId, Host, ListenerId, ObjectRef, PortId, Transport,
    cluster::{Backend, CaBundle},
    jwt::JwtProviderId,
    tls::{Admission, ClientValidation, client_validation::ClientTrust},
};
use std::{fmt, num::NonZeroU32};

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

/// The token that proves an Envoy's fleet, as a secret in a file.
pub const XDS_TOKEN: &str = "sesame_xds_token";

/// The runtime resource that every Envoy asks for, and the layer that holds it.
pub const RUNTIME: &str = "dynamic";

/// The token bucket of the access log of TLS handshakes: what it holds is in its name, so that one never changes.
pub fn handshake_log(per_second: NonZeroU32) -> String {
    format!("tls-handshake-log/{per_second}")
}

/// A cluster, and the endpoint set that belongs to it: `namespace/service/port`.
pub fn cluster(id: &ClusterId) -> String {
    id.to_string()
}

/// A cluster in statistics: `namespace_service_port`, as Contour has it.
pub fn cluster_in_stats(id: &ClusterId) -> String {
    match &id.backend {
        Backend::Service(EndpointsId { namespace, service, port, transport: Transport::Tcp }) => {
            format!("{namespace}_{service}_{port}")
        }
        Backend::Service(EndpointsId { namespace, service, port, transport: Transport::Udp }) => {
            format!("{namespace}_{service}_udp_{port}")
        }
        several @ Backend::Services(_) => several.to_string().replace(['/', ':', ','], "_"),
        extension @ Backend::Extension(_) => extension.to_string().replace('/', "_"),
        // A `.` would be a level of the name, and Envoy writes `:` as `_` anyway.
        outside @ Backend::Outside(_) => outside.to_string().replace(['/', '.', ':'], "_"),
    }
}

/// The Envoy listener of a port, and the route configuration of all of its hosts.
pub fn port(id: &PortId) -> String {
    id.to_string()
}

/// The hosts of a port in the keys of scopes. It stands in a header: a character that could end it, as in the address of an IPv6
/// port, or that Envoy would take for something to fill in, is written as `~` and its number.
pub fn group(of: &PortId) -> String {
    let mut group = String::new();
    for character in port(of).chars() {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' | '/' | '(' | ')' => group.push(character),
            other => group.push_str(&format!("~{:x}", u32::from(other))),
        }
    }
    group
}

/// The key of a scope: `<group>|<host>`.
pub fn scope_key(port: &PortId, host: &Host) -> String {
    format!("{}|{host}", group(port))
}

/// The key under which redirects are looked up that Envoy follows by itself. No host is called so.
pub fn redirects_key(port: &PortId) -> String {
    format!("{}|~", group(port))
}

/// How much of a scope's name is the hash of its group.
const GROUP_LENGTH: usize = 5;
/// How long the name of a scope is. Envoy copies the names of all scopes at every update of one of them, and does so
/// three times as fast where they fit into a C++ string object without an allocation.
const SCOPE_LENGTH: usize = 22;

/// The name of the scope of a host.
pub fn scope(port: &PortId, host: &Host) -> String {
    scope_of_key(port, &scope_key(port, host))
}

/// The name of the scope in which redirects are looked up.
pub fn redirects_scope(port: &PortId) -> String {
    scope_of_key(port, &redirects_key(port))
}

/// The route configuration that hosts of a port share, and the key of the scope that keeps it at hand: a hash of the connections that may
/// carry their requests, and of what their routes follow from, each in words that are the same in every version of Sesame. Every key of a
/// request has a `|`, so no request finds that scope.
pub fn shared_routes(port: &PortId, admission: Option<&Admission>, follows_from: &[Vec<String>]) -> String {
    let admission = admission.map_or_else(Vec::new, |Admission { chains, by_server_name, http3_port }| {
        let http3_port = http3_port.map(|port| port.to_string()).unwrap_or_default();
        let chains = chains.iter().map(|chain| chain.to_string());
        ["tls".to_owned(), by_server_name.to_string(), http3_port].into_iter().chain(chains).collect()
    });
    let lists: String = std::iter::once(&admission).chain(follows_from).map(|list| delimited(list)).collect();
    format!("{SHARED_ROUTES}{}/{}", group(port), &hash(&lists)[..HASH_LENGTH])
}

/// A list as a text that no other list has, whatever stands in it: each entry behind its length, and how many there are.
fn delimited(list: &[String]) -> String {
    let entries = list.iter().map(|entry| format!("{}:{entry}", entry.len()));
    format!("{};{}", list.len(), entries.collect::<String>())
}

/// Whether a route configuration is one that hosts share.
pub fn is_shared_routes(name: &str) -> bool {
    name.starts_with(SHARED_ROUTES)
}

/// No port is called so: none has a `:` in front.
const SHARED_ROUTES: &str = "shared:";

/// The name of a scope: [`scope_group`], then 102 bits of a hash of its key. The hash is cryptographic, because tenants
/// choose their hosts: nobody can make one whose scope has the name of another's.
pub fn scope_of_key(port: &PortId, key: &str) -> String {
    let mut name = scope_group(port);
    name.push_str(&hash(key)[..SCOPE_LENGTH - GROUP_LENGTH]);
    name
}

/// What the names of all scopes of a port begin with. Two ports may have the same.
pub fn scope_group(port: &PortId) -> String {
    hash(&group(port))[..GROUP_LENGTH].to_owned()
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

/// A slot of a port, as a filter and as the extension that fills it.
pub fn slot(port: &PortId, slot: Slot) -> String {
    format!("slot/{port}/{slot}")
}

/// The requirement of a token of a provider, and the provider itself, where Envoy asks for one: 132 bits of a hash. It stays the
/// same whatever is changed about the provider, and tells nobody whose it is.
pub fn jwt_requirement(provider: &JwtProviderId) -> String {
    let JwtProviderId { object, name } = provider;
    hash(&format!("{object}/{name}"))[..HASH_LENGTH].to_owned()
}

/// A CA bundle: the Secret it stands in, apart from a certificate that may stand there too, or another kind of object, whose
/// kind is part of the name. One of several objects, or with CRLs, is named by the hash of their names, which may be long.
pub fn ca(bundle: &CaBundle) -> String {
    let of_one = |object: &ObjectRef| {
        let ObjectRef { kind, namespace, name } = object;
        match kind.plural() {
            "secrets" => format!("ca/{namespace}/{name}"),
            plural => format!("ca/{plural}/{namespace}/{name}"),
        }
    };
    let mut names: Vec<String> = bundle.objects().map(of_one).collect();
    names.extend(bundle.crl().map(|crl| format!("crl/{}/{}", crl.namespace, crl.name)));
    match names.len() {
        1 => names.remove(0),
        // No namespace has a `:`.
        _ => format!("ca/sha256:{}", hash(&names.join(" "))),
    }
}

/// Which client certificates are accepted: the names of its CAs and CRLs. No namespace has a `:`.
pub fn client_trust(trust: &ClientTrust) -> String {
    format!("clients:{}", short(&trust.to_string()))
}

/// A text that may be long, or its hash in place of a long one.
fn short(text: &str) -> String {
    if text.len() <= LONGEST_TEXT { text.to_owned() } else { format!("sha256:{}", &hash(text)[..HASH_LENGTH]) }
}

/// The longest text that stands in a name as it is.
const LONGEST_TEXT: usize = 120;

/// The filter chain of a host whose connections are passed on, and the extension that says where to. No other chain is
/// called so: no listener's name has a `:`, and no host a `/`.
pub fn tcp_chain(listener: &ListenerId, host: &Host) -> String {
    format!("tcp:{listener}/{host}")
}

/// A filter chain whose requests are looked at: its listener, its certificates and its settings. Many certificates, and long
/// names in what is said about those of clients, are abbreviated, because the name stands in the routes of every host. The name
/// of a listener may have a `/`; a certificate's always has one, so two chains never have the same name.
pub fn chain(id: &ChainId) -> String {
    let ChainId { listener, termination, is_fallback } = id;
    let name = format!("{}{listener}", if *is_fallback { "fallback:" } else { "" });
    let model::tls::Termination { certificate, additional, lowest, highest, clients, parameters } = &**termination;
    let rest: Vec<String> = additional.iter().map(secret).collect();
    let rest = match rest.is_empty() {
        true => String::new(),
        false => format!("+{}", &hash(&rest.join("+"))[..HASH_LENGTH]),
    };
    let clients = clients.as_ref().map(|clients| format!("/clients:{}", short(&ClientValidation::to_string(clients))));
    let parameters = parameters.as_ref().map(|own| format!("/parameters:{}", &hash(&format!("{own}"))[..HASH_LENGTH]));
    let (parameters, clients) = (parameters.unwrap_or_default(), clients.unwrap_or_default());
    format!("{name}/{certificate}{rest}/tls{lowest}-{highest}{parameters}{clients}")
}

/// How much of a hash stands for many names: 132 bits.
const HASH_LENGTH: usize = 22;

/// The filter chain of a plain TCP listener, and the extension that says where its connections go.
pub fn tcp_listener(listener: &ListenerId) -> String {
    format!("tcp-listener:{listener}")
}

/// The cluster of a UDP listener, whatever its backends are: a change of the listener would lose every session.
pub fn udp_cluster(listener: &ListenerId) -> String {
    format!("udp:{listener}")
}

/// A filter chain that there is not: connections that are led to it are closed, and take no other chain.
pub const REFUSED_CHAIN: &str = "refused";

/// The filter chain of a TLS listener for plaintext connections. The name of any other has a `/`.
pub const PLAINTEXT_CHAIN: &str = "plaintext";

/// A cluster that there is not: connections to it are ended.
pub const NO_CLUSTER: &str = "nowhere";

/// "Ask for it on the stream that you have."
pub fn on_this_stream() -> ConfigSource {
    ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(AggregatedConfigSource {})),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use model::{
        FleetId,
        tls::{Termination, TlsVersions},
    };
    use std::{collections::BTreeSet, sync::Arc};

    #[test]
    fn names_of_scopes_fit_into_a_string_object() {
        for name in ["ingress_http", "tcp-[2001:db8::1]:443", &"p".repeat(200)] {
            let port = PortId::new(FleetId::Shared, name);
            let longest = format!("{}example.com", "a.".repeat(121));
            for host in ["a.example.com", "*.example.com", "*", &longest] {
                assert_eq!(scope(&port, &Host::parse(host).unwrap()).len(), 22, "{host} on {name}");
            }
            assert_eq!(redirects_scope(&port).len(), 22, "{name}");
        }
    }

    #[test]
    fn names_of_listeners_with_slashes_and_colons_are_no_others() {
        let id = |name: &str| ListenerId::new(FleetId::Shared, name);
        let host = |name: &str| Host::parse(name).unwrap();
        let certificate = CertificateRef::Secret(ObjectRef::new(kinds::kind::SECRET, "b", "c"));
        let termination = Arc::new(Termination::new(certificate, TlsVersions::default()));
        let chain = |listener: &str, is_fallback| {
            super::chain(&ChainId { listener: id(listener), termination: termination.clone(), is_fallback })
        };
        let names = [
            tcp_listener(&id("a/b.example.com")),
            tcp_chain(&id("a"), &host("b.example.com")),
            tcp_chain(&id("listener:a"), &host("b.example.com")),
            tcp_chain(&id("a/x"), &host("b.example.com")),
            chain("x", true),
            chain("x/fallback", false),
            chain("fallback:x", false),
            chain("x", false),
            chain("tcp:a", false),
        ];
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
        assert!(names.iter().all(|name| name != REFUSED_CHAIN && name != PLAINTEXT_CHAIN));
    }

    #[test]
    fn names_of_shared_routes_tell_apart_what_differs_and_never_change() {
        let port = PortId::new(FleetId::Shared, "ingress_https");
        let lists = |lists: &[&[&str]]| -> Vec<Vec<String>> {
            lists.iter().map(|list| list.iter().map(|&entry| entry.to_owned()).collect()).collect()
        };
        let admission = |chains: &[&str], http3_port| {
            let chains = chains.iter().map(|&chain| chain.into()).collect();
            Some(Admission { chains, by_server_name: false, http3_port })
        };
        let names = [
            (None, lists(&[&["a", "b"]])),
            (None, lists(&[&["a"], &["b"]])),
            (None, lists(&[&["ab"]])),
            (None, lists(&[&["a", "1:b"]])),
            (None, lists(&[&["a1:b"]])),
            (admission(&[], None), lists(&[&["a", "b"]])),
            (admission(&["x"], None), lists(&[&["a", "b"]])),
            (admission(&["x"], Some(443)), lists(&[&["a", "b"]])),
            (admission(&["x", "y"], None), lists(&[&["a", "b"]])),
        ]
        .map(|(admission, of)| shared_routes(&port, admission.as_ref(), &of));
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
        // A proxy that is given another name for what it has is sent all of it once more.
        assert_eq!(
            [&names[0], &names[7]],
            ["shared:ingress_https/acLM-zdBnlSoRcomw4iWKV", "shared:ingress_https/lb15KH-53HKL9jHmU6bB90"]
        );
    }
}
