//! What one object unfolds into is bounded: rows, routes and verdicts, and what an edit of it does to others.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use kinds::Object;
use model::{Code, FleetId, Host, ListenerId, PortId};
use pipeline::{
    Output, Pipeline, Settings,
    hosts::VirtualHosts,
    settings::{Certificates, Packing},
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use testbed::cases::object;
use xds::Kind;

fn proxy(name: &str, spec: &Value) -> Object {
    object(
        &json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": name }, "spec": spec }),
    )
}

fn ingress(name: &str, rules: &Value) -> Object {
    object(&json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": name }, "spec": { "rules": rules },
    }))
}

fn rule(host: &str, paths: impl IntoIterator<Item = String>) -> Value {
    let backend = json!({ "service": { "name": "web", "port": { "number": 80 } } });
    let paths = paths.into_iter().map(|path| json!({ "path": path, "pathType": "Exact", "backend": backend }));
    json!({ "host": host, "http": { "paths": paths.collect::<Vec<_>>() } })
}

fn neighbour(path: &str) -> Object {
    ingress("neighbour", &json!([rule("neighbour.example.com", [path.to_owned()])]))
}

/// A child of 700 routes, the first of which answers with this.
fn child(status: u16) -> Object {
    let route = |n: usize| {
        let status = if n == 0 { status } else { 200 };
        json!({ "conditions": [{ "prefix": format!("/r{n}") }], "directResponsePolicy": { "statusCode": status } })
    };
    proxy("child", &json!({ "routes": (0..700).map(route).collect::<Vec<_>>() }))
}

fn root() -> Object {
    let include = |n: usize| json!({ "name": "child", "conditions": [{ "prefix": format!("/{n}") }] });
    let includes: Vec<Value> = (0..700).map(include).collect();
    proxy("root", &json!({ "virtualhost": { "fqdn": "root.example.com" }, "includes": includes }))
}

fn service() -> Object {
    object(&json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" }, "spec": { "ports": [{ "port": 80 }] },
    }))
}

fn slice() -> Object {
    object(&json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": "web", "labels": { "kubernetes.io/service-name": "web" } },
        "ports": [{ "port": 8080 }], "endpoints": [{ "addresses": ["192.0.2.1"] }],
    }))
}

fn pipeline(objects: impl IntoIterator<Item = Object>) -> (Pipeline, Output) {
    let mut pipeline = Pipeline::new(&Settings { packing: Packing::Scoped, ..Settings::default() });
    for object in objects {
        pipeline.put(&object.key(), Some(object));
    }
    let output = pipeline.settle();
    (pipeline, output)
}

fn put(pipeline: &mut Pipeline, object: Object) -> Output {
    pipeline.put(&object.key(), Some(object));
    pipeline.settle()
}

/// The names of what is sent.
fn sent(output: &Output) -> BTreeSet<(Kind, String)> {
    output.xds.upserts.iter().map(|resource| (resource.kind, resource.name.to_string())).collect()
}

/// The name of the scope of an exact host in the clear.
fn scope(host: &str) -> String {
    envoy::name::scope(&PortId::new(FleetId::Shared, "ingress_http"), &Host::parse(host).unwrap())
}

fn routes(pipeline: &Pipeline, host: &str) -> usize {
    let key = (ListenerId::http(), Host::parse(host).unwrap());
    pipeline.engine().get::<VirtualHosts>(&key).unwrap().host.routes.len()
}

#[test]
fn a_root_past_its_limit_has_its_share_and_its_neighbours_nothing_of_it() {
    let (mut pipeline, output) = pipeline([root(), child(200), service(), slice(), neighbour("/")]);
    let verdicts: usize = output.verdicts.iter().flat_map(|(_, list)| list).map(|list| list.len()).sum();
    assert_eq!(verdicts, 2, "the root and the child are told");
    assert!(
        output.verdicts.iter().flat_map(|(_, list)| list).flat_map(|list| list.iter()).all(|v| v.message.len() < 1024)
    );
    assert_eq!(routes(&pipeline, "root.example.com"), 700 * 14 + 700);
    let largest = output.xds.upserts.iter().map(|resource| resource.body.len()).max().unwrap();
    assert!(largest < 8 << 20, "{largest} bytes");

    let output = put(&mut pipeline, child(201));
    assert_eq!(sent(&output).len(), 1, "{:?}", sent(&output));
    assert!(sent(&output).iter().all(|(_, name)| *name == scope("root.example.com")));
    assert!(output.verdicts.is_empty());
    let output = put(&mut pipeline, neighbour("/other"));
    assert!(sent(&output).iter().all(|(_, name)| *name == scope("neighbour.example.com")), "{:?}", sent(&output));
    assert_eq!(pipeline.self_check(), Ok(()));
}

/// Envoy rejects a message that has more than 1,000 headers in a list, and with it what others have there.
#[test]
fn the_headers_that_an_object_changes_are_bounded() {
    let of_proxy = |count: usize| {
        let set: Vec<Value> = (0..count).map(|n| json!({ "name": format!("x-{n}"), "value": "a" })).collect();
        let services = json!([{ "name": "web", "port": 80 }]);
        let routes = json!([{ "services": services, "requestHeadersPolicy": { "set": set } }]);
        proxy("many", &json!({ "virtualhost": { "fqdn": "many.example.com" }, "routes": routes }))
    };
    let of_mapping = |count: usize| {
        let added: Map<String, Value> = (0..count).map(|n| (format!("x-{n}"), json!({ "value": "a" }))).collect();
        let spec = json!({ "hostname": "*", "prefix": "/", "service": "web", "add_request_headers": added });
        object(&json!({
            "apiVersion": "getambassador.io/v3alpha1", "kind": "Mapping", "metadata": { "name": "many" }, "spec": spec,
        }))
    };
    for (most, more) in [(of_proxy(400), of_proxy(401)), (of_mapping(400), of_mapping(401))] {
        let is_told = |object: Object| {
            let (_, output) = pipeline([object, service(), slice()]);
            let mut verdicts = output.verdicts.iter().flat_map(|(_, list)| list).flat_map(|list| list.iter());
            verdicts.any(|verdict| verdict.message.contains("must have at most 400 headers, not 401"))
        };
        assert!(!is_told(most));
        assert!(is_told(more));
    }
}

/// What stands once on a route is copied to each of its services, and compared with what is beside it.
#[test]
fn the_lists_of_a_route_are_bounded() {
    let many = |count: usize, one: &dyn Fn(usize) -> Value| (0..count).map(one).collect::<Vec<_>>();
    let cookie = |n: usize| json!({ "name": format!("c{n}"), "secure": true });
    let range = |n: usize| json!({ "start": 200 + n % 300, "end": 501 });
    let hash = |n: usize| json!({ "headerHashOptions": { "headerName": format!("x-{n}") } });
    let service = |_| json!({ "name": "web", "port": 80 });
    let told = |mut route: Value| {
        if route["services"].is_null() {
            route["services"] = json!([service(0)]);
        }
        let spec = json!({ "virtualhost": { "fqdn": "many.example.com" }, "routes": [route] });
        let (_, output) = pipeline([proxy("many", &spec), self::service(), slice()]);
        let verdicts = output.verdicts.iter().flat_map(|(_, list)| list).flat_map(|list| list.iter());
        verdicts.map(|verdict| verdict.message.to_string()).collect::<Vec<_>>()
    };
    let of_hashes = |count| json!({ "strategy": "RequestHash", "requestHashPolicies": many(count, &hash) });
    let of_ranges = |count| json!({ "path": "/", "expectedStatuses": many(count, &range) });
    type Make<'m> = &'m dyn Fn(usize) -> Value;
    let rows: [(&str, usize, Make<'_>); 4] = [
        ("at most 100 cookies", 100, &|count| json!({ "cookieRewritePolicies": many(count, &cookie) })),
        ("at most 100 ranges", 100, &|count| json!({ "healthCheckPolicy": of_ranges(count) })),
        ("only the first 64 entries", 64, &|count| json!({ "loadBalancerPolicy": of_hashes(count) })),
        ("at most 1000 services", 1000, &|count| json!({ "services": many(count, &service) })),
    ];
    for (words, most, make) in rows {
        assert!(!told(make(most)).iter().any(|message| message.contains(words)), "{words}: {:?}", told(make(most)));
        assert!(
            told(make(most + 1)).iter().any(|message| message.contains(words)),
            "{words}: {:?}",
            told(make(most + 1))
        );
    }
}

#[test]
fn an_ingress_of_many_hosts_gives_each_its_own_paths_and_sends_those_that_changed() {
    let wide = |first: &str| {
        let rules = (0..300).map(|host| {
            let paths =
                (0..40).map(move |path| if (host, path) == (0, 0) { first.to_owned() } else { format!("/{path}") });
            rule(&format!("h{host}.example.com"), paths.clone())
        });
        ingress("wide", &rules.collect())
    };
    let (mut pipeline, output) = pipeline([wide("/first"), service(), slice(), neighbour("/")]);
    let told: Vec<String> = output
        .verdicts
        .iter()
        .flat_map(|(_, list)| list)
        .flat_map(|list| list.iter())
        .map(ToString::to_string)
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("SES4013: Ingress default/wide spec.rules[250].http.paths[0]: "), "{told:?}");
    assert_eq!((routes(&pipeline, "h0.example.com"), routes(&pipeline, "h249.example.com")), (40, 40));
    assert_eq!((routes(&pipeline, "h250.example.com"), routes(&pipeline, "h299.example.com")), (1, 1));

    let output = put(&mut pipeline, wide("/other"));
    let names = sent(&output);
    assert!(names.iter().all(|(_, name)| *name == scope("h0.example.com")), "{names:?}");
    assert_eq!(pipeline.self_check(), Ok(()));
}

/// A host for each number, in one Ingress.
fn wildcards(count: usize) -> Object {
    let rules = (0..count).map(|at| rule(&format!("*.w{at}.example.com"), ["/".to_owned()]));
    ingress("wildcards", &rules.collect())
}

#[test]
fn a_long_catch_all_is_not_repeated_in_wildcard_hosts_and_told_once() {
    let any = |name: &str, count: usize| ingress(name, &json!([rule("", (0..count).map(|at| format!("/{name}{at}")))]));
    let catch_all = |pipeline: &Pipeline| {
        let key = (ListenerId::http(), Host::parse("*.w0.example.com").unwrap());
        pipeline.engine().get::<VirtualHosts>(&key).unwrap().host.catch_all.len()
    };
    let reported = |output: &Output| -> Vec<String> {
        let all = output.verdicts.iter().flat_map(|(_, list)| list).flat_map(|list| list.iter());
        all.filter(|verdict| verdict.code == Code::CatchAllTooLong).map(ToString::to_string).collect()
    };
    // Without a wildcard host nobody repeats anything.
    let (mut pipeline, output) = pipeline([any("a", 800), any("b", 1), service(), slice()]);
    assert!(reported(&output).is_empty(), "{:?}", reported(&output));
    let output = put(&mut pipeline, wildcards(200));
    let told_now = reported(&output);
    assert_eq!(told_now.len(), 2, "{told_now:?}");
    assert!(told_now[0].starts_with("SES7005: Ingress default/a: "), "{told_now:?}");
    assert!(told_now[1].starts_with("SES7005: Ingress default/b: "), "{told_now:?}");
    assert_eq!(catch_all(&pipeline), 1);
    let largest = output.xds.upserts.iter().map(|resource| resource.body.len()).max().unwrap();
    assert!(largest < 1 << 20, "{largest} bytes");
    let output = put(&mut pipeline, any("a", 50));
    assert!(output.verdicts.iter().all(|(_, list)| list.as_ref().is_some_and(|list| list.is_empty())));
    assert!((51..=100).contains(&catch_all(&pipeline)), "{}", catch_all(&pipeline));
    assert_eq!(pipeline.self_check(), Ok(()));
}

/// A host of a namespace with a provider of tokens, whose keys stand in the Secret `keys`.
fn with_tokens(namespace: &str, number: usize) -> Object {
    let fqdn = format!("h{number}.{namespace}.example.com");
    let provider = json!({ "name": "a", "default": true, "localJWKS": { "secretName": "keys", "key": "keys" } });
    let host = json!({ "fqdn": fqdn, "tls": { "secretName": "cert" }, "jwtProviders": [provider] });
    object(&json!({
        "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
        "metadata": { "name": format!("h{number}"), "namespace": namespace },
        "spec": { "virtualhost": host, "routes": [{ "directResponsePolicy": { "statusCode": 200 } }] },
    }))
}

/// The certificate of all hosts of a namespace, and a set of so many large keys, whose `kid` is the namespace.
fn secrets(namespace: &str, keys: usize) -> [Object; 2] {
    let leaf = testbed::certs::Ca::new("limits").leaf(&format!("*.{namespace}.example.com")).make();
    let secret = |name: &str, data: Value| {
        let meta = json!({ "name": name, "namespace": namespace });
        object(&json!({ "apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data }))
    };
    let key = json!({ "kty": "RSA", "kid": namespace, "n": "A".repeat(1024), "e": "AQAB" });
    let set = json!({ "keys": vec![key; keys] }).to_string();
    [
        secret("cert", json!({ "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() })),
        secret("keys", json!({ "keys": set })),
    ]
}

/// Namespaces share slots: one with far too many keys is without any, and the others keep theirs.
#[test]
fn a_namespace_with_too_many_keys_takes_no_room_of_others() {
    let on_demand = Settings { certificates: Certificates::OnDemand, ..Settings::default() };
    let mut pipeline = Pipeline::new(&on_demand);
    let greedy = (0..1_600).map(|number| with_tokens("greedy", number));
    let modest = (0..20).map(|number| with_tokens("modest", number));
    let too_many = with_tokens("many", 0);
    let objects = greedy.chain(modest).chain([too_many.clone()]).chain(secrets("greedy", 55));
    for object in objects.chain(secrets("modest", 10)).chain(secrets("many", 64)) {
        pipeline.put(&object.key(), Some(object));
    }
    let output = pipeline.settle();
    let mut told = BTreeSet::new();
    for (object, said) in output.verdicts.iter().filter_map(|(object, said)| Some((object, said.as_ref()?))) {
        if said.iter().any(|verdict| verdict.code == Code::ProxyJwtLimit) {
            told.insert((object.namespace.to_string(), object.name.to_string()));
        }
    }
    assert_eq!(told.iter().filter(|(namespace, _)| namespace == "greedy").count(), 1_600);
    assert_eq!(told.len(), 1_601, "and the host whose own keys are too many: {told:?}");
    assert!(told.contains(&("many".to_owned(), "h0".to_owned())));
    let slots =
        output.xds.upserts.iter().filter(|it| it.kind == Kind::Extension && it.name.contains(":ingress_https/"));
    let (mut all, mut modest) = (0, 0);
    for slot in slots {
        let text = String::from_utf8_lossy(&slot.body);
        assert!(!text.contains("greedy") && slot.body.len() < 4 << 20, "{} has {} bytes", slot.name, slot.body.len());
        all += text.matches("unused").count();
        modest += text.matches("\"kid\":\"modest\"").count();
    }
    assert_eq!((all, modest), (1_621, 20 * 10), "every provider is there, and the modest have their keys");

    // When the greedy have less, they have their keys.
    for object in secrets("greedy", 20) {
        pipeline.put(&object.key(), Some(object));
    }
    let output = pipeline.settle();
    let is_told = |said: &[model::Verdict]| said.iter().any(|verdict| verdict.code == Code::ProxyJwtLimit);
    assert!(output.verdicts.iter().all(|(_, said)| !said.as_ref().is_some_and(|said| is_told(said))));
    pipeline.self_check().unwrap();
}
