//! Gateway API: grants, ListenerSets that move, certificates and CAs, the order of rules, listeners that come and go.

use echo::grpc::{Reply, Request};
use kinds::Object;
use pipeline::settings::Packing;
use serde_json::{Value, json};
use testbed::{Backend, cases::object, certs::Ca};

use crate::bed::{Bed, secret, service, slice_of, undisturbed};

const GROUP: &str = "gateway.networking.k8s.io";

/// An object of the group.
fn gateway_api(kind: &str, namespace: &str, name: &str, spec: &Value) -> Object {
    object(&json!({ "apiVersion": format!("{GROUP}/v1"), "kind": kind, "spec": spec,
        "metadata": { "name": name, "namespace": namespace } }))
}

fn class() -> Object {
    gateway_api("GatewayClass", "", "sesame", &json!({ "controllerName": "projectsesame.io/gateway-controller" }))
}

/// A Gateway that any ListenerSet and route may attach to.
fn gateway(name: &str, listeners: &Value) -> Object {
    let all = json!({ "namespaces": { "from": "All" } });
    let mut listeners = listeners.clone();
    for listener in listeners.as_array_mut().unwrap() {
        listener["allowedRoutes"] = all.clone();
    }
    let spec = json!({ "gatewayClassName": "sesame", "listeners": listeners, "allowedListeners": all });
    gateway_api("Gateway", "infra", name, &spec)
}

fn http(name: &str, port: u16, host: &str) -> Value {
    json!({ "name": name, "protocol": "HTTP", "port": port, "hostname": host })
}

fn https(name: &str, port: u16, host: &str, certificate: &Value) -> Value {
    json!({ "name": name, "protocol": "HTTPS", "port": port, "hostname": host, "tls": { "certificateRefs": [certificate] } })
}

/// A route of a host to a Service, which may be in another namespace.
fn route(namespace: &str, name: &str, host: &str, parent: &Value, backend: &Value) -> Object {
    let spec = json!({ "parentRefs": [parent], "hostnames": [host], "rules": [{ "backendRefs": [backend] }] });
    gateway_api("HTTPRoute", namespace, name, &spec)
}

fn grant(namespace: &str, name: &str, from: (&str, &str), to: &str) -> Object {
    let (kind, space) = from;
    let spec =
        json!({ "from": [{ "group": GROUP, "kind": kind, "namespace": space }], "to": [{ "group": "", "kind": to }] });
    gateway_api("ReferenceGrant", namespace, name, &spec)
}

fn parent(name: &str) -> Value {
    json!({ "name": name, "namespace": "infra" })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grants_for_others_are_made_and_revoked() {
    grants_come_and_go("gateway-grants", Packing::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grants_for_others_are_made_and_revoked_in_tables() {
    grants_come_and_go("gateway-grants-plain", Packing::Plain).await;
}

/// The routes and certificates of the objects that need the grants are used with them, and requests of others never notice.
async fn grants_come_and_go(name: &str, packing: Packing) {
    let mut bed = Bed::with(name, |settings| settings.packing = packing).await;
    let ca = Ca::new("grants");
    let mut objects = bed.service("shared", "web").await;
    let (steady, other) = (json!({ "name": "steady" }), json!({ "name": "other", "namespace": "secrets" }));
    objects.extend([
        class(),
        secret("infra", "steady", &ca.leaf("steady.example.com").make()),
        secret("secrets", "other", &ca.leaf("other.example.com").make()),
        gateway(
            "web",
            &json!([
                http("http", 80, "*.example.com"),
                https("steady", 443, "steady.example.com", &steady),
                https("other", 443, "other.example.com", &other)
            ]),
        ),
        grant("shared", "steady", ("HTTPRoute", "steady"), "Service"),
    ]);
    let backend = json!({ "name": "web", "namespace": "shared", "port": 80 });
    objects.push(route("steady", "steady", "steady.example.com", &parent("web"), &backend));
    objects.push(route("other", "other", "other.example.com", &parent("web"), &backend));
    bed.apply(objects).await;
    let loads = [
        bed.load(&bed.http, "steady.example.com", "/", 2).start(),
        bed.load(&bed.https.clone().trust(&ca), "steady.example.com", "/", 2).start(),
    ];
    let grants = [
        grant("shared", "other", ("HTTPRoute", "other"), "Service"),
        grant("secrets", "gateways", ("Gateway", "infra"), "Secret"),
    ];
    let (plain, tls) = (bed.http.clone().host("other.example.com"), bed.https.clone().host("other.example.com"));
    for _ in 0..8 {
        assert_eq!(plain.get("/").await.unwrap().status, 500, "the Service without a grant");
        assert!(tls.get("/").await.is_err(), "the Secret without a grant");
        bed.apply(grants.clone()).await;
        assert_eq!(plain.get("/").await.unwrap().backend(), Some("web"));
        assert_eq!(tls.clone().trust(&ca).get("/").await.unwrap().backend(), Some("web"));
        for load in &loads {
            load.answered(15).await;
        }
        bed.remove(grants.clone()).await;
    }
    undisturbed(loads).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_set_moves_between_gateways() {
    let mut bed = Bed::start("gateway-set").await;
    let ca = Ca::new("set");
    let mut objects = bed.service("infra", "steady").await;
    objects.extend(bed.service("team", "moved").await);
    objects.extend([
        class(),
        gateway("one", &json!([http("http", 80, "one.example.com")])),
        gateway("two", &json!([http("http", 80, "two.example.com")])),
        secret("team", "cert", &ca.leaf("moved.example.com").make()),
        route("infra", "one", "one.example.com", &parent("one"), &json!({ "name": "steady", "port": 80 })),
        route("infra", "two", "two.example.com", &parent("two"), &json!({ "name": "steady", "port": 80 })),
    ]);
    let set = |gateway: &str| {
        let listeners = json!([
            http("http", 80, "moved.example.com"),
            https("https", 443, "moved.example.com", &json!({ "name": "cert" })),
            http("own", 1080, "moved.example.com")
        ]);
        gateway_api("ListenerSet", "team", "moved", &json!({ "parentRef": parent(gateway), "listeners": listeners }))
    };
    let own = json!({ "kind": "ListenerSet", "name": "moved" });
    objects.push(route("team", "moved", "moved.example.com", &own, &json!({ "name": "moved", "port": 80 })));
    bed.apply(objects.into_iter().chain([set("one")])).await;
    let own_port = bed.http.clone().to((bed.http.addr().ip(), 9080).into());
    let loads = [
        bed.load(&bed.http, "one.example.com", "/", 5).start(),
        bed.load(&bed.http, "two.example.com", "/", 5).start(),
        bed.load(&bed.http, "moved.example.com", "/", 5).start(),
        bed.load(&bed.https.clone().trust(&ca), "moved.example.com", "/", 5).start(),
        bed.load(&own_port, "moved.example.com", "/", 5).start(),
    ];
    for round in 0..8 {
        bed.apply([set(["two", "one"][round % 2])]).await;
        for load in &loads {
            load.answered(8).await;
        }
    }
    undisturbed(loads).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_and_the_ca_of_backends_rotate() {
    let mut bed = Bed::start("gateway-rotation").await;
    let ca = Ca::new("rotation");
    let mut inside = Ca::new("inside");
    let leaf = || ca.leaf("web.example.com").make();
    let start = async |ca: &Ca| Backend::named("web").tls(&ca.leaf("backend").make()).start().await.unwrap();
    let bundle = |pem: &str| {
        object(&json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "ca", "namespace": "infra" },
            "data": { "ca.crt": pem } }))
    };
    let validation =
        json!({ "hostname": "backend", "caCertificateRefs": [{ "group": "", "kind": "ConfigMap", "name": "ca" }] });
    let policy = json!({ "targetRefs": [{ "group": "", "kind": "Service", "name": "web" }], "validation": validation });
    let mut backends = vec![start(&inside).await];
    bed.apply([
        class(),
        service("infra", "web"),
        slice_of("infra", "web", &[backends[0].ip()], 443),
        bundle(inside.pem()),
        gateway_api("BackendTLSPolicy", "infra", "web", &policy),
        secret("infra", "cert", &leaf()),
        gateway("web", &json!([https("https", 443, "web.example.com", &json!({ "name": "cert" }))])),
        route("infra", "web", "web.example.com", &parent("web"), &json!({ "name": "web", "port": 80 })),
    ])
    .await;
    let client = bed.https.clone().trust(&ca);
    // Few at a time: whoever still connects to the old backend when its CA goes is not let through, and rightly so.
    let load = bed.load(&client, "web.example.com", "/", 1).in_flight(8).start();
    load.answered(50).await;
    for _ in 0..6 {
        let leaf = leaf();
        bed.apply([secret("infra", "cert", &leaf)]).await;
        let answer = client.clone().host("web.example.com").get("/").await.unwrap();
        let expected = echo::CertificateSeen::of(&leaf.chain()[0]).sha256;
        assert_eq!(answer.certificate().unwrap().sha256, expected, "the new certificate is shown");
        // The new CA comes beside the old one, then the backend that it vouches for, then the old one goes.
        let next = inside.rotated();
        bed.apply([bundle(&format!("{}{}", inside.pem(), next.pem()))]).await;
        load.answered(15).await;
        backends.push(start(&next).await);
        let last = backends.last().unwrap().ip();
        bed.apply([slice_of("infra", "web", &[last], 443)]).await;
        load.answered(40).await;
        bed.apply([bundle(next.pem())]).await;
        load.answered(15).await;
        inside = next;
    }
    undisturbed([load]).await;
    // A CA that does not vouch for a backend lets nothing through to it.
    let stranger = start(&inside).await;
    bed.apply([bundle(ca.pem()), slice_of("infra", "web", &[stranger.ip()], 443)]).await;
    assert_eq!(client.host("web.example.com").get("/").await.unwrap().status, 503);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_are_reordered() {
    rules_change_places("gateway-rules", Packing::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_are_reordered_in_tables() {
    rules_change_places("gateway-rules-plain", Packing::Plain).await;
}

/// Whatever the order of rules, and whichever of the others are there, the longest prefix serves its requests.
async fn rules_change_places(name: &str, packing: Packing) {
    let mut bed = Bed::with(name, |settings| settings.packing = packing).await;
    let mut objects = bed.service("infra", "web").await;
    objects.extend([class(), gateway("web", &json!([http("http", 80, "*.example.com")]))]);
    let rule = |path: &str, service: &str| json!({ "matches": [{ "path": { "value": path } }], "backendRefs": [{ "name": service, "port": 80 }] });
    let routes = |rules: &[(&str, &str)]| {
        let rules: Vec<Value> = rules.iter().map(|(path, service)| rule(path, service)).collect();
        let spec = json!({ "parentRefs": [parent("web")], "hostnames": ["web.example.com"], "rules": rules });
        gateway_api("HTTPRoute", "infra", "web", &spec)
    };
    let mut orders = [vec![("/a", "web"), ("/a/b", "web"), ("/z", "missing"), ("/", "web")], Vec::new(), Vec::new()];
    orders[1] = orders[0].iter().rev().copied().collect();
    orders[2] = vec![("/a/b", "web"), ("/", "web")];
    bed.apply(objects.into_iter().chain([routes(&orders[0])])).await;
    let load = bed.load(&bed.http, "web.example.com", "/a/b", 1).start();
    load.answered(50).await;
    for round in 1..=24 {
        bed.apply([routes(&orders[round % 3])]).await;
        load.answered(8).await;
    }
    undisturbed([load]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listeners_come_and_go_beside_open_streams() {
    let mut bed = Bed::start("gateway-listeners").await;
    let ca = Ca::new("listeners");
    let mut objects = bed.service("infra", "web").await;
    let certificate = json!({ "name": "cert" });
    let steady = [http("http", 80, "web.example.com"), https("https", 443, "web.example.com", &certificate)];
    let others = [
        http("other-port", 1080, "other.example.com"),
        http("other-host", 80, "other.example.com"),
        https("other-name", 443, "other.example.com", &certificate),
        https("other-tls-port", 1443, "other.example.com", &certificate),
        json!({ "name": "tcp", "protocol": "TCP", "port": 1700 }),
        json!({ "name": "udp", "protocol": "UDP", "port": 1053 }),
        json!({ "name": "tls", "protocol": "TLS", "port": 443, "hostname": "pass.example.com", "tls": { "mode": "Passthrough" } }),
    ];
    let with = |other: Option<&Value>| {
        let all: Vec<Value> = steady.iter().chain(other).cloned().collect();
        gateway("web", &all.into())
    };
    let rule = json!({ "backendRefs": [{ "name": "web", "port": 80 }] });
    let mut calls = rule.clone();
    calls["matches"] = json!([{ "method": { "service": "sesame.echo.v1.Echo" } }]);
    let spec = |rule: &Value| json!({ "parentRefs": [parent("web")], "rules": [rule] });
    objects.extend([
        class(),
        secret("infra", "cert", &ca.leaf("web.example.com").dns("other.example.com").make()),
        with(None),
        gateway_api("HTTPRoute", "infra", "web", &spec(&rule)),
        gateway_api("GRPCRoute", "infra", "calls", &spec(&calls)),
    ]);
    bed.apply(objects).await;
    let tls = bed.https.clone().trust(&ca);
    let loads =
        [bed.load(&bed.http, "web.example.com", "/", 2).start(), bed.load(&tls, "web.example.com", "/", 2).start()];
    let (mut sockets, mut streams) = (Vec::new(), Vec::new());
    for client in [&bed.http, &tls] {
        let client = client.clone().host("web.example.com");
        sockets.push(client.websocket("/").await.unwrap());
        streams.push(client.grpc_stream("/sesame.echo.v1.Echo/Say").await.unwrap());
    }
    for (at, other) in others.iter().chain(&others).enumerate() {
        for listener in [Some(other), None] {
            bed.apply([with(listener)]).await;
            for socket in &mut sockets {
                assert_eq!(socket.ask("hello").await.unwrap(), "hello", "change {at}: {listener:?}");
            }
            for stream in &mut streams {
                let hello = Request { message: "hello".into(), count: 1 };
                let reply: Reply = stream.ask(&hello).await.unwrap();
                assert_eq!(&*reply.message, "hello", "change {at}: {listener:?}");
            }
            for load in &loads {
                load.answered(8).await;
            }
        }
    }
    undisturbed(loads).await;
}
