//! Gateways and ListenerSets on a handful of objects: which listeners are served, and what is said about each.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod client_certificates;
mod conflicts;
mod status;
pub mod world;

use crate::{PortShift, Protocol};
use kinds::kind;
use model::{FleetId, Host, ListenerId, PortProtocol};
use serde_json::json;
use std::net::Ipv4Addr;
use world::{World, listener};

#[test]
fn ports_are_shifted_and_begin_again_above_the_privileged_ones() {
    let all = PortShift { by: 8000, privileged_only: false };
    assert_eq!(
        [80, 443, 8080, 57_535, 57_536, 65_535].map(|port| all.bound(port)),
        [8080, 8443, 16_080, 65_535, 1024, 9023]
    );
    let few = PortShift { by: 8000, privileged_only: true };
    assert_eq!([80, 443, 1023, 1024, 8080, 65_535].map(|port| few.bound(port)), [8080, 8443, 9023, 1024, 8080, 65_535]);
}

#[test]
fn a_gateway_is_ours_by_the_controller_of_its_class() {
    let gateway = json!([listener("http", "HTTP", 80, json!({}))]);
    let mut world = World::without_classes();
    world.class("ours", "projectsesame.io/gateway-controller", json!({}));
    world.class("theirs", "example.com/controller", json!({}));
    for (class, is_ours) in [("ours", true), ("theirs", false), ("none", false), ("sesame", false)] {
        world.gateway_of(class, "web", gateway.clone(), json!({}));
        assert_eq!(world.translate(kind::GATEWAY, "web").is_some(), is_ours, "{class}");
    }
    // In a folder the class need not be there; one that is there and another's is not ours.
    world.settings.implied_class = Some("sesame".into());
    assert!(world.translate(kind::GATEWAY, "web").is_some());
    world.class("sesame", "example.com/controller", json!({}));
    assert!(world.translate(kind::GATEWAY, "web").is_none());
    world.settings.bound = Some(("default".into(), "web".into()));
    assert!(world.translate(kind::GATEWAY, "web").is_some());
    world.settings.bound = Some(("default".into(), "other".into()));
    assert!(world.translate(kind::GATEWAY, "web").is_none());
}

/// One is on the shared fleet, where ports are shifted and the listener for every host is the fleet's; others have their own.
#[test]
fn a_gateway_is_bound_to_the_shared_fleet_beside_others_with_fleets_of_their_own() {
    let mut world = World::default();
    world.class("theirs", "example.com/controller", json!({}));
    world.settings.address = Ipv4Addr::LOCALHOST.into();
    world.settings.bound = Some(("default".into(), "bound".into()));
    world.secret("cert", &["a.example.com"]);
    let tls = json!({ "hostname": "a.example.com", "tls": { "certificateRefs": [{ "name": "cert" }] } });
    let listeners = json!([
        listener("http", "HTTP", 80, json!({})),
        listener("more", "HTTP", 9000, json!({})),
        listener("contour", "projectcontour.io/https", 9443, tls),
    ]);
    world.gateway_of("theirs", "bound", listeners.clone(), json!({}));
    world.gateway("own", listeners.clone(), json!({}));
    world.gateway_of("theirs", "foreign", listeners, json!({}));
    let claims = |world: &mut World, name: &str| {
        let translation = world.translate(kind::GATEWAY, name)?;
        let claims = translation.listeners.iter();
        let claims = claims.map(|it| format!("{} {}:{}", it.listener.name(), it.address, it.port)).collect::<Vec<_>>();
        let fleet = translation.hosts[0].0.fleet().clone();
        Some((fleet, claims.join(", ")))
    };
    let on_shared = "gateway/default/bound/contour 127.0.0.1:17443, gateway/default/bound/more 127.0.0.1:17000";
    let bound = (FleetId::Shared, on_shared.to_owned());
    assert_eq!(claims(&mut world, "bound"), Some(bound.clone()));
    assert_eq!(claims(&mut world, "own"), None, "without fleets of their own there is no other");
    world.settings.own_fleets = true;
    assert_eq!(claims(&mut world, "bound"), Some(bound));
    let (fleet, own) = claims(&mut world, "own").unwrap();
    assert!(matches!(fleet, FleetId::Named(_)), "{fleet:?}");
    let ports = [("contour", 9443), ("http", 80), ("more", 9000)];
    let ports = ports.map(|(name, port)| format!("gateway/default/own/{name} 0.0.0.0:{port}"));
    assert_eq!(own, ports.join(", "));
    assert_eq!(claims(&mut world, "foreign"), None);
}

#[test]
fn listeners_are_claimed_and_name_their_hosts() {
    let mut world = World::default();
    world.secret("cert", &["a.example.com", "*.example.com"]);
    let tls = json!({ "certificateRefs": [{ "name": "cert" }] });
    world.gateway(
        "web",
        json!([
            listener("http", "HTTP", 80, json!({})),
            listener("narrow", "HTTP", 80, json!({ "hostname": "*.example.com" })),
            listener("https", "HTTPS", 443, json!({ "hostname": "a.example.com", "tls": tls })),
            listener("pass", "TLS", 443, json!({ "hostname": "b.example.com", "tls": { "mode": "Passthrough" } })),
            listener("tcp", "TCP", 9000, json!({})),
            listener("udp", "UDP", 9000, json!({})),
        ]),
        json!({}),
    );
    let translation = world.translate(kind::GATEWAY, "web").unwrap();
    let id = |name: &str| ListenerId::new(model::FleetId::Shared, format!("gateway/default/web/{name}"));
    let claims: Vec<_> =
        translation.listeners.iter().map(|it| (it.listener.to_string(), it.port, it.protocol)).collect();
    assert_eq!(
        claims,
        [
            ("gateway/default/web/https".to_owned(), 8443, PortProtocol::Tls),
            ("gateway/default/web/narrow".to_owned(), 8080, PortProtocol::Http),
            ("gateway/default/web/pass".to_owned(), 8443, PortProtocol::Tls),
            ("gateway/default/web/tcp".to_owned(), 17_000, PortProtocol::Tcp),
            ("gateway/default/web/udp".to_owned(), 17_000, PortProtocol::Udp),
        ]
    );
    let host = |text: &str| Host::parse(text).unwrap();
    let hosts =
        [(ListenerId::http(), Host::Any), (id("narrow"), host("*.example.com")), (id("https"), host("a.example.com"))];
    assert_eq!(translation.hosts, hosts, "the listener for every host of a port that the fleet has is the fleet's");
    let tls: Vec<_> =
        translation.tls.iter().map(|piece| (piece.host.to_string(), piece.mode.certificate().is_some())).collect();
    assert_eq!(tls, [("a.example.com".to_owned(), true)]);
    assert_eq!(translation.verdicts, []);
}

#[test]
fn routes_attach_by_kind_and_namespace() {
    let mut world = World::default();
    world.namespace("shop", json!({ "team": "a" }));
    let selector = json!({ "matchExpressions": [{ "key": "team", "operator": "In", "values": ["a", "b"] }] });
    let allowed = |namespaces| json!({ "allowedRoutes": { "namespaces": namespaces } });
    world.gateway(
        "web",
        json!([
            listener("same", "HTTP", 80, json!({})),
            listener("all", "HTTP", 81, allowed(json!({ "from": "All" }))),
            listener("some", "HTTP", 82, allowed(json!({ "from": "Selector", "selector": selector }))),
            listener("named", "HTTP", 83, allowed(json!({ "from": "Selector", "selector": { "matchLabels": { "kubernetes.io/metadata.name": "other" } } }))),
            listener("grpc", "HTTP", 84, json!({ "allowedRoutes": { "kinds": [{ "kind": "GRPCRoute" }, { "kind": "TCPRoute" }] } })),
            listener("wrong", "HTTP", 85, allowed(json!({ "from": "Selector" }))),
            listener("none", "HTTP", 86, allowed(json!({ "from": "None" }))),
        ]),
        json!({}),
    );
    let merged = world.merged("web");
    let allowed = |name: &str, world: &mut World| {
        let listener = merged.listeners.iter().find(|listener| *listener.name == *name).unwrap();
        ["default", "shop", "other"].map(|namespace| listener.namespaces.allow(namespace, world))
    };
    assert_eq!(allowed("same", &mut world), [true, false, false]);
    assert_eq!(allowed("all", &mut world), [true, true, true]);
    assert_eq!(allowed("some", &mut world), [false, true, false]);
    assert_eq!(allowed("named", &mut world), [false, false, true]);
    assert_eq!(allowed("none", &mut world), [false, false, false]);
    let kinds = merged.listeners.iter().map(|listener| (&*listener.name, listener.kinds.clone(), listener.is_served()));
    let both = vec![kind::HTTP_ROUTE, kind::GRPC_ROUTE];
    let expected = [
        ("same", both.clone(), true),
        ("all", both.clone(), true),
        ("some", both.clone(), true),
        ("named", both.clone(), true),
        ("grpc", vec![kind::GRPC_ROUTE], true),
        ("wrong", both.clone(), false),
        ("none", both, true),
    ];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
    assert_eq!(Protocol::TlsTerminate.route_kinds(), [kind::TLS_ROUTE]);
}
