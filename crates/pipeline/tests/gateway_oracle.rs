//! Random Gateways, ListenerSets, routes of all five kinds, grants, policies and certificates, edited at random, on the shared fleet or
//! on fleets of their own, which come and go: after every batch, all tables equal a build from nothing, and a build of the same objects
//! in another order gives the same resources and the same status.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod script;

use dialect_gateway::fleet::FleetState;
use kinds::{Kind, Object, ObjectRef, kind};
use model::FleetId;
use pipeline::{FleetSettings, Pipeline, Settings, settings::Packing};
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};
use std::sync::OnceLock;
use testbed::certs::Ca;

const SPACES: [&str; 2] = ["a", "b"];
const GROUP: &str = "gateway.networking.k8s.io";

/// The edit of an object is below this, the others are of fleets.
const FLEETS: u8 = 15;

/// An object, or a fleet, by its kind and a few numbers; the last says whether it is taken away.
type Edit = (u8, u8, u8, Vec<(u8, u8, u8, u8)>, u8, bool);

fn edit() -> impl Strategy<Value = Edit> {
    let parts = vec((0..8_u8, 0..6_u8, 0..4_u8, 0..8_u8), 0..4);
    (0..FLEETS + 3, 0..2_u8, 0..3_u8, parts, 0..8_u8, prop::bool::weighted(0.2))
}

fn leaf() -> &'static (String, String) {
    static LEAF: OnceLock<(String, String)> = OnceLock::new();
    LEAF.get_or_init(|| {
        let leaf = Ca::new("oracle").leaf("h0.example.com").make();
        (leaf.chain_pem().to_owned(), leaf.key_pem().to_owned())
    })
}

fn host(n: u8) -> Option<&'static str> {
    [None, Some("h0.example.com"), Some("*.example.com"), Some("h1.other.com"), Some("*.com"), Some("Bad")]
        [usize::from(n) % 6]
}

fn listeners(parts: &[(u8, u8, u8, u8)]) -> Value {
    let listener = |(at, (protocol, of, port, more)): (usize, &(u8, u8, u8, u8))| {
        let tls = |mode: &str| {
            let other = if more % 3 == 0 { json!({ "name": "t0", "namespace": "b" }) } else { json!({ "name": "t0" }) };
            json!({ "mode": mode, "certificateRefs": [other] })
        };
        let (protocol, tls) = match protocol {
            0..=2 => ("HTTP", Value::Null),
            3 | 4 => ("HTTPS", tls("Terminate")),
            5 => ("TLS", tls(if more % 2 == 0 { "Terminate" } else { "Passthrough" })),
            6 => ("TCP", Value::Null),
            _ => ("UDP", Value::Null),
        };
        let host = if matches!(protocol, "TCP" | "UDP") { None } else { host(*of) };
        let from = ["Same", "All", "Selector", "None"][usize::from(more % 4)];
        let namespaces = json!({ "from": from, "selector": { "matchLabels": { "team": "x" } } });
        let port = [80, 443, 8080, 9000][usize::from(*port)];
        json!({
            "name": format!("l{at}"), "protocol": protocol, "tls": tls, "hostname": host, "port": port,
            "allowedRoutes": { "namespaces": namespaces },
        })
    };
    parts.iter().enumerate().map(listener).collect()
}

fn parents(more: u8) -> Value {
    let gateway = json!({ "name": format!("g{}", more % 2), "namespace": SPACES[usize::from(more / 2 % 2)] });
    let set = json!({ "kind": "ListenerSet", "name": "s0", "namespace": "a" });
    let section = json!({ "name": "g0", "namespace": "a", "sectionName": "l0" });
    let port = json!({ "name": "g0", "namespace": "a", "port": 80 });
    match more {
        0..=3 => json!([gateway]),
        4 | 5 => json!([gateway, set]),
        6 => json!([port]),
        _ => json!([section]),
    }
}

fn rules(parts: &[(u8, u8, u8, u8)]) -> Value {
    let rule = |(path, service, of, weight): &(u8, u8, u8, u8)| {
        let path = ["/", "/a", "/a/b", "/c"][usize::from(path % 4)];
        let kind = if *of == 0 { "Exact" } else { "PathPrefix" };
        let space = SPACES[usize::from(of % 2)];
        json!({
            "matches": [{ "path": { "type": kind, "value": path } }],
            "backendRefs": [
                { "name": format!("w{}", service % 3), "port": 80, "weight": weight },
                { "name": "w0", "namespace": space, "port": 80 },
            ],
        })
    };
    parts.iter().map(rule).collect()
}

/// Client certificates: those that a Gateway asks for, and the one that it presents.
fn client_certificates(parts: &[(u8, u8, u8, u8)]) -> Value {
    let Some((kind, of, port, more)) = parts.first() else { return Value::Null };
    let space = SPACES[usize::from(more / 2 % 2)];
    let kind = ["ConfigMap", "Secret"][usize::from(kind % 2)];
    let ca = json!({ "group": "", "kind": kind, "name": "t0", "namespace": space });
    let mode = if of % 3 == 0 { "AllowInsecureFallback" } else { "AllowValidOnly" };
    let validation = json!({ "validation": { "caCertificateRefs": [ca], "mode": mode } });
    let port = [80, 443, 8080, 9000][usize::from(*port)];
    let backend = json!({ "clientCertificateRef": { "name": "t0", "namespace": space } });
    match more % 4 {
        0 => json!({ "frontend": { "default": validation } }),
        1 => json!({ "frontend": { "perPort": [{ "port": port, "tls": validation }] }, "backend": backend }),
        2 => json!({ "backend": backend }),
        _ => Value::Null,
    }
}

/// A route of another kind than HTTPRoute.
fn other_route(parts: &[(u8, u8, u8, u8)], more: u8) -> (Kind, Value) {
    let hosts: Vec<_> = parts.iter().take(2).filter_map(|(_, of, ..)| host(*of)).collect();
    let backend = |(_, service, of, weight): &(u8, u8, u8, u8)| {
        let space = SPACES[usize::from(of % 2)];
        json!({ "name": format!("w{}", service % 3), "namespace": space, "port": 80, "weight": weight })
    };
    let backends: Vec<Value> = parts.iter().map(backend).collect();
    let which = parts.first().map_or(0, |(which, ..)| which % 4);
    let matches = json!([{ "method": { "service": format!("shop.S{}", more % 2) } }]);
    let rule = match which {
        0 => json!({ "matches": matches, "backendRefs": backends }),
        _ => json!({ "backendRefs": backends }),
    };
    let scope = if more == 7 { json!("All") } else { Value::Null };
    let mut spec = json!({ "parentRefs": parents(more), "rules": [rule], "useDefaultGateways": scope });
    if which < 2 {
        spec["hostnames"] = hosts.into();
    }
    (
        match which {
            0 => kind::GRPC_ROUTE,
            1 => kind::TLS_ROUTE,
            2 => kind::TCP_ROUTE,
            _ => kind::UDP_ROUTE,
        },
        spec,
    )
}

/// A BackendTLSPolicy, some of them for ports that no Service has.
fn policy(parts: &[(u8, u8, u8, u8)], more: u8) -> Value {
    let target = |(_, service, section, _): &(u8, u8, u8, u8)| {
        let section = [Value::Null, json!("web"), json!("https"), json!("nowhere")][usize::from(section % 4)].clone();
        json!({ "group": "", "kind": "Service", "name": format!("w{}", service % 4), "sectionName": section })
    };
    let targets: Vec<Value> = parts.iter().map(target).collect();
    let kind = ["ConfigMap", "Secret"][usize::from(more % 2)];
    let validation = match more {
        0 | 1 => json!({ "hostname": "backend.example.com", "wellKnownCACertificates": "System" }),
        _ => json!({
            "hostname": "backend.example.com",
            "caCertificateRefs": [{ "group": "", "kind": kind, "name": "t0" }],
        }),
    };
    json!({ "targetRefs": targets, "validation": validation })
}

/// Gives a fleet its settings, or says what is known of it, or takes these away.
fn set_fleet((what, space, name, _, more, gone): &Edit, pipeline: &mut Pipeline) {
    let (namespace, name) = (SPACES[usize::from(*space)], format!("g{}", name % 2));
    match what.checked_sub(FLEETS) {
        None => {}
        Some(0 | 1) => {
            let settings = (!gone).then(FleetSettings::default);
            pipeline.set_fleet(&FleetId::named(namespace, &name), settings);
        }
        Some(_) => {
            let (uid, has_ready_proxy) = (uid(namespace, &name).into(), *more > 3);
            let state = FleetState { uid, has_ready_proxy, ..FleetState::default() };
            pipeline.set_fleet_state(&ObjectRef::new(kind::GATEWAY, namespace, name), (!gone).then_some(state));
        }
    }
}

fn uid(namespace: &str, name: &str) -> String {
    format!("{namespace}-{name}")
}

/// The object that an edit puts, or the key that it takes away.
fn change((what, space, name, parts, more, gone): &Edit) -> Option<(ObjectRef, Option<Object>)> {
    if *what >= FLEETS {
        return None;
    }
    let namespace = SPACES[usize::from(*space)];
    let (kind, namespace, name, body): (Kind, &str, String, Value) = match what {
        0 => {
            let controller = if *more == 0 { "example.com/other" } else { dialect_gateway::CONTROLLER };
            (kind::GATEWAY_CLASS, "", "sesame".to_owned(), json!({ "spec": { "controllerName": controller } }))
        }
        1..=3 => {
            let from = ["All", "Same", "None", "Selector"][usize::from(more % 4)];
            let allowed = json!({ "namespaces": { "from": from, "selector": { "matchLabels": { "team": "x" } } } });
            let tls = client_certificates(parts);
            let listeners = listeners(parts);
            let spec = json!({ "gatewayClassName": "sesame", "listeners": listeners, "allowedListeners": allowed, "tls": tls });
            (kind::GATEWAY, namespace, format!("g{}", name % 2), json!({ "spec": spec }))
        }
        4 | 5 => {
            let parent = json!({ "name": format!("g{}", more % 2), "namespace": SPACES[usize::from(more / 2 % 2)] });
            let spec = json!({ "parentRef": parent, "listeners": listeners(parts) });
            (kind::LISTENER_SET, namespace, format!("s{name}"), json!({ "spec": spec }))
        }
        12 => {
            let (kind, spec) = other_route(parts, *more);
            (kind, namespace, format!("r{name}"), json!({ "spec": spec }))
        }
        13 => (kind::BACKEND_TLS_POLICY, namespace, format!("p{name}"), json!({ "spec": policy(parts, *more) })),
        6..=8 => {
            let hosts: Vec<_> = parts.iter().take(2).filter_map(|(_, of, ..)| host(*of)).collect();
            let spec = json!({ "parentRefs": parents(*more), "hostnames": hosts, "rules": rules(parts) });
            (kind::HTTP_ROUTE, namespace, format!("r{name}"), json!({ "spec": spec }))
        }
        9 => {
            let froms = ["Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"];
            let from = json!([{ "group": GROUP, "kind": froms[usize::from(more % 7)], "namespace": "a" }]);
            let to = ["Secret", "Service", "ConfigMap"].map(|kind| json!({ "group": "", "kind": kind }));
            (kind::REFERENCE_GRANT, namespace, format!("grant{name}"), json!({ "spec": { "from": from, "to": to } }))
        }
        10 => {
            let (chain, key) = leaf();
            let key = if *more == 0 { "nonsense" } else { key.as_str() };
            let data = json!({ "tls.crt": chain, "tls.key": key, "ca.crt": chain });
            let (kind, body) = match *more > 5 {
                true => (kind::CONFIG_MAP, json!({ "data": { "ca.crt": chain } })),
                false => (kind::SECRET, json!({ "type": "kubernetes.io/tls", "stringData": data })),
            };
            (kind, namespace, "t0".to_owned(), body)
        }
        _ if more % 2 == 0 => {
            let labels = if *more > 3 { json!({ "team": "x" }) } else { json!({}) };
            (kind::NAMESPACE, "", namespace.to_owned(), json!({ "metadata": { "labels": labels } }))
        }
        _ => {
            let tls = if *more > 5 { json!({ "projectcontour.io/upstream-protocol.tls": "80" }) } else { json!({}) };
            let port = ["web", "https"][usize::from(*space)];
            let ports = json!([
                { "name": port, "port": 80 },
                { "name": "datagrams", "port": 80, "protocol": "UDP" },
            ]);
            let body = json!({ "metadata": { "annotations": tls }, "spec": { "ports": ports } });
            (kind::SERVICE, namespace, format!("w{name}"), body)
        }
    };
    let key = ObjectRef::new(kind, namespace, name.as_str());
    if *gone {
        return Some((key, None));
    }
    let mut object = body;
    object["metadata"]["uid"] = uid(namespace, &name).into();
    object["metadata"]["name"] = name.into();
    object["metadata"]["namespace"] = namespace.into();
    object["metadata"]["creationTimestamp"] = format!("2024-01-0{}T00:00:00Z", more % 3 + 1).into();
    let decoded = kinds::decode_json(kind, object.to_string().as_bytes()).unwrap();
    Some((key, Some(decoded.object)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_script_of_edits_ends_where_a_build_from_nothing_does(
        batches in vec(vec(edit(), 1..10), 1..12),
        scoped in any::<bool>(),
        own_fleets in any::<bool>(),
    ) {
        let packing = if scoped { Packing::Scoped } else { Packing::Plain };
        let mut settings = Settings { packing, ..Settings::default() };
        settings.gateway.own_fleets = own_fleets;
        script::run(&batches, &settings, set_fleet, change)?;
    }
}
