//! TLSRoute, TCPRoute and UDPRoute.

use super::world::{FINE, World, backend, codes, listener, parents};
use kinds::kind;
use model::{Code, Translation, Transport, cluster::Protocol};
use serde_json::{Value, json};

fn rules(references: Value) -> Value {
    json!({ "rules": [{ "backendRefs": references }] })
}

fn world() -> World {
    let mut world = World::new();
    let tls = |mode: &str, secret: &str| json!({ "tls": { "mode": mode, "certificateRefs": [{ "name": secret }] } });
    world.gateway(
        "web",
        json!([
            listener("pass", "TLS", 443, json!({ "hostname": "*.example.com", "tls": { "mode": "Passthrough" } })),
            listener("ends", "TLS", 8443, tls("Terminate", "cert")),
            listener("without", "TLS", 9443, tls("Terminate", "missing")),
            listener("tcp", "TCP", 9000, json!({})),
            listener("more", "TCP", 9001, json!({})),
            listener("udp", "UDP", 53, json!({})),
        ]),
    );
    world
}

/// The listener, host, whether connections are decrypted, and the backends.
fn tls(translation: &Translation) -> Vec<(String, String, bool, usize, u32)> {
    let piece = |piece: &model::translation::TlsPiece| {
        let proxy = piece.mode.tcp().unwrap();
        let name = piece.listener.name().rsplit('/').next().unwrap_or_default().to_owned();
        (name, piece.host.to_string(), proxy.termination.is_some(), proxy.clusters.len(), proxy.unavailable)
    };
    translation.tls.iter().map(piece).collect()
}

#[test]
fn connections_are_passed_through_or_decrypted_as_the_listener_says() {
    let mut spec = rules(json!([backend("app", 80), backend("gone", 80)]));
    spec["hostnames"] = json!(["a.example.com", "b.example.org"]);
    let translation = world().route(kind::TLS_ROUTE, spec);
    let expected = [
        ("ends", "a.example.com", true, 1, 1),
        ("ends", "b.example.org", true, 1, 1),
        ("pass", "a.example.com", false, 1, 1),
    ];
    let expected =
        expected.map(|(name, host, ends, count, gone)| (name.to_owned(), host.to_owned(), ends, count, gone));
    assert_eq!(tls(&translation), expected, "a listener without a certificate serves nobody");
    assert_eq!(translation.attached.len(), 3, "but counts its routes");
    assert_eq!(parents(&translation), [[FINE[0], "ResolvedRefs=False BackendNotFound"]]);
    assert!(translation.routes.is_empty() && translation.hosts.is_empty());
}

#[test]
fn the_narrower_name_of_a_route_has_the_host() {
    let mut spec = rules(json!([backend("app", 80)]));
    spec["hostnames"] = json!(["*.com"]);
    spec["parentRefs"] = json!([{ "name": "web", "sectionName": "pass" }]);
    let wide = world().route(kind::TLS_ROUTE, spec.clone());
    spec["hostnames"] = json!(["*.example.com"]);
    let narrow = world().route(kind::TLS_ROUTE, spec);
    assert_eq!(
        (wide.tls[0].host.to_string(), narrow.tls[0].host.to_string()),
        ("*.example.com".into(), "*.example.com".into())
    );
    assert!(narrow.tls[0].precedence < wide.tls[0].precedence);
}

#[test]
fn a_tls_route_does_not_attach_to_other_protocols() {
    let mut world = world();
    world.gateway("web", json!([listener("http", "HTTP", 80, json!({}))]));
    let mut spec = rules(json!([backend("app", 80)]));
    spec["hostnames"] = json!(["a.example.com"]);
    let translation = world.route(kind::TLS_ROUTE, spec);
    assert_eq!(parents(&translation)[0][0], "Accepted=False NotAllowedByListeners");
    let tcp = world.route(kind::TCP_ROUTE, rules(json!([backend("app", 80)])));
    assert_eq!(parents(&tcp)[0][0], "Accepted=False NotAllowedByListeners");
}

#[test]
fn tcp_and_udp_listeners_lead_to_weighted_backends() {
    let weighted = json!([{ "name": "app", "port": 80, "weight": 70 }, { "name": "gone", "port": 80, "weight": 20 }, { "name": "app", "port": 81, "weight": 0 }]);
    let translation = world().route(kind::TCP_ROUTE, rules(weighted));
    let listeners: Vec<_> = translation.streams.iter().map(|piece| piece.listener.name().to_string()).collect();
    assert_eq!(listeners, ["gateway/default/web/more", "gateway/default/web/tcp"]);
    let target = &translation.streams[0].target;
    let shares: Vec<_> = target.clusters.iter().map(|(cluster, weight)| (cluster.to_string(), *weight)).collect();
    assert_eq!((shares, target.unavailable), (vec![("default/app/80".to_owned(), 70)], 20));
    let mut one = rules(json!([backend("app", 80)]));
    one["parentRefs"] = json!([{ "name": "web", "sectionName": "more", "port": 9001 }]);
    assert_eq!(world().route(kind::TCP_ROUTE, one).streams.len(), 1);
    let udp = world().route(kind::UDP_ROUTE, rules(json!([backend("app", 53)])));
    let backend = udp.streams[0].target.clusters[0].0.service().unwrap();
    assert_eq!((backend.port, backend.transport), (53, Transport::Udp));
    let wrong = world().route(kind::UDP_ROUTE, rules(json!([super::world::backend("app", 80)])));
    assert_eq!(parents(&wrong)[0][1], "ResolvedRefs=False UnsupportedProtocol");
}

#[test]
fn the_only_rule_decides_about_the_route() {
    for rules in [json!({ "rules": [] }), json!({ "rules": [7] })] {
        let translation = world().route(kind::TCP_ROUTE, rules.clone());
        assert_eq!((codes(&translation), translation.streams.len()), (vec![Code::GatewayRouteRule], 0), "{rules}");
        assert_eq!(parents(&translation)[0][0], "Accepted=False UnsupportedValue", "{rules}");
    }
    let two = json!({ "rules": [{ "backendRefs": [backend("app", 80)] }, { "backendRefs": [backend("app", 81)] }] });
    let translation = world().route(kind::TCP_ROUTE, two);
    assert_eq!(parents(&translation)[0][2], "PartiallyInvalid=True UnsupportedValue");
    assert_eq!(translation.streams[0].target.clusters[0].0.service().unwrap().port, 80);
}

#[test]
fn a_weight_that_is_out_of_range_costs_its_own_share_of_the_connections() {
    for (wrong, share) in [(-1, 1), (1_000_001, 1_000_000)] {
        let translation = world().route(
            kind::TCP_ROUTE,
            rules(json!([{ "name": "app", "port": 80, "weight": 3 }, { "name": "app", "port": 80, "weight": wrong }])),
        );
        let target = &translation.streams[0].target;
        let shares: Vec<_> = target.clusters.iter().map(|(cluster, weight)| (cluster.to_string(), *weight)).collect();
        assert_eq!((shares, target.unavailable), (vec![("default/app/80".to_owned(), 3)], share), "{wrong}");
        assert_eq!(codes(&translation), [Code::GatewayRouteBackend], "{wrong}");
        assert_eq!(parents(&translation), [[FINE[0], FINE[1], "PartiallyInvalid=True UnsupportedValue"]], "{wrong}");
    }
}

#[test]
fn streams_are_not_encrypted_again_unless_a_policy_says_so() {
    let mut world = world();
    let ports = json!([{ "name": "https", "port": 443, "appProtocol": "https" }]);
    world.put(kind::SERVICE, json!({ "metadata": { "name": "secure" }, "spec": { "ports": ports } }));
    let mut spec = rules(json!([backend("secure", 443)]));
    spec["hostnames"] = json!(["a.example.com"]);
    let protocols = |world: &mut World| -> Vec<(bool, Option<Protocol>)> {
        let translation = world.route(kind::TLS_ROUTE, spec.clone());
        let proxies = translation.tls.iter().map(|piece| piece.mode.tcp().unwrap());
        let protocol = |cluster: &model::ClusterId| cluster.overrides.as_ref().and_then(|overrides| overrides.protocol);
        proxies.map(|proxy| (proxy.termination.is_some(), protocol(&proxy.clusters[0].0))).collect()
    };
    let plain = Some(Protocol::Http1);
    assert_eq!(protocols(&mut world), [(true, plain), (false, plain)]);
    let target = json!([{ "group": "", "kind": "Service", "name": "secure" }]);
    let validation = json!({ "hostname": "a.b", "wellKnownCACertificates": "System" });
    let policy = json!({ "targetRefs": target, "validation": validation });
    world.put(kind::BACKEND_TLS_POLICY, json!({ "metadata": { "name": "p" }, "spec": policy }));
    assert_eq!(protocols(&mut world), [(true, Some(Protocol::Tls)), (false, plain)]);
}
