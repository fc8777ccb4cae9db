//! Splicing gives the same bytes as encoding, and each arrangement holds what it must.

use super::*;
use envoy_api::envoy::config::route::v3::{RouteConfiguration, ScopedRouteConfiguration};
use model::{
    ListenerId, SecretId, VirtualHost,
    tls::{Termination, TlsVersion},
};

fn http() -> RouteTableId {
    RouteTableId { listener: ListenerId::http(), termination: None }
}

fn tls(secret: &str) -> RouteTableId {
    let certificate = SecretId::new("ns", secret);
    let termination = Termination { certificate, lowest: TlsVersion::V1_2, highest: TlsVersion::V1_3 };
    RouteTableId { listener: ListenerId::https(), termination: Some(termination) }
}

fn host(text: &str) -> VirtualHost {
    VirtualHost { host: Host::parse(text).expect("a host"), routes: Vec::new(), deeper: Vec::new(), limit: None }
}

#[test]
fn spliced_bytes_are_the_message() {
    let hosts = [host("a.example.com"), host("*.example.com")];
    let encoded: Vec<Bytes> = hosts.iter().map(|host| encode(&http(), host, Packing::Plain)).collect();
    let spliced = plain::route_table(&http(), hosts.iter().map(|h| &h.host).zip(&encoded));
    let whole = RouteConfiguration {
        virtual_hosts: hosts.iter().map(virtual_host::virtual_host).collect(),
        ..spliced::head("ingress_http".to_owned())
    };
    assert_eq!(RouteConfiguration::decode(spliced).expect("it decodes"), whole);
}

#[test]
fn a_scope_is_named_by_its_key() {
    let scope = ScopedRouteConfiguration::decode(scoped::host(&http(), &host("a.example.com"))).expect("it decodes");
    assert_eq!(scope.name, "ingress_http|a.example.com");
    let everyone = scoped::everyone(&tls("c"), std::iter::empty());
    let everyone = ScopedRouteConfiguration::decode(everyone).expect("it decodes");
    assert_eq!(everyone.name, "ingress_https/ns/c/tls1.2-1.3|*");
    for scope in [scope, everyone] {
        let routes = scope.route_configuration.expect("it has routes");
        assert_eq!(routes.name, scope.name);
        assert!(!routes.virtual_hosts.is_empty());
        let fragments = scope.key.expect("it has a key").fragments;
        let key = fragments.into_iter().map(|fragment| format!("{:?}", fragment.r#type)).collect::<String>();
        assert!(key.contains(&format!("{:?}", scope.name)), "{key}");
    }
}

#[test]
fn no_name_can_leave_its_group() {
    assert_eq!(crate::name::group(&tls("a|b:%REQ(x)%~")), "ingress_https/ns/a~7cb~3a~25REQ(x)~25~7e/tls1.2-1.3");
}

#[test]
fn only_a_chain_of_wildcards_alone_is_a_table() {
    let packed =
        |table: &RouteTableId, exact, wildcard| Packing::Scoped.arrangement(table, Contents { exact, wildcard });
    assert_eq!(packed(&tls("c"), false, true), Arrangement::Table);
    assert_eq!(packed(&tls("c"), true, true), Arrangement::Scopes);
    assert_eq!(packed(&tls("c"), false, false), Arrangement::Scopes);
    assert_eq!(packed(&http(), false, true), Arrangement::Scopes);
    let plain = Packing::Plain.arrangement(&http(), Contents { exact: true, wildcard: true });
    assert_eq!(plain, Arrangement::Table);
}
