//! The client certificate that the Gateway of each parent presents to TLS backends.

use super::world::{World, codes, listener};
use kinds::kind;
use model::{
    Code, ObjectRef, Translation,
    route::{Action, Forward},
    tls::TlsMode,
};
use serde_json::{Value, json};

/// Gateway `web` on port 80 and `far` on port 81, with client certificates or without, and a Service `tls` beside `app`.
fn world(web: Value, far: Value) -> World {
    let mut world = World::new();
    for (name, port, reference) in [("web", 80, web), ("far", 81, far)] {
        let backend = if reference.is_null() { json!({}) } else { json!({ "clientCertificateRef": reference }) };
        let listeners = json!([
            listener("http", "HTTP", port, json!({})),
            listener("tcp", "TCP", 9000 + port, json!({})),
            listener(
                "tls",
                "TLS",
                9100 + port,
                json!({ "tls": { "mode": "Terminate", "certificateRefs": [{ "name": "cert" }] } })
            ),
        ]);
        let spec = json!({ "gatewayClassName": "sesame", "listeners": listeners, "tls": { "backend": backend } });
        world.put(kind::GATEWAY, json!({ "metadata": { "name": name }, "spec": spec }));
    }
    let ports = json!([{ "name": "https", "port": 443 }]);
    let meta = json!({ "name": "tls", "annotations": { "projectcontour.io/upstream-protocol.tls": "443" } });
    world.put(kind::SERVICE, json!({ "metadata": meta, "spec": { "ports": ports } }));
    world
}

fn secret(name: &str) -> Value {
    json!({ "name": name })
}

fn route(world: &mut World) -> Translation {
    let backends = json!([{ "name": "app", "port": 80, "weight": 1 }, { "name": "tls", "port": 443, "weight": 2 }]);
    let mirror = json!({ "type": "RequestMirror", "requestMirror": { "backendRef": { "name": "tls", "port": 443 } } });
    let rules = json!([{ "backendRefs": backends, "filters": [mirror] }]);
    world.route(kind::HTTP_ROUTE, json!({ "parentRefs": [{ "name": "web" }, { "name": "far" }], "rules": rules }))
}

/// Each cluster of the route on a Gateway's listener as `backend weight certificate`, the share that is answered, and the mirrors.
fn shares(translation: &Translation, gateway: &str) -> Vec<String> {
    let name = format!("gateway/default/{gateway}/http");
    let mut of = translation.routes.iter().filter(|piece| **piece.listener.name() == *name);
    let Action::Forward(forward) = &of.next().unwrap().route.action else { panic!("{translation:?}") };
    let Forward { clusters, unavailable, mirrors, .. } = &**forward;
    let certificate = |cluster: &model::ClusterId| {
        let certificate = cluster.overrides.as_ref().and_then(|overrides| overrides.client_certificate.clone());
        certificate.map_or("-".to_owned(), |certificate| certificate.name.to_string())
    };
    let clusters =
        clusters.iter().map(|it| format!("{} {} {}", it.cluster.backend, it.weight, certificate(&it.cluster)));
    let answered = unavailable.iter().map(|share| format!("answered {}", share.weight));
    let mirrors = mirrors.iter().map(|it| format!("mirror {}", certificate(&it.cluster)));
    clusters.chain(answered).chain(mirrors).collect()
}

#[test]
fn each_gateway_presents_its_own_to_tls_backends_alone() {
    let mut world = world(secret("cert"), Value::Null);
    let translation = route(&mut world);
    assert_eq!(shares(&translation, "web"), ["default/app/80 1 -", "default/tls/443 2 cert", "mirror cert"]);
    assert_eq!(shares(&translation, "far"), ["default/app/80 1 -", "default/tls/443 2 -", "mirror -"]);
    assert!(translation.verdicts.is_empty() && translation.pending_parts.is_empty());
}

#[test]
fn without_its_certificate_a_gateway_uses_no_tls_backends() {
    let mut world = world(secret("nowhere"), Value::Null);
    let translation = route(&mut world);
    assert_eq!(shares(&translation, "web"), ["default/app/80 1 -", "answered 2"]);
    assert_eq!(shares(&translation, "far"), ["default/app/80 1 -", "default/tls/443 2 -", "mirror -"]);
    assert_eq!(codes(&translation), [Code::GatewayClientCertificate]);
    assert!(translation.verdicts[0].message.ends_with("the client certificate of Gateway default/web cannot be used"));
}

/// What the other Gateway has is not waited for.
#[test]
fn while_a_certificate_is_not_known_the_rule_is_pending_on_the_listeners_of_its_gateway() {
    let mut world = world(secret("pending"), secret("cert"));
    let translation = route(&mut world);
    let [part] = &translation.pending_parts[..] else { panic!("{:?}", translation.pending_parts) };
    assert_eq!(part.listener.as_ref().map(|id| id.name().to_string()).as_deref(), Some("gateway/default/web/http"));
    assert_eq!(part.field.to_string(), "spec.rules[0]");
    assert_eq!(shares(&translation, "far"), ["default/app/80 1 -", "default/tls/443 2 cert", "mirror cert"]);
}

#[test]
fn a_certificate_that_is_not_permitted_is_not_kept_for_the_sake_of_a_ca_that_is_not_known() {
    let mut world = world(json!({ "name": "cert", "namespace": "other" }), Value::Null);
    let pending = resolve::Rejection::new(Code::SecretPending, "has not been read yet");
    world.cas.insert(ObjectRef::new(kind::SECRET, "default", "ca"), Err(pending));
    let target = json!([{ "group": "", "kind": "Service", "name": "app" }]);
    let references = json!([{ "group": "", "kind": "Secret", "name": "ca" }]);
    let validation = json!({ "hostname": "app.example.com", "caCertificateRefs": references });
    let spec = json!({ "targetRefs": target, "validation": validation });
    world.put(kind::BACKEND_TLS_POLICY, json!({ "metadata": { "name": "p" }, "spec": spec }));
    let translation = route(&mut world);
    assert!(translation.pending_parts.is_empty());
    assert_eq!(shares(&translation, "web"), ["answered 3"]);
}

#[test]
fn streams_have_it_too() {
    let mut world = world(secret("cert"), secret("nowhere"));
    let parents = json!([{ "name": "web" }, { "name": "far" }]);
    let rules = json!([{ "backendRefs": [{ "name": "tls", "port": 443 }] }]);
    let policy = json!({
        "targetRefs": [{ "group": "", "kind": "Service", "name": "tls" }],
        "validation": { "hostname": "tls.example.com", "wellKnownCACertificates": "System" },
    });
    world.put(kind::BACKEND_TLS_POLICY, json!({ "metadata": { "name": "p" }, "spec": policy }));
    let certificates = |clusters: &[(model::ClusterId, u32)]| -> Vec<String> {
        let of = |cluster: &model::ClusterId| cluster.overrides.as_ref()?.client_certificate.clone();
        clusters.iter().filter_map(|(cluster, _)| of(cluster)).map(|secret| secret.name.to_string()).collect()
    };
    let tcp = world.route(kind::TCP_ROUTE, json!({ "parentRefs": parents, "rules": rules }));
    let found: Vec<_> =
        tcp.streams.iter().map(|it| (certificates(&it.target.clusters), it.target.unavailable)).collect();
    assert_eq!(found, [(vec![], 1), (vec!["cert".to_owned()], 0)]);
    let spec = json!({ "parentRefs": parents, "hostnames": ["a.example.com"], "rules": rules });
    let tls = world.route(kind::TLS_ROUTE, spec);
    let found = tls.tls.iter().map(|piece| match &piece.mode {
        TlsMode::Tcp(proxy) => (certificates(&proxy.clusters), proxy.unavailable),
        TlsMode::Http(_) => panic!("a stream"),
    });
    assert_eq!(found.collect::<Vec<_>>(), [(vec![], 1), (vec!["cert".to_owned()], 0)]);
}
