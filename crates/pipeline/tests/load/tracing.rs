//! Spans of requests, as a real OpenTelemetry collector gets them.

use kinds::Object;
use model::listener::{Percent, SpanTag, TagValue, Tracing};
use pipeline::{extensions::ExtensionName, settings::Settings};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use testbed::{OtelCollector, cases::object, certs::Ca, eventually, otel_collector::Span};

use crate::bed::{Bed, secret, service, slice_of, undisturbed};

const TIMEOUT: Duration = Duration::from_secs(20);
/// A trace that a client has begun.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn percent(text: &str) -> Percent {
    Percent::parse(text).unwrap()
}

/// Spans are sent at once, not after five seconds.
fn trace(settings: &mut Settings, tracing: Tracing) {
    let extension = ExtensionName { namespace: "tracing".into(), name: "otel".into() };
    settings.tracing = Some((extension, Arc::new(tracing)));
    settings.runtime.values.insert("tracing.opentelemetry.flush_interval_ms".into(), "50".into());
}

/// The ExtensionService, its Service and its endpoint.
fn extension(collector: &OtelCollector) -> [Object; 3] {
    let std::net::IpAddr::V4(address) = collector.address().ip() else { unreachable!("test addresses are IPv4") };
    let extension = object(&json!({ "apiVersion": "projectcontour.io/v1alpha1", "kind": "ExtensionService",
        "metadata": { "name": "otel", "namespace": "tracing" },
        "spec": { "protocol": "h2c", "services": [{ "name": "otel", "port": 80 }], "timeoutPolicy": { "response": "5s" } } }));
    [extension, service("tracing", "otel"), slice_of("tracing", "otel", &[address], collector.address().port())]
}

fn proxy(fqdn: &str, tls: bool) -> Object {
    let mut host = json!({ "fqdn": fqdn });
    if tls {
        host["tls"] = json!({ "secretName": "cert" });
    }
    object(&json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
        "metadata": { "name": fqdn, "namespace": "team-a" },
        "spec": { "virtualhost": host, "routes": [{ "services": [{ "name": "web", "port": 80 }] }] } }))
}

/// The spans of requests whose paths contain a text, once there are so many.
async fn spans_of(collector: &OtelCollector, path: &str, number: usize) -> Vec<Span> {
    let found = async || {
        let spans = collector.spans().map_err(|error| error.to_string())?;
        let has = |span: &Span| span.attributes.get("http.url").is_some_and(|url| url.contains(path));
        let spans: Vec<Span> = spans.into_iter().filter(has).collect();
        if spans.len() >= number { Ok(spans) } else { Err(format!("{spans:?}")) }
    };
    eventually("the spans", TIMEOUT, found).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_say_what_the_operator_asks_for_and_nothing_else() {
    let collector = OtelCollector::start().await.unwrap();
    let tag = |name: &str, value: TagValue| SpanTag::new(name, value);
    let header = |name: &str| TagValue::RequestHeader(model::HeaderName::parse_matched(name).unwrap());
    let tracing = Tracing {
        service_name: "shop".into(),
        max_path: 12,
        tags: vec![
            tag("podName", TagValue::Environment("HOSTNAME".into())),
            tag("podNamespace", TagValue::Environment("CONTOUR_NAMESPACE".into())),
            tag("unset", TagValue::Environment("NO_SUCH_VARIABLE".into())),
            tag("team", TagValue::Literal("edge".into())),
            tag("user", header("X-User")),
            tag("host", header("Host")),
        ],
        ..Tracing::default()
    };
    let mut bed = Bed::with("tracing", |settings| trace(settings, tracing)).await;
    let ca = Ca::new("tracing");
    let mut objects = bed.service("team-a", "web").await;
    objects.extend(extension(&collector));
    objects.push(secret("team-a", "cert", &ca.leaf("tls.example.com").make()));
    objects.extend([proxy("web.example.com", false), proxy("tls.example.com", true)]);
    bed.apply(objects).await;
    for (client, host, path) in [
        (bed.http.clone(), "web.example.com", "/plain/and-much-longer"),
        (bed.https.clone().trust(&ca), "tls.example.com", "/https/and-much-longer"),
    ] {
        let request = client.host(host).header("x-user", "anna").header("x-secret", "hush");
        assert_eq!(request.get(path).await.unwrap().status.as_u16(), 200);
        let spans = spans_of(&collector, &path[..7], 1).await;
        let [span] = &spans[..] else { panic!("{spans:?}") };
        assert_eq!(span.service, "shop");
        assert_eq!(span.attributes["http.url"].split_once(host).unwrap().1, &path[..12], "the path is cut");
        let tags = ["podName", "podNamespace", "team", "user", "host"].map(|name| span.attributes[name].as_str());
        assert_eq!(tags, ["tracing", "projectsesame", "edge", "anna", host]);
        assert!(!span.attributes.contains_key("unset"), "{span:?}");
        assert!(!format!("{span:?}").contains("hush"), "{span:?}");
        // What is forwarded has a span below it.
        let below = async || {
            let spans = collector.spans().map_err(|error| error.to_string())?;
            let below = spans.iter().filter(|below| below.trace == span.trace && !below.parent.is_empty()).count();
            if below == 1 { Ok(()) } else { Err(format!("{spans:?}")) }
        };
        eventually("the span of what is forwarded", TIMEOUT, below).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sampling_is_as_the_operator_says_and_changes_while_proxies_run() {
    let collector = OtelCollector::start().await.unwrap();
    let mut settings = Settings::default();
    let mut bed = Bed::with("tracing-sampling", |of_bed| {
        trace(of_bed, Tracing::default());
        settings.clone_from(of_bed);
    })
    .await;
    let mut objects = bed.service("team-a", "web").await;
    objects.extend(extension(&collector));
    objects.push(proxy("web.example.com", false));
    bed.apply(objects).await;
    let forced = [("x-client-trace-id", "1")];
    let joined = [("traceparent", &*format!("00-{TRACE}-b7ad6b7169203331-01"))];
    let none: &[(&str, &str)] = &[];
    // What is sampled: in all, of those who ask for it, of all others; the headers of a request; whether it is traced.
    let rows = [
        ("100", "100", "100", none, true),
        ("100", "100", "0", none, false),
        ("100", "100", "0", &forced, true),
        ("100", "0", "0", &forced, false),
        ("0", "100", "100", none, false),
        ("0", "100", "100", &forced, false),
        // A client that says that its trace is sampled decides nothing here.
        ("0", "100", "100", &joined, false),
        ("100", "100", "0", &joined, false),
        ("100", "100", "100", &joined, true),
    ];
    let mut expected = Vec::new();
    for (number, (overall, client, random, headers, is_traced)) in rows.into_iter().enumerate() {
        let (overall, client, random) = (percent(overall), percent(client), percent(random));
        trace(&mut settings, Tracing { overall, client, random, ..Tracing::default() });
        bed.pipeline().set_settings(&settings);
        bed.publish().await;
        let mut request = bed.http.clone().host("web.example.com");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let path = format!("/row-{number}");
        assert_eq!(request.get(&path).await.unwrap().status.as_u16(), 200);
        if is_traced {
            // Awaited before the settings change: a tracer that is replaced exports what it holds in its own time.
            spans_of(&collector, &path, 1).await;
            expected.push(path);
        }
    }
    // Envoy has one thread here: the last span comes last. It is part of the client's trace.
    let last = spans_of(&collector, "/row-8", 1).await;
    assert_eq!(last[0].trace, TRACE);
    let spans = spans_of(&collector, "/row-", 1).await;
    let urls = spans.iter().filter_map(|span| span.attributes["http.url"].split_once("example.com"));
    assert_eq!(urls.map(|(_, path)| path.to_owned()).collect::<Vec<_>>(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_served_while_there_is_no_collector_and_while_tracing_changes() {
    let collector = OtelCollector::start().await.unwrap();
    let mut settings = Settings::default();
    let mut bed = Bed::with("tracing-live", |of_bed| {
        trace(of_bed, Tracing::default());
        settings.clone_from(of_bed);
    })
    .await;
    let mut objects = bed.service("team-a", "web").await;
    objects.push(proxy("web.example.com", false));
    bed.apply(objects).await;
    assert!(bed.pipeline().tracing_problem().is_some(), "there is no ExtensionService");
    let load = bed.load(&bed.http, "web.example.com", "/load", 1).start();
    load.answered(20).await;
    let get = async |bed: &Bed, path: &str| {
        assert_eq!(bed.http.clone().host("web.example.com").get(path).await.unwrap().status.as_u16(), 200);
    };
    get(&bed, "/before").await;
    // It comes: no listener changes, so no connection is closed.
    bed.apply(extension(&collector)).await;
    assert_eq!(bed.pipeline().tracing_problem(), None);
    get(&bed, "/with").await;
    spans_of(&collector, "/with", 1).await;
    // It goes, and requests are served.
    bed.remove(extension(&collector)).await;
    assert!(bed.pipeline().tracing_problem().is_some());
    load.answered(20).await;
    bed.apply(extension(&collector)).await;
    undisturbed([load]).await;
    // The operator changes it, switches it off and on: nothing fails. Connections may be closed on the way.
    let load = bed.load(&bed.http, "web.example.com", "/load", 1).start();
    for round in 0..6_u32 {
        trace(&mut settings, Tracing { max_path: 100 + round, ..Tracing::default() });
        if round % 3 == 2 {
            settings.tracing = None;
        }
        bed.pipeline().set_settings(&settings);
        bed.publish().await;
        load.answered(10).await;
    }
    load.stop().await.assert_nothing_lost();
}
