//! Objects as large as the API takes, in a real Envoy: 16 rules with 64 matches each, 1,024 hostnames, and 64 certificates.

use super::{GROUP, bed};
use pipeline::{Pipeline, settings::Packing};
use serde_json::{Value, json};
use testbed::cases::object;

/// How many certificates the API takes for a listener.
const CERTIFICATES: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_routes_of_the_api_are_served_in_scopes() {
    serve_largest("sizes-in-scopes", Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_routes_of_the_api_are_served_in_tables() {
    serve_largest("sizes-in-tables", Packing::Plain).await;
}

async fn serve_largest(name: &str, packing: Packing) {
    let mut bed = bed(name, packing, 0).await;
    let matches = |rule: usize| -> Vec<Value> {
        let header = |at: usize| json!([{ "name": "x-at", "value": at.to_string() }]);
        (0..64).map(|at| json!({ "path": { "value": format!("/{rule}/{at}") }, "headers": header(at) })).collect()
    };
    let backends = json!([{ "name": "good", "port": 80 }]);
    let rules: Vec<Value> = (0..16).map(|rule| json!({ "matches": matches(rule), "backendRefs": backends })).collect();
    let hostnames: Vec<String> = (0..1024).map(|at| format!("h{at}.example.com")).collect();
    let listeners = json!([
        { "name": "http", "protocol": "HTTP", "port": 80, "hostname": "large.example.com" },
        { "name": "tls", "protocol": "TLS", "port": 443, "tls": { "mode": "Passthrough" } },
    ]);
    let parents = json!([{ "name": "large" }]);
    let http = json!({ "parentRefs": parents, "hostnames": ["large.example.com"], "rules": rules });
    let tls = json!({ "parentRefs": parents, "hostnames": hostnames, "rules": [{ "backendRefs": [{ "name": "tls", "port": 443 }] }] });
    let large = |kind: &str, spec: Value| {
        object(
            &json!({ "apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": { "namespace": "good", "name": "large" }, "spec": spec }),
        )
    };
    let mut pipeline = Pipeline::new(&bed.settings);
    let objects = [
        large("Gateway", json!({ "gatewayClassName": "sesame", "listeners": listeners })),
        large("HTTPRoute", http),
        large("TLSRoute", tls),
    ];
    let backend = bed.tls_service("good", "tls").await;
    for object in bed.kept.iter().cloned().chain(objects).chain(backend) {
        pipeline.put(&object.key(), Some(object));
    }
    let output = pipeline.settle();
    let of_large = output.verdicts.iter().filter(|(key, _)| &*key.name == "large");
    let said: Vec<_> = of_large.filter_map(|(_, said)| said.as_deref()).flatten().collect();
    assert!(said.is_empty(), "{said:?}");
    bed.proxy.replace(output.xds.upserts).await.unwrap();
    let plain = bed.client(80).host("large.example.com");
    for (path, header, status) in
        [("/0/0", "0", 200), ("/15/63", "63", 200), ("/15/63", "62", 404), ("/16/0", "0", 404)]
    {
        let answer = plain.get(path).header("x-at", header).await.unwrap();
        assert_eq!(answer.status, status, "{path} with {header}");
    }
    for host in ["h0.example.com", "h1023.example.com"] {
        let answer = bed.client(443).https().host(host).get("/").await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.backend()), (200, Some("good/tls")), "{host}");
    }
    assert!(bed.client(443).https().host("h1024.example.com").get("/").await.is_err());
    bed.assert_good().await;
}

/// A client is shown the certificate that is for the name that it asks for, however many a listener has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_shows_each_of_64_certificates() {
    let mut bed = bed("certificates", Packing::Scoped, 0).await;
    let host = |at: usize| format!("h{at}.certificates.example.com");
    let large = |api: &str, kind: &str, name: &str, fields: Value| {
        let mut value = json!({ "apiVersion": api, "kind": kind, "metadata": { "namespace": "good", "name": name } });
        fields.as_object().unwrap().iter().for_each(|(field, content)| value[field] = content.clone());
        object(&value)
    };
    let own = format!("{GROUP}/v1");
    let references: Vec<Value> = (0..CERTIFICATES).map(|at| json!({ "name": format!("many{at}") })).collect();
    let listeners = json!([{ "name": "https", "protocol": "HTTPS", "port": 443, "hostname": "*.certificates.example.com",
        "tls": { "certificateRefs": references } }]);
    let rules = json!([{ "backendRefs": [{ "name": "good", "port": 80 }] }]);
    let mut objects = vec![
        large(&own, "Gateway", "many", json!({ "spec": { "gatewayClassName": "sesame", "listeners": listeners } })),
        large(&own, "HTTPRoute", "many", json!({ "spec": { "parentRefs": [{ "name": "many" }], "rules": rules } })),
    ];
    for at in 0..CERTIFICATES {
        let leaf = bed.ca.leaf(&host(at)).make();
        let pair = json!({ "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() });
        let secret = json!({ "type": "kubernetes.io/tls", "stringData": pair });
        objects.push(large("v1", "Secret", &format!("many{at}"), secret));
    }
    let mut pipeline = Pipeline::new(&bed.settings);
    for object in bed.kept.iter().cloned().chain(objects) {
        pipeline.put(&object.key(), Some(object));
    }
    bed.proxy.replace(pipeline.settle().xds.upserts).await.unwrap();
    for at in [0, 1, CERTIFICATES - 1] {
        let answer = bed.client(443).https().trust(&bed.ca).host(host(at)).get("/").await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.backend()), (200, Some("good/good")), "{}", host(at));
        let names = answer.certificate().map(|certificate| certificate.sans.clone()).unwrap_or_default();
        assert!(names.contains(&format!("DNS:{}", host(at))), "{names:?}, not {}", host(at));
    }
    bed.assert_good().await;
}
