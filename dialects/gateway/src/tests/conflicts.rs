//! Listeners that cannot share a port, and those that may.

use super::status::{facts, of_listener};
use super::world::{World, listener};
use crate::PortShift;
use kinds::kind;
use model::{Code, Translation, route::Action, tls::TlsMode};
use serde_json::{Value, json};

/// Each listener with the reason why it is not served, or nothing.
fn reasons(world: &mut World) -> Vec<(String, &'static str)> {
    let merged = world.merged("web");
    let reason = |listener: &crate::Listener| listener.refused.as_ref().map_or("", |refused| refused.reason);
    merged.listeners.iter().map(|it| (format!("{}/{}", it.owner.name, it.name), reason(it))).collect()
}

fn of(listeners: Value) -> Vec<&'static str> {
    let mut world = World::default();
    world.gateway("web", listeners, json!({}));
    reasons(&mut world).into_iter().map(|(_, reason)| reason).collect()
}

#[test]
fn listeners_of_a_gateway_that_conflict_are_all_refused() {
    let host = |host: &str| json!({ "hostname": host });
    let tls = |host: &str, mode: &str| json!({ "hostname": host, "tls": { "mode": mode, "certificateRefs": [{ "name": "cert" }] } });
    let filters = |host: &str| json!({ "hostname": host, "filters": { "requests": [] } });
    let (hostname, protocol, value) = ("HostnameConflict", "ProtocolConflict", "UnsupportedValue");
    for (listeners, expected) in [
        ([listener("a", "HTTP", 80, json!({})), listener("b", "HTTP", 80, json!({}))], [hostname; 2]),
        ([listener("a", "HTTP", 80, host("a.com")), listener("b", "HTTP", 80, host("a.com"))], [hostname; 2]),
        ([listener("a", "HTTP", 80, host("a.com")), listener("b", "HTTP", 80, host("*.com"))], [""; 2]),
        ([listener("a", "HTTP", 80, json!({})), listener("b", "TCP", 80, json!({}))], [protocol; 2]),
        ([listener("a", "HTTP", 80, json!({})), listener("b", "HTTPS", 80, tls("a.com", "Terminate"))], [protocol; 2]),
        ([listener("a", "TCP", 80, json!({})), listener("b", "TCP", 80, json!({}))], [protocol; 2]),
        ([listener("a", "TCP", 80, json!({})), listener("b", "UDP", 80, json!({}))], [""; 2]),
        (
            [
                listener("a", "HTTPS", 443, tls("a.com", "Terminate")),
                listener("b", "TLS", 443, tls("b.com", "Passthrough")),
            ],
            [""; 2],
        ),
        (
            [
                listener("a", "TLS", 443, tls("a.com", "Terminate")),
                listener("b", "TLS", 443, tls("b.com", "Passthrough")),
            ],
            [""; 2],
        ),
        (
            [
                listener("a", "HTTPS", 443, tls("a.com", "Terminate")),
                listener("b", "TLS", 443, tls("a.com", "Passthrough")),
            ],
            [hostname; 2],
        ),
        // One whose port or hostname is not known is in nobody's way, nor is one for TCP that is not valid.
        ([listener("a", "HTTP", 80, host("A.com")), listener("b", "TCP", 80, json!({}))], ["UnsupportedValue", ""]),
        ([listener("a", "SCTP", 80, json!({})), listener("b", "TCP", 80, json!({}))], ["UnsupportedProtocol", ""]),
        ([listener("a", "TCP", 80, filters("")), listener("b", "TCP", 80, json!({}))], ["UnsupportedValue", ""]),
        // One that keeps its hostname is.
        ([listener("a", "HTTP", 80, filters("a.com")), listener("b", "HTTP", 80, host("a.com"))], [value, hostname]),
        ([listener("a", "HTTP", 80, filters("")), listener("b", "HTTP", 80, json!({}))], [value, hostname]),
        ([listener("a", "HTTP", 80, filters("a.com")), listener("b", "HTTP", 80, host("*.com"))], [value, ""]),
        ([listener("a", "HTTP", 80, filters("a.com")), listener("b", "TCP", 80, json!({}))], [value, protocol]),
    ] {
        let shown = json!(listeners).to_string();
        assert_eq!(of(json!(listeners)), expected, "{shown}");
    }
}

#[test]
fn what_is_not_supported_is_refused() {
    let tls = json!({ "tls": { "certificateRefs": [{ "name": "cert" }] } });
    for (protocol, more) in [
        ("HTTP", json!({ "tls": {} })),
        ("HTTPS", json!({})),
        ("HTTPS", json!({ "tls": { "mode": "Passthrough" } })),
        ("TLS", json!({ "tls": { "mode": "Sometimes" } })),
        ("TCP", json!({ "hostname": "a.com" })),
        ("HTTP", json!({ "hostname": "10.0.0.1" })),
        ("HTTP", json!({ "filters": { "requests": [] } })),
        ("HTTP", json!({ "port": 0 })),
        ("HTTP", json!({ "port": "eighty" })),
        ("HTTPS", json!({ "tls": { "certificateRefs": [{ "name": "cert" }], "options": { "a.com/b": "c" } } })),
        ("HTTP", json!({ "allowedRoutes": { "namespaces": { "from": "Everywhere" } } })),
    ] {
        let shown = more.to_string();
        assert_eq!(of(json!([listener("a", protocol, 80, more)])), ["UnsupportedValue"], "{protocol} {shown}");
    }
    // What would protect a port and cannot be read closes the port, and no other.
    let mut world = World::default();
    let validation = json!({ "validation": { "caCertificateRefs": [{ "name": "ca" }], "mode": "Sometimes" } });
    let frontend = json!({ "default": {}, "perPort": [{ "port": 444, "tls": validation }] });
    let listeners = json!([
        listener("a", "HTTPS", 443, tls.clone()),
        listener("b", "HTTPS", 444, tls.clone()),
        listener("c", "HTTP", 80, json!({}))
    ]);
    world.gateway("web", listeners.clone(), json!({ "tls": { "frontend": frontend } }));
    let refused = |world: &mut World| reasons(world).into_iter().map(|(_, reason)| reason).collect::<Vec<_>>();
    assert_eq!(refused(&mut world), ["", "UnsupportedValue", ""]);
    for frontend in [json!({ "default": validation }), json!("none"), json!({ "perPort": [7] })] {
        world.gateway("web", listeners.clone(), json!({ "tls": { "frontend": frontend } }));
        assert_eq!(refused(&mut world), ["UnsupportedValue", "UnsupportedValue", ""]);
    }
}

/// Hosts of others on it have connections without client certificates.
#[test]
fn the_listener_that_all_objects_share_asks_for_no_client_certificates() {
    let mut world = World::default();
    let validation = json!({ "validation": { "caCertificateRefs": [{ "kind": "ConfigMap", "name": "ca" }] } });
    let tls = |more: Value| {
        let mut listener = json!({ "tls": { "certificateRefs": [{ "name": "cert" }] } });
        listener.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        listener
    };
    let listeners = json!([
        listener("shared", "HTTPS", 443, tls(json!({}))),
        listener("host", "HTTPS", 443, tls(json!({ "hostname": "*.example.com" }))),
        listener("port", "HTTPS", 444, tls(json!({}))),
    ]);
    world.gateway("web", listeners, json!({ "tls": { "frontend": { "default": validation } } }));
    let refused = |world: &mut World| reasons(world).into_iter().map(|(_, reason)| reason).collect::<Vec<_>>();
    assert_eq!(refused(&mut world), ["UnsupportedValue", "", ""]);
    world.settings.own_ports.https = None;
    assert_eq!(refused(&mut world), ["", "", ""]);
    world.settings.own_ports.https = Some(8443);
    world.settings.own_fleets = true;
    assert_eq!(refused(&mut world), ["", "", ""]);
}

#[test]
fn sets_come_after_the_gateway_and_by_age() {
    let mut world = World::default();
    let one = |name: &str, host: &str| listener(name, "HTTP", 80, json!({ "hostname": host }));
    world.gateway(
        "web",
        json!([one("a", "a.com")]),
        json!({ "allowedListeners": { "namespaces": { "from": "All" } } }),
    );
    world.set("default", "young", 2, json!([one("x", "b.com"), one("y", "d.com")]));
    world.set("shop", "old", 1, json!([one("x", "b.com"), one("a", "a.com"), one("a", "e.com")]));
    let conflict = "HostnameConflict";
    assert_eq!(
        reasons(&mut world),
        [
            ("web/a".to_owned(), ""),
            ("old/x".to_owned(), ""),
            ("old/a".to_owned(), conflict),
            ("young/x".to_owned(), conflict),
            ("young/y".to_owned(), ""),
        ]
    );
    let why = world.merged("web").listeners[3].refused.clone().unwrap().why;
    assert_eq!(&*why, "listener x of ListenerSet shop/old has port 80 and host b.com");
    // A name that is there twice cannot be told apart: the API server takes no such object, a file may have it.
    let old = world.translate(kind::LISTENER_SET, "shop/old").unwrap();
    let told: Vec<_> =
        old.verdicts.iter().map(|verdict| (verdict.code.to_string(), verdict.origin.field.to_string())).collect();
    let expected = [("SES6006", "spec.listeners[1].hostname"), ("SES6005", "spec.listeners[2]")];
    assert_eq!(told, expected.map(|(code, field)| (code.to_owned(), field.to_owned())));
}

#[test]
fn a_gateway_says_which_sets_may_attach() {
    let mut world = World::default();
    world.namespace("shop", json!({ "team": "a" }));
    let selector = json!({ "from": "Selector", "selector": { "matchLabels": { "team": "a" } } });
    for namespace in ["default", "shop", "other"] {
        world.set(namespace, "set", 1, json!([listener("x", "HTTP", 81, json!({}))]));
    }
    for (allowed, expected) in [
        (json!(null), vec![]),
        (json!({ "namespaces": { "from": "None" } }), vec![]),
        (json!({ "namespaces": { "from": "Same" } }), vec!["default"]),
        (json!({ "namespaces": selector }), vec!["shop"]),
        (json!({ "namespaces": "all" }), vec![]),
    ] {
        world.gateway("web", json!([listener("a", "HTTP", 80, json!({}))]), json!({ "allowedListeners": allowed }));
        let merged = world.merged("web");
        let sets = merged.listeners.iter().filter(|listener| listener.owner.kind == kind::LISTENER_SET);
        assert_eq!(sets.map(|listener| listener.owner.namespace.to_string()).collect::<Vec<_>>(), expected);
        for namespace in ["default", "shop", "other"] {
            let set = world.translate(kind::LISTENER_SET, &format!("{namespace}/set")).unwrap();
            let is_refused = set.verdicts.iter().any(|verdict| verdict.code == Code::ListenerSetNotAllowed);
            assert_eq!(is_refused, !expected.contains(&namespace), "{namespace}");
        }
    }
}

/// What is not known about a namespace holds for nobody: a label that must be absent is not absent because it cannot be read.
#[test]
fn a_namespace_that_is_not_known_meets_no_requirement_about_its_labels() {
    let mut world = World::default();
    world.namespace("shop", json!({ "team": "a" }));
    world.namespace("broken", json!({ "untrusted": 1 }));
    for namespace in ["shop", "broken", "unknown"] {
        world.set(namespace, "set", 1, json!([listener("x", "HTTP", 81, json!({}))]));
    }
    for (expression, expected) in [
        (json!({ "key": "untrusted", "operator": "DoesNotExist" }), vec!["shop"]),
        (json!({ "key": "untrusted", "operator": "NotIn", "values": ["yes"] }), vec!["shop"]),
        (
            json!({ "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["shop"] }),
            vec!["broken", "unknown"],
        ),
    ] {
        let selector = json!({ "from": "Selector", "selector": { "matchExpressions": [expression] } });
        let allowed = json!({ "allowedListeners": { "namespaces": selector } });
        world.gateway("web", json!([listener("a", "HTTP", 80, json!({}))]), allowed);
        let merged = world.merged("web");
        let sets = merged.listeners.iter().filter(|listener| listener.owner.kind == kind::LISTENER_SET);
        let mut sets: Vec<_> = sets.map(|listener| listener.owner.namespace.to_string()).collect();
        sets.dedup();
        assert_eq!(sets, expected, "{expression}");
    }
}

/// A listener that lost its port takes it from nobody.
#[test]
fn a_set_that_lost_is_in_nobodys_way() {
    let mut world = World::default();
    let all = json!({ "allowedListeners": { "namespaces": { "from": "All" } } });
    let web = |host: &str| listener("web", "HTTP", 80, json!({ "hostname": host }));
    world.gateway("web", json!([web("a.example.com")]), all);
    world.set("evil", "first", 1, json!([listener("tcp", "TCP", 80, json!({}))]));
    world.set("shop", "later", 2, json!([web("b.example.com")]));
    let merged = world.merged("web");
    let refused = |namespace: &str| {
        let listener = merged.listeners.iter().find(|listener| &*listener.owner.namespace == namespace).unwrap();
        listener.refused.as_ref().map(|refused| refused.reason)
    };
    assert_eq!((refused("evil"), refused("shop")), (Some("ProtocolConflict"), None));
}

#[test]
fn a_gateway_has_no_more_listeners_than_the_limit() {
    let mut world = World::default();
    let many: Vec<_> = (0..1_010).map(|port| listener(&format!("l{port}"), "HTTP", 1_000 + port, json!({}))).collect();
    world.gateway("web", json!(&many), json!({}));
    let said = facts(&mut world, kind::GATEWAY, "web", true);
    let is_refused = |at: &usize| of_listener(&said, *at).starts_with("Accepted=False/TooManyListeners ");
    assert_eq!((0..1_010).filter(is_refused).collect::<Vec<_>>(), (1_000..1_010).collect::<Vec<_>>());
    // Those of its ListenerSets count, after its own.
    let same = json!({ "allowedListeners": { "namespaces": { "from": "Same" } } });
    world.gateway("web", json!(many[..999]), same);
    let of_set: Vec<_> = (0..3).map(|port| listener(&format!("s{port}"), "HTTP", 9_000 + port, json!({}))).collect();
    world.set("default", "set", 1, json!(of_set));
    let said = facts(&mut world, kind::LISTENER_SET, "set", true);
    let is_refused = [0, 1, 2].map(|at| of_listener(&said, at).starts_with("Accepted=False/TooManyListeners "));
    assert_eq!(is_refused, [false, true, true]);
}

/// What the listeners of an object claim: their names.
fn claimed(translation: &Translation) -> Vec<String> {
    let name = |id: &model::ListenerId| id.name().rsplit('/').next().unwrap_or_default().to_owned();
    translation.listeners.iter().map(|claim| name(&claim.listener)).collect()
}

/// Otherwise a route that is attached to both would be served without what the narrower one asks for.
#[test]
fn a_listener_that_may_be_protected_by_what_is_not_supported_keeps_its_hostname() {
    let mut world = World::default();
    world.secret("cert", &["*.example.com"]);
    let filters = |host: &str| json!({ "hostname": host, "filters": { "requests": [{ "type": "ExternalAuth" }] } });
    let tls = |host: &str, mode: &str| {
        let options = json!({ "example.com/verify": "yes" });
        json!({ "hostname": host, "tls": { "mode": mode, "certificateRefs": [{ "name": "cert" }], "options": options } })
    };
    let nobody = json!({ "hostname": "from.example.com", "allowedRoutes": { "namespaces": { "from": "Neighbours" } } });
    world.gateway(
        "web",
        json!([
            listener("all", "HTTP", 80, json!({})),
            listener("admin", "HTTP", 80, filters("admin.example.com")),
            listener("below", "HTTP", 80, filters("*.inner.example.com")),
            listener("from", "HTTP", 80, nobody),
            listener("without", "HTTPS", 443, json!({ "hostname": "without.example.com" })),
            listener("options", "HTTPS", 443, tls("options.example.com", "Terminate")),
            listener("pass", "TLS", 443, tls("pass.example.com", "Passthrough")),
            listener("ends", "TLS", 443, tls("ends.example.com", "Terminate")),
            listener("every", "HTTP", 81, json!({ "filters": { "requests": [] } })),
            listener("tcp", "TCP", 82, json!({ "filters": { "requests": [] } })),
            listener("name", "HTTP", 80, json!({ "hostname": "Odd.example.com", "filters": { "requests": [] } })),
        ]),
        json!({}),
    );
    let translation = world.translate(kind::GATEWAY, "web").unwrap();
    assert_eq!(claimed(&translation), ["admin", "below", "ends", "from", "options", "pass", "without"]);
    let status = |action: &Action| match action {
        Action::DirectResponse(response) => response.status,
        other => panic!("{other:?}"),
    };
    let routes = translation.routes.iter().map(|piece| (piece.host.to_string(), status(&piece.route.action)));
    let closed = ["admin.example.com", "*.inner.example.com", "from.example.com"].map(|host| (host.to_owned(), 503));
    assert_eq!(routes.collect::<Vec<_>>(), closed);
    let connections: Vec<_> = translation.tls.iter().map(|piece| piece.host.to_string()).collect();
    assert_eq!(connections, ["ends", "options", "pass", "without"].map(|name| format!("{name}.example.com")));
    assert!(translation.tls.iter().all(|piece| matches!(piece.mode, TlsMode::Tcp(_))), "{:?}", translation.tls);
    let said = facts(&mut world, kind::GATEWAY, "web", true);
    let refused = "Accepted=False/UnsupportedValue ResolvedRefs=True/ResolvedRefs Conflicted=False/NoConflicts Programmed=False/Invalid";
    assert_eq!([1, 2, 3, 8, 9].map(|at| of_listener(&said, at)), [refused; 5]);
    let told: Vec<_> = translation.verdicts.iter().map(|verdict| verdict.message.to_string()).collect();
    let unsupported = "filters of listeners are not supported".to_owned();
    assert!(told.contains(&format!("{unsupported}; nothing is served for admin.example.com")), "{told:?}");
    assert!(told.contains(&unsupported), "what is for every host is served for none anyway: {told:?}");
}

/// A listener that is refused takes nothing from those that come before it.
#[test]
fn a_set_that_is_closed_takes_no_hostname_from_its_gateway() {
    let mut world = World::default();
    let web = |host: &str| listener("web", "HTTP", 80, json!({ "hostname": host }));
    let closed = |host: &str| listener("web", "HTTP", 80, json!({ "hostname": host, "filters": { "requests": [] } }));
    let all = json!({ "allowedListeners": { "namespaces": { "from": "All" } } });
    world.gateway("web", json!([web("a.example.com")]), all);
    world.set("evil", "first", 1, json!([closed("a.example.com")]));
    world.set("shop", "second", 2, json!([closed("b.example.com")]));
    world.set("shop", "third", 3, json!([web("b.example.com")]));
    let expected = [
        ("web/web", ""),
        ("first/web", "HostnameConflict"),
        ("second/web", "UnsupportedValue"),
        ("third/web", "HostnameConflict"),
    ];
    assert_eq!(reasons(&mut world), expected.map(|(name, reason)| (name.to_owned(), reason)));
    let claims = |world: &mut World, name: &str| claimed(&world.translate(kind::LISTENER_SET, name).unwrap()).len();
    assert_eq!(["evil/first", "shop/second", "shop/third"].map(|name| claims(&mut world, name)), [0, 1, 0]);
}

/// A proxy has one socket for them. Clients of one port would be served what is written for the other.
#[test]
fn of_ports_that_are_one_of_the_proxies_the_one_that_is_not_moved_is_available() {
    let mut world = World::default();
    world.settings.ports = PortShift { by: 8000, privileged_only: true };
    let host = |host: &str| json!({ "hostname": host });
    let taken = "PortUnavailable";
    for (listeners, expected) in [
        ([listener("a", "HTTP", 80, json!({})), listener("b", "HTTP", 8080, json!({}))], [taken, ""]),
        ([listener("a", "HTTP", 8080, json!({})), listener("b", "HTTP", 80, json!({}))], ["", taken]),
        ([listener("a", "HTTP", 80, host("a.com")), listener("b", "HTTP", 8080, host("b.com"))], [taken, ""]),
        ([listener("a", "HTTP", 80, host("a.com")), listener("b", "TCP", 8080, json!({}))], [taken, ""]),
        ([listener("a", "UDP", 53, json!({})), listener("b", "UDP", 8053, json!({}))], [taken, ""]),
        ([listener("a", "UDP", 80, json!({})), listener("b", "HTTP", 8080, json!({}))], ["", ""]),
        ([listener("a", "HTTP", 80, json!({})), listener("b", "HTTP", 81, json!({}))], ["", ""]),
        // One whose hostname is not known has no port.
        ([listener("a", "HTTP", 80, json!({})), listener("b", "HTTP", 8080, host("A.com"))], ["", "UnsupportedValue"]),
    ] {
        let shown = json!(listeners).to_string();
        world.gateway("web", json!(listeners), json!({}));
        assert_eq!(reasons(&mut world).into_iter().map(|(_, reason)| reason).collect::<Vec<_>>(), expected, "{shown}");
    }
    // Where all are moved, the first has the port.
    world.settings.ports.privileged_only = false;
    world.settings.own_ports.http = Some(9080);
    let moved = json!([listener("a", "HTTP", 80, host("a.com")), listener("b", "HTTP", 1080, host("b.com"))]);
    world.gateway("web", moved, json!({}));
    assert_eq!(reasons(&mut world).into_iter().map(|(_, reason)| reason).collect::<Vec<_>>(), ["", taken]);
    // A ListenerSet comes after its Gateway, moved or not.
    world.settings.ports.privileged_only = true;
    world.settings.own_ports.http = Some(8080);
    let all = json!({ "allowedListeners": { "namespaces": { "from": "All" } } });
    world.gateway("web", json!([listener("web", "HTTP", 80, host("a.com"))]), all);
    world.set("shop", "set", 1, json!([listener("web", "HTTP", 8080, host("b.com"))]));
    assert_eq!(reasons(&mut world), [("web/web".to_owned(), ""), ("set/web".to_owned(), taken)]);
    let why = world.merged("web").listeners[1].refused.clone().unwrap().why;
    assert_eq!(
        &*why,
        "port 8080 is port 8080 of the proxies, which listener web of Gateway default/web has for port 80"
    );
    let said = facts(&mut world, kind::LISTENER_SET, "shop/set", true);
    let taken = "Accepted=False/PortUnavailable ResolvedRefs=True/ResolvedRefs Conflicted=False/NoConflicts Programmed=False/Invalid";
    assert_eq!(of_listener(&said, 0), taken);
}
