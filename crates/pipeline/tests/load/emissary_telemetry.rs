//! Spans and access logs of Mappings, as real servers get them, and edits of who gets them while requests are served.

use crate::bed::{Bed, service, slice_of, undisturbed};
use kinds::Object;
use serde_json::{Value, json};
use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};
use testbed::{LogServer, OtelCollector, SpanServer, cases::object, eventually};

const TIMEOUT: Duration = Duration::from_secs(60);

fn of(kind: &str, name: &str, spec: &Value) -> Object {
    object(&json!({ "apiVersion": "getambassador.io/v3alpha1", "kind": kind,
        "metadata": { "name": name, "namespace": "team-a" }, "spec": spec }))
}

/// A Service of the namespace `telemetry`, and its endpoint.
fn server(name: &str, address: SocketAddr) -> [Object; 2] {
    let IpAddr::V4(ip) = address.ip() else { unreachable!("test addresses are IPv4") };
    [service("telemetry", name), slice_of("telemetry", name, &[ip], address.port())]
}

/// A Listener on the shared port, a Host for every name, a Service `web` and a Mapping to it. Spans are sent at once.
async fn bed(name: &str) -> Bed {
    let mut bed = Bed::with(name, |settings| {
        settings.emissary.address = settings.http.address;
        let runtime = [("tracing.zipkin.min_flush_spans", "1"), ("tracing.opentelemetry.flush_interval_ms", "50")];
        let runtime = runtime.map(|(key, value)| (key.into(), value.into()));
        settings.runtime.values.extend(runtime);
    })
    .await;
    let mut objects = bed.service("team-a", "web").await;
    let listener = json!({ "port": 8080, "protocol": "HTTP", "securityModel": "XFP", "hostBinding": { "namespace": { "from": "ALL" } } });
    objects.extend([
        of("Listener", "http", &listener),
        of("Host", "any", &json!({ "hostname": "*", "requestPolicy": { "insecure": { "action": "Route" } } })),
        of("Mapping", "web", &json!({ "hostname": "*", "prefix": "/", "rewrite": "", "service": "web" })),
    ]);
    bed.apply(objects).await;
    bed
}

async fn get(bed: &Bed, path: &str) {
    let client = bed.http.clone().host("web.example.com").header("x-user", "anna").header("x-secret", "hush");
    assert_eq!(client.get(path).await.unwrap().status.as_u16(), 200);
}

fn tracing(driver: &str, service: &str, more: &Value) -> Object {
    let tags = json!([{ "tag": "user", "request_header": { "name": "x-user" } }, { "tag": "team", "literal": { "value": "edge" } },
        { "tag": "plan", "request_header": { "name": "x-plan", "default_value": "free" } }]);
    let mut spec = json!({ "driver": driver, "service": service, "custom_tags": tags });
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    of("TracingService", "tracing", &spec)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zipkin_and_an_agent_of_datadog_get_spans_and_edits_lose_no_request() {
    let spans = SpanServer::start().await.unwrap();
    let mut bed = bed("emissary-zipkin").await;
    bed.apply(server("spans", spans.address())).await;
    let load = bed.load(&bed.http, "web.example.com", "/load", 1).start();
    load.answered(20).await;
    bed.apply([tracing("zipkin", "spans.telemetry", &json!({ "config": { "collector_hostname": "zipkin.test" } }))])
        .await;
    get(&bed, "/zipkin").await;
    let found = async || {
        let all = spans.zipkin_spans();
        let is_it = |span: &&Value| span["tags"]["http.url"].as_str().is_some_and(|url| url.ends_with("/zipkin"));
        all.iter().find(is_it).cloned().ok_or_else(|| format!("{} spans", all.len()))
    };
    let span = eventually("the span of Zipkin", TIMEOUT, found).await.unwrap();
    let tags = ["user", "team", "plan"].map(|tag| span["tags"][tag].as_str().unwrap_or_default());
    assert_eq!(tags, ["anna", "edge", "free"], "{span}");
    assert_eq!(span["traceId"].as_str().map(str::len), Some(32), "{span}");
    assert!(!span.to_string().contains("hush"), "{span}");
    let post = spans.posts().into_iter().next().unwrap();
    assert_eq!((&*post.path, &*post.host, &*post.content_type), ("/api/v2/spans", "zipkin.test", "application/json"));
    // Another driver, then none at all, then none of the requests: proxies are not restarted.
    bed.apply([tracing("datadog", "spans.telemetry", &json!({ "config": { "service_name": "shop" } }))]).await;
    get(&bed, "/datadog").await;
    let found = async || {
        let posts = spans.posts();
        let is_it = |body: &[u8]| [&b"/datadog"[..], b"shop", b"anna"].iter().all(|text| contains(body, text));
        let found = posts.iter().find(|post| post.path.ends_with("/traces") && is_it(&post.body));
        found.map(|_| ()).ok_or_else(|| format!("{:?}", posts.iter().map(|post| &post.path).collect::<Vec<_>>()))
    };
    eventually("the span of Datadog", TIMEOUT, found).await.unwrap();
    bed.remove([tracing("datadog", "spans.telemetry", &json!({}))]).await;
    load.answered(20).await;
    bed.apply([tracing("zipkin", "spans.telemetry", &json!({ "sampling": { "overall": 0 } }))]).await;
    load.answered(20).await;
    // Connections end after a response, and no request is lost.
    load.stop().await.assert_nothing_lost();
    // What proxies have no use for, and what another object says, disturbs nobody.
    let load = bed.load(&bed.http, "web.example.com", "/load", 1).start();
    load.answered(20).await;
    bed.apply([tracing(
        "zipkin",
        "spans.telemetry",
        &json!({ "sampling": { "overall": 0 }, "config": { "access_token_file": "x" } }),
    )])
    .await;
    bed.apply([of("TracingService", "younger", &json!({ "driver": "datadog", "service": "spans.telemetry" }))]).await;
    bed.apply(server("spans", "198.18.100.9:9411".parse().unwrap())).await;
    load.answered(20).await;
    undisturbed([load]).await;
}

fn contains(body: &[u8], text: &[u8]) -> bool {
    body.windows(text.len()).any(|window| window == text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_of_opentelemetry_gets_spans() {
    let collector = OtelCollector::start().await.unwrap();
    let mut bed = bed("emissary-otel").await;
    bed.apply(server("otel", collector.address())).await;
    bed.apply([tracing("opentelemetry", "otel.telemetry", &json!({ "config": { "service_name": "shop" } }))]).await;
    get(&bed, "/otlp").await;
    let found = async || {
        let all = collector.spans().map_err(|error| error.to_string())?;
        let span = all.iter().find(|span| span.attributes.get("http.url").is_some_and(|url| url.ends_with("/otlp")));
        span.cloned().ok_or_else(|| format!("{all:?}"))
    };
    let span = eventually("the span", TIMEOUT, found).await.unwrap();
    let tags = ["user", "team", "plan"].map(|tag| &*span.attributes[tag]);
    assert_eq!((&*span.service, tags), ("shop", ["anna", "edge", "free"]));
    bed.apply([tracing("opentelemetry", "otel.telemetry", &json!({ "sampling": { "random": 0 } }))]).await;
    get(&bed, "/unsampled").await;
    bed.apply([tracing("opentelemetry", "otel.telemetry", &json!({}))]).await;
    get(&bed, "/last").await;
    let last = async || {
        let all = collector.spans().map_err(|error| error.to_string())?;
        let urls: Vec<_> = all.iter().filter_map(|span| span.attributes.get("http.url").cloned()).collect();
        if urls.iter().any(|url| url.ends_with("/last")) { Ok(urls) } else { Err(format!("{urls:?}")) }
    };
    let urls = eventually("the last span", TIMEOUT, last).await.unwrap();
    assert!(!urls.iter().any(|url| url.ends_with("/unsampled")), "{urls:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_services_get_entries_of_requests_and_of_connections() {
    let (all, some, connections) =
        (LogServer::start().await.unwrap(), LogServer::start().await.unwrap(), LogServer::start().await.unwrap());
    let mut bed = bed("emissary-logs").await;
    for (name, log) in [("all", &all), ("some", &some), ("connections", &connections)] {
        bed.apply(server(name, log.address())).await;
    }
    let load = bed.load(&bed.http, "web.example.com", "/load", 1).start();
    load.answered(20).await;
    let config = json!({ "additional_log_headers": [{ "header_name": "X-User", "during_response": false }, { "header_name": "content-type", "during_request": false }] });
    let log = |name: &str, driver: &str, config: &Value| {
        let service = format!("{name}.telemetry");
        let spec = json!({ "driver": driver, "service": service, "driver_config": config, "flush_interval_byte_size": 0, "protocol_version": "v3" });
        of("LogService", name, &spec)
    };
    bed.apply([
        of("TCPMapping", "tcp", &json!({ "port": 9000, "service": "web:80" })),
        log("all", "http", &config),
        log("some", "http", &json!({})),
        log("connections", "tcp", &json!({})),
    ])
    .await;
    get(&bed, "/logged").await;
    let entry = async |server: &LogServer, path: &str| {
        let found = async || {
            let entries = server.requests();
            let is_it = |request: &str| request == path;
            let found = entries.iter().find(|entry| entry.request.as_ref().is_some_and(|request| is_it(&request.path)));
            found.cloned().ok_or_else(|| format!("{} entries", entries.len()))
        };
        eventually("the entry", TIMEOUT, found).await.unwrap()
    };
    let found = entry(&all, "/logged").await;
    let (request, response) = (found.request.unwrap(), found.response.unwrap());
    assert_eq!((request.authority.as_str(), response.response_code.unwrap().value), ("web.example.com", 200));
    assert_eq!(request.request_headers.get("x-user").map(String::as_str), Some("anna"));
    assert!(!request.request_headers.contains_key("x-secret"), "{request:?}");
    assert!(response.response_headers.contains_key("content-type"), "{response:?}");
    assert_eq!(all.names()[0], "logservice");
    let found = entry(&some, "/logged").await;
    assert!(found.request.unwrap().request_headers.is_empty());
    let mut address = bed.http.addr();
    address.set_port(9000);
    assert_eq!(testbed::Client::new(address).host("tcp.example.com").get("/").await.unwrap().status.as_u16(), 200);
    let found = async || match connections.connections().first() {
        Some(entry) => Ok(entry.clone()),
        None => Err("no entry".to_owned()),
    };
    let connection = eventually("the entry of the connection", TIMEOUT, found).await.unwrap();
    assert!(connection.connection_properties.unwrap().received_bytes > 0);
    assert!(connections.requests().is_empty() && all.connections().is_empty());
    // One goes: the other gets all that follows. Its server goes as well, and requests are served.
    bed.remove([log("some", "http", &json!({}))]).await;
    get(&bed, "/after").await;
    entry(&all, "/after").await;
    assert!(
        !some.requests().iter().any(|entry| entry.request.as_ref().is_some_and(|request| request.path == "/after"))
    );
    drop(all);
    load.answered(50).await;
    load.stop().await.assert_nothing_lost();
}
