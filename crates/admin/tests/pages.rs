//! Every page as whoever asks for it sees it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use admin::{BuildInfo, LogFilter, Note, Readiness, Recorder, Replica, Router, Views};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use engine::{Derived, Engine, Input, Pipeline, Reads, Table};
use envoy_api::Message;
use envoy_api::envoy::config::core::v3::{DataSource, TypedExtensionConfig, data_source::Specifier};
use envoy_api::envoy::config::route::v3::{
    DirectResponseAction, Route, RouteConfiguration, RouteMatch, ScopedRouteConfiguration, VirtualHost,
    route::Action,
    route_match::PathSpecifier,
    scoped_route_configuration::{
        Key,
        key::{Fragment, fragment},
    },
};
use envoy_api::envoy::extensions::filters::network::tcp_proxy::v3::{TcpProxy, tcp_proxy::ClusterSpecifier};
use envoy_api::envoy::extensions::transport_sockets::tls::v3::{Secret, TlsCertificate, secret};
use http_body_util::BodyExt;
use model::{Code, ObjectRef, Verdict};
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use serde_json::Value;
use testbed::xds_client::{Kind as ClientKind, Reply};
use testbed::{Client, Net, XdsClient};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt;
use xds::{Batch, Changes, Fleet, Kind, Resource, Security, Server};

async fn ask(router: &Router, method: &str, path: &str, body: &str) -> (StatusCode, String) {
    let request = Request::builder().method(method).uri(path).body(Body::from(body.to_owned())).unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn json(router: &Router, path: &str) -> Value {
    let (status, body) = ask(router, "GET", path, "").await;
    assert_eq!(status, StatusCode::OK, "{path}: {body}");
    serde_json::from_str(&body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
}

/// A table of words and one of their lengths.
struct Words;
impl Table for Words {
    type Key = u32;
    type Value = String;
    const NAME: &'static str = "words";
}
impl Input for Words {}

struct Lengths;
impl Table for Lengths {
    type Key = u32;
    type Value = usize;
    const NAME: &'static str = "lengths";
}
impl Derived for Lengths {
    fn compute(&self, key: &u32, reads: &mut Reads<'_>) -> Option<usize> {
        reads.get::<Words>(key).map(|word| word.len())
    }
}

fn engine() -> Engine {
    let mut pipeline = Pipeline::new();
    pipeline.input::<Words>();
    pipeline.derived(Lengths).each::<Words>();
    pipeline.build()
}

fn note(recorder: &mut Recorder, engine: &Engine, verdicts: &[(ObjectRef, Option<Arc<Vec<Verdict>>>)]) {
    recorder.note(Note {
        tables: engine.counters(),
        objects: vec![("words", engine.counters_of::<Words>().rows)],
        batch: engine.last_batch(),
        verdicts,
        expiries: Vec::new(),
        took: Duration::from_millis(3),
        published: true,
    });
}

fn debug_of(board: admin::Board, server: Server, log: Option<LogFilter>) -> Router {
    admin::debug(Views { board, server, log, replica: replica() })
}

fn replica() -> Replica {
    Replica {
        name: "sesame-0".into(),
        build: BuildInfo { version: "1.2.3", revision: "abc" },
        started: SystemTime::UNIX_EPOCH + Duration::from_secs(7),
        readiness: Readiness::default(),
        is_leader: Arc::new(|| true),
        xds_files: None,
    }
}

#[tokio::test]
async fn alive_at_once_and_ready_when_everything_is_done() {
    let readiness = Readiness::default();
    let build = readiness.task_that_waits("the first build", || Some("the list of Services".to_owned()));
    let listener = readiness.task("the xDS listener");
    let router = admin::health(&readiness);
    for path in ["/healthz", "/health"] {
        assert_eq!(ask(&router, "GET", path, "").await, (StatusCode::OK, "ok\n".to_owned()));
    }
    let waiting = "waiting for the first build (the list of Services), the xDS listener\n".to_owned();
    assert_eq!(ask(&router, "GET", "/readyz", "").await, (StatusCode::SERVICE_UNAVAILABLE, waiting));
    listener.done();
    build.waits(Some("Secret default/a".to_owned()));
    let waiting = "waiting for the first build (Secret default/a)\n".to_owned();
    assert_eq!(ask(&router, "GET", "/readyz", "").await, (StatusCode::SERVICE_UNAVAILABLE, waiting));
    build.done();
    assert_eq!(ask(&router, "GET", "/readyz", "").await, (StatusCode::OK, "ok\n".to_owned()));
}

#[tokio::test]
async fn metrics_of_every_part_stand_on_one_page() {
    let (mut recorder, board) = admin::board();
    let server = Server::new(xds::Config::default());
    let mut registry = Registry::default();
    BuildInfo { version: "1.2.3", revision: "abc" }.register(&mut registry);
    board.register(&mut registry);
    server.register(&mut registry);
    let router = admin::metrics(Arc::new(registry), false);
    let (status, empty) = ask(&router, "GET", "/metrics", "").await;
    assert_eq!(status, StatusCode::OK);
    assert!(empty.contains("sesame_batches_total 0\n") && empty.ends_with("# EOF\n"), "{empty}");

    let mut engine = engine();
    for (key, word) in [(1, "one"), (2, "two"), (3, "three")] {
        engine.set::<Words>(&key, word.to_owned());
    }
    engine.settle();
    let subject = ObjectRef::new(kinds::kind::INGRESS, "shop", "web");
    let verdict = Verdict::new(Code::ServiceNotFound, subject.at("spec"), "no such Service");
    note(&mut recorder, &engine, &[(subject.clone(), Some(Arc::new(vec![verdict.clone(), verdict])))]);
    engine.set::<Words>(&1, "six".to_owned());
    engine.settle();
    note(&mut recorder, &engine, &[]);
    let (_, page) = ask(&router, "GET", "/metrics", "").await;
    for line in [
        "sesame_build_info{version=\"1.2.3\",revision=\"abc\"} 1",
        "sesame_batches_total 2",
        "sesame_build_seconds_count 2",
        "sesame_objects{kind=\"words\"} 3",
        "sesame_table_rows{table=\"lengths\"} 3",
        "sesame_recomputed_keys_total{table=\"lengths\"} 4",
        "sesame_unchanged_keys_total 1",
        "sesame_verdicts{severity=\"error\"} 2",
        "sesame_verdicts{severity=\"note\"} 0",
        "sesame_xds_connections 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in {page}");
    }
    note(&mut recorder, &engine, &[(subject, None)]);
    let (_, page) = ask(&router, "GET", "/metrics", "").await;
    assert!(page.contains("sesame_verdicts{severity=\"error\"} 0\n"), "{page}");
}

/// However many hosts there are, there are only so many series.
#[tokio::test]
async fn series_are_bounded_and_the_rest_is_one() {
    let (mut recorder, board) = admin::board();
    let server = Server::new(xds::Config::default());
    let mut registry = Registry::default();
    BuildInfo { version: "1.2.3", revision: "abc" }.register(&mut registry);
    board.register(&mut registry);
    server.register(&mut registry);
    let router = admin::metrics(Arc::new(registry), true);
    let count = |page: &str| page.lines().filter(|line| !line.starts_with('#')).count();
    let empty = count(&ask(&router, "GET", "/metrics", "").await.1);
    let codes = [Code::ServiceNotFound, Code::SecretNotFound];
    let verdicts = (0..10_000).map(|number| {
        let subject = ObjectRef::new(kinds::kind::INGRESS, format!("team-{number}").as_str(), "web");
        let verdict = |code| Verdict::new(code, subject.at("spec"), "it is not there");
        // The first namespaces have two verdicts of a code.
        let again = (number < 3).then_some(codes[0]);
        let verdicts: Vec<Verdict> = codes.into_iter().chain(again).map(verdict).collect();
        (subject, Some(Arc::new(verdicts)))
    });
    let verdicts: Vec<_> = verdicts.collect();
    let expiries = (0..10_000).map(|number| {
        (ObjectRef::new(kinds::kind::SECRET, "shop", format!("cert-{number}").as_str()), 1_800_000_000 + number)
    });
    recorder.note(Note { verdicts: &verdicts, expiries: expiries.collect(), ..Note::default() });
    let (_, page) = ask(&router, "GET", "/metrics", "").await;
    assert_eq!(count(&page) - empty, admin::MOST_VERDICT_SERIES + 1 + admin::MOST_CERTIFICATES);
    let rest = 20_003 - 3 * 2 - (admin::MOST_VERDICT_SERIES - 3);
    for line in [
        "sesame_object_verdicts{namespace=\"team-0\",kind=\"Ingress\",code=\"SES3001\"} 2".to_owned(),
        format!("sesame_object_verdicts{{namespace=\"\",kind=\"\",code=\"other\"}} {rest}"),
        "sesame_certificate_expiry_timestamp_seconds{namespace=\"shop\",secret=\"cert-0\"} 1800000000".to_owned(),
        "contour_build_info{version=\"1.2.3\",revision=\"abc\"} 1".to_owned(),
        "sesame_xds_nacks_total{type=\"lds\"} 0".to_owned(),
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in {page}");
    }
    // What is mended is counted no more.
    let mended: Vec<_> = verdicts.into_iter().map(|(subject, _)| (subject, None)).collect();
    recorder.note(Note { verdicts: &mended, ..Note::default() });
    assert!(!ask(&router, "GET", "/metrics", "").await.1.contains("sesame_object_verdicts"));
}

#[tokio::test]
async fn batches_show_what_was_recomputed_in_each_table() {
    let (mut recorder, board) = admin::board();
    let router = debug_of(board, Server::new(xds::Config::default()), None);
    let mut engine = engine();
    for round in 0..150_u32 {
        engine.set::<Words>(&round, "word".to_owned());
        engine.set::<Words>(&0, format!("{round}"));
        engine.settle();
        note(&mut recorder, &engine, &[]);
    }
    let batches = json(&router, "/debug/batches").await;
    let batches = batches.as_array().unwrap();
    assert_eq!(batches.len(), 100, "no more than the last hundred");
    assert_eq!((&batches[0]["number"], &batches[0]["changes"]), (&149.into(), &2.into()));
    assert_eq!(batches[0]["computed"], serde_json::json!({ "lengths": 2, "words": 2 }));
    let tables = json(&router, "/debug/tables").await;
    assert_eq!((&tables[1]["table"], &tables[1]["rows"]), (&"lengths".into(), &150.into()));
}

#[tokio::test]
async fn verdicts_can_be_looked_for_and_are_cut_off() {
    let (mut recorder, board) = admin::board();
    let router = debug_of(board, Server::new(xds::Config::default()), None);
    let of = |namespace: &str, code: Code| {
        let subject = ObjectRef::new(kinds::kind::INGRESS, namespace, "web");
        let verdict = Verdict::new(code, subject.at("spec.rules[0]"), "as the test says");
        (subject, Some(Arc::new(vec![verdict])))
    };
    let mut verdicts: Vec<_> = (0..1_200).map(|n| of(&format!("ns-{n:04}"), Code::ServiceNotFound)).collect();
    verdicts.push(of("shop", Code::IngressHost));
    note(&mut recorder, &engine(), &verdicts);
    let all = json(&router, "/debug/verdicts").await;
    assert_eq!((&all["count"], &all["objects"]), (&1_201.into(), &1_201.into()));
    assert_eq!(all["verdicts"].as_array().unwrap().len(), 1_000);
    let one = json(&router, "/debug/verdicts?namespace=shop&kind=Ingress&code=SES4001").await;
    assert_eq!(one["count"], 1);
    assert_eq!(one["verdicts"][0]["field"], "spec.rules[0]");
    assert_eq!(one["verdicts"][0]["help"], Code::IngressHost.help());
    assert_eq!(json(&router, "/debug/verdicts?code=SES3001&limit=3").await["verdicts"].as_array().unwrap().len(), 3);
    let (_, index) = ask(&router, "GET", "/debug", "").await;
    for path in ["host?name=", "object?kind=", "tables", "batches", "fleets", "verdicts", "config_dump", "log"] {
        assert!(index.contains(&format!("<a href=\"/debug/{path}\">")), "{index}");
    }
    assert_eq!(ask(&router, "GET", "/debug/nothing", "").await.0, StatusCode::NOT_FOUND);
}

/// A server with a route and a certificate, and where it listens.
async fn world() -> (Server, std::net::SocketAddr) {
    let server = Server::new(xds::Config::default());
    let text = |text: &str| {
        Some(DataSource { specifier: Some(Specifier::InlineString(text.into())), ..DataSource::default() })
    };
    let certificate = TlsCertificate {
        certificate_chain: text("a certificate"),
        private_key: text("never to be seen"),
        ..TlsCertificate::default()
    };
    let secret = Secret { name: "shop/cert".into(), r#type: Some(secret::Type::TlsCertificate(certificate)) };
    let route = RouteConfiguration { name: "http".into(), ..RouteConfiguration::default() };
    let origin = Arc::new(ObjectRef::new(kinds::kind::SECRET, "shop", "cert"));
    let upserts = vec![
        Resource::new(Kind::Secret, "shop/cert", secret.encode_to_vec()).from_origin(origin),
        Resource::new(Kind::Route, "http", route.encode_to_vec()),
        Resource::new(Kind::Route, "broken", vec![0xff]),
    ];
    server.publish(Batch { fleet: Fleet::Shared, changes: Changes { upserts, removes: vec![] } }).unwrap();
    let listener = TcpListener::bind(Net::here().unwrap().socket(8001)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = server.clone();
    tokio::spawn(async move { serving.serve(listener, Security::Insecure, std::future::pending()).await.unwrap() });
    (server, address)
}

#[tokio::test]
async fn the_config_dump_shows_everything_but_keys() {
    let (server, _) = world().await;
    let router = debug_of(admin::board().1, server, None);
    let (_, text) = ask(&router, "GET", "/debug/config_dump", "").await;
    assert!(!text.contains("never to be seen"), "{text}");
    let dump: Value = serde_json::from_str(&text).unwrap();
    let resources = dump["fleets"][0]["resources"].as_array().unwrap();
    assert_eq!((&dump["fleets"][0]["fleet"], resources.len()), (&"shared".into(), 3));
    let secret = &resources[0];
    assert_eq!((&secret["type"], &secret["origin"]), (&"sds".into(), &"Secret shop/cert".into()));
    assert_eq!(secret["resource"]["tls_certificate"]["private_key"], "[redacted]");
    assert_eq!(secret["resource"]["tls_certificate"]["certificate_chain"]["inline_string"], "a certificate");
    let broken = resources.iter().find(|resource| resource["name"] == "broken").unwrap();
    assert!(broken["error"].as_str().unwrap().contains("cannot be decoded"), "{broken}");

    let routes = json(&router, "/debug/config_dump?type=rds&name=ht&fleet=shared").await;
    assert_eq!(routes["fleets"][0]["resources"].as_array().unwrap().len(), 1);
    let (_, names) = ask(&router, "GET", "/debug/config_dump?bodies=false", "").await;
    assert!(names.contains("shop/cert") && !names.contains("certificate_chain"), "{names}");
    assert_eq!(json(&router, "/debug/config_dump?fleet=no/such").await["fleets"], serde_json::json!([]));
    assert_eq!(ask(&router, "GET", "/debug/config_dump?type=xyz", "").await.0, StatusCode::BAD_REQUEST);
}

/// A route of an object for every path, that answers by itself.
fn answering(origin: &str, status: u32) -> Route {
    Route {
        name: origin.to_owned(),
        r#match: Some(RouteMatch { path_specifier: Some(PathSpecifier::Prefix("/".to_owned())), ..Default::default() }),
        action: Some(Action::DirectResponse(DirectResponseAction { status, ..Default::default() })),
        ..Default::default()
    }
}

/// A scope with one virtual host.
fn scope(host: &str, routes: Vec<Route>) -> Resource {
    let own = VirtualHost { name: host.to_owned(), domains: vec![host.to_owned()], routes, ..Default::default() };
    let key = if host.starts_with('*') { "*" } else { host };
    let key = fragment::Type::StringKey(format!("ingress_http|{key}"));
    let scope = ScopedRouteConfiguration {
        name: host.to_owned(),
        key: Some(Key { fragments: vec![Fragment { r#type: Some(key) }] }),
        route_configuration: Some(RouteConfiguration { virtual_hosts: vec![own], ..Default::default() }),
        ..Default::default()
    };
    Resource::new(Kind::ScopedRoute, host, scope.encode_to_vec())
}

#[tokio::test]
async fn a_host_and_an_object_have_a_page_with_routes_verdicts_and_clients() {
    let (mut recorder, board) = admin::board();
    let (server, address) = world().await;
    let upserts = vec![
        scope("a.example.com", vec![answering("HTTPProxy shop/web spec.routes[0]", 503)]),
        scope("*.example.com", vec![answering("Ingress wide/all spec.rules[0]", 200)]),
    ];
    server.publish(Batch { fleet: Fleet::Shared, changes: Changes { upserts, removes: vec![] } }).unwrap();
    let verdict = |kind, namespace: &str, name: &str, code, text: &str| {
        let subject = ObjectRef::new(kind, namespace, name);
        (subject.clone(), Some(Arc::new(vec![Verdict::new(code, subject.at("spec"), text)])))
    };
    let verdicts = [
        verdict(kinds::kind::CONTOUR_HTTP_PROXY, "shop", "web", Code::ServiceNotFound, "there is no Service <gone>"),
        verdict(kinds::kind::INGRESS, "rival", "web", Code::RouteConflict, "a.example.com belongs to shop/web"),
        verdict(kinds::kind::INGRESS, "rival", "other", Code::RouteConflict, "aa.example.com belongs to shop/web"),
    ];
    note(&mut recorder, &engine(), &verdicts);
    let router = debug_of(board, server, None);
    let client = XdsClient::to(Client::new(address)).id("envoy-7").ask_all(ClientKind::ScopedRoute);
    let _client = client.connect().await.unwrap();
    let acked = async || {
        let page = json(&router, "/debug/host?name=A.example.com").await;
        if page["served"][0]["clients"]["have"] == 1 { Ok(page) } else { Err(page.to_string()) }
    };
    let page = testbed::eventually("an ACK", Duration::from_secs(20), acked).await.unwrap();
    assert_eq!(page["served"].as_array().unwrap().len(), 1, "the wildcard's requests are others: {page}");
    let route = &page["served"][0]["routes"][0];
    assert_eq!(
        (&route["route"], &route["match"]["prefix"]),
        (&"HTTPProxy shop/web spec.routes[0]".into(), &"/".into())
    );
    assert_eq!(route["action"]["direct_response"]["status"], 503);
    assert_eq!(page["owners"], serde_json::json!(["HTTPProxy shop/web"]));
    assert_eq!(page["verdicts"][0]["code"], "SES3001");
    assert_eq!((page["others"].as_array().unwrap().len(), &page["others"][0]["namespace"]), (1, &"rival".into()));
    let wide = json(&router, "/debug/host?name=b.example.com").await;
    assert_eq!(wide["owners"], serde_json::json!(["Ingress wide/all"]));

    let object = json(&router, "/debug/object?kind=HTTPProxy&namespace=shop&name=web").await;
    assert_eq!(
        (&object["served"][0]["host"], &object["verdicts"][0]["code"]),
        (&"a.example.com".into(), &"SES3001".into())
    );
    assert_eq!(object["served"].as_array().unwrap().len(), 1);
    assert_eq!(ask(&router, "GET", "/debug/host", "").await.0, StatusCode::BAD_REQUEST);

    let request = Request::builder().uri("/debug/host?name=a.example.com").header("accept", "text/html,*/*");
    let html = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let html = html.into_body().collect().await.unwrap().to_bytes();
    let html = String::from_utf8(html.to_vec()).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.contains("there is no Service &lt;gone&gt;"), "{html}");
    assert!(!html.contains("<script"), "{html}");
}

/// Connections and datagrams that are passed on have no virtual host.
#[tokio::test]
async fn what_is_passed_on_is_shown_by_host_and_by_object() {
    let (mut recorder, board) = admin::board();
    let (server, _) = world().await;
    let subject = |kind, name: &str| ObjectRef::new(kind, "shop", name);
    let tcp = |name: &str, object: ObjectRef| {
        let cluster = ClusterSpecifier::Cluster("shop/db/5432".to_owned());
        let proxy = TcpProxy { cluster_specifier: Some(cluster), ..Default::default() };
        let config = TypedExtensionConfig { name: name.to_owned(), typed_config: Some(envoy_api::any(&proxy)) };
        Resource::new(Kind::Extension, name, config.encode_to_vec()).from_origin(Arc::new(object))
    };
    let upserts = vec![
        tcp("tcp:ingress_https/db.example.com", subject(kinds::kind::CONTOUR_HTTP_PROXY, "db")),
        tcp("tcp:gateway/shop/web/tls/*.example.com", subject(kinds::kind::TLS_ROUTE, "wide")),
        tcp("tcp-listener:gateway/shop/web/sql", subject(kinds::kind::TCP_ROUTE, "sql")),
        Resource::new(Kind::Cluster, "udp:gateway/shop/web/dns", Vec::new())
            .from_origin(Arc::new(subject(kinds::kind::UDP_ROUTE, "dns"))),
    ];
    server.publish(Batch { fleet: Fleet::Shared, changes: Changes { upserts, removes: vec![] } }).unwrap();
    let web = subject(kinds::kind::CONTOUR_HTTP_PROXY, "web");
    let text = "Secret shop/gone does not exist";
    let missing = Verdict::new(Code::SecretNotFound, web.at("spec.virtualhost.tls.secretName"), text);
    note(&mut recorder, &engine(), &[(web, Some(Arc::new(vec![missing])))]);
    let router = debug_of(board, server, None);

    let page = json(&router, "/debug/host?name=db.example.com").await;
    let found = |page: &Value| -> Vec<(String, String)> {
        let served = page["served"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        served.map(|site| (text(&site["listener"]), text(&site["routes"][0]["route"]))).collect()
    };
    let expected = [("gateway/shop/web/tls", "TLSRoute shop/wide"), ("ingress_https", "HTTPProxy shop/db")];
    assert_eq!(found(&page), expected.map(|(listener, route)| (listener.to_owned(), route.to_owned())));
    assert_eq!(page["owners"], serde_json::json!(["HTTPProxy shop/db", "TLSRoute shop/wide"]));
    assert_eq!(page["served"][1]["routes"][0]["action"]["tcp_proxy"]["cluster"], "shop/db/5432");
    for (kind, name, listener) in [
        ("HTTPProxy", "db", "ingress_https"),
        ("TLSRoute", "wide", "gateway/shop/web/tls"),
        ("TCPRoute", "sql", "gateway/shop/web/sql"),
        ("UDPRoute", "dns", "gateway/shop/web/dns"),
    ] {
        let page = json(&router, &format!("/debug/object?kind={kind}&namespace=shop&name={name}")).await;
        assert_eq!(found(&page), [(listener.to_owned(), format!("{kind} shop/{name}"))], "{page}");
    }
    let page = json(&router, "/debug/certificates").await;
    assert_eq!((&page["missing_count"], &page["missing"][0]["name"]), (&1.into(), &"web".into()));
    assert_eq!((&page["missing"][0]["code"], &page["missing"][0]["message"]), (&"SES3101".into(), &text.into()));
}

#[tokio::test]
async fn the_owners_of_a_host_are_those_of_all_its_routes() {
    let (_, board) = admin::board();
    let (server, _) = world().await;
    let many = (0..250).map(|index| answering(&format!("HTTPProxy shop/web spec.routes[{index}]"), 200));
    let last = (0..250).map(|index| answering(&format!("HTTPProxy team-{index}/child spec.routes[0]"), 200));
    let upserts = vec![scope("a.example.com", many.chain(last).collect())];
    server.publish(Batch { fleet: Fleet::Shared, changes: Changes { upserts, removes: vec![] } }).unwrap();
    let page = json(&debug_of(board, server, None), "/debug/host?name=a.example.com").await;
    let length = |value: &serde_json::Value| value.as_array().unwrap().len();
    assert_eq!((length(&page["served"][0]["routes"]), &page["served"][0]["route_count"]), (200, &500.into()));
    assert_eq!((length(&page["owners"]), &page["owner_count"]), (200, &251.into()));
    assert_eq!(page["owners"][1], "HTTPProxy team-0/child");
}

#[tokio::test]
async fn fleets_show_what_each_client_has_and_refused() {
    let (server, address) = world().await;
    let router = debug_of(admin::board().1, server, None);
    let client = XdsClient::to(Client::new(address))
        .id("envoy-7")
        .ask_all(ClientKind::Route)
        .replies(|_| Reply::Nack("no such thing".into()));
    let client = client.connect().await.unwrap();
    client.until("an answer", |state| state.counts(ClientKind::Route).nacked >= 1).await.unwrap();
    let seen = async || {
        let fleets = json(&router, "/debug/fleets").await;
        if fleets[0]["rejection_count"].as_u64() > Some(0) { Ok(fleets) } else { Err(fleets.to_string()) }
    };
    let fleets = testbed::eventually("the rejection", Duration::from_secs(20), seen).await.unwrap();
    let fleet = &fleets[0];
    assert_eq!((&fleet["fleet"], &fleet["client_count"]), (&"shared".into(), &1.into()));
    assert_eq!(fleet["resources"]["rds"]["count"], 2);
    assert_eq!(fleet["clients"][0]["node"], "envoy-7");
    assert!(fleet["rejections"][0]["text"].as_str().unwrap().contains("no such thing"));
    let nobody = json(&router, "/debug/fleets?node=another").await;
    assert_eq!(nobody[0]["client_count"], 0);

    // The same in short: counts, and the proxies that are not in step.
    let status = json(&router, "/debug/status").await;
    assert_eq!(
        (&status["replica"], &status["leader"], &status["started"]),
        (&"sesame-0".into(), &true.into(), &7.into())
    );
    let fleet = &status["fleets"][0];
    assert_eq!(
        (&fleet["proxies"], &fleet["in_step"], &fleet["rejected"]),
        (&1.into(), &0.into(), &1.into()),
        "{status}"
    );
    let proxy = &status["proxies"][0];
    assert_eq!((&proxy["node"], &proxy["state"]), (&"envoy-7".into(), &"rejected".into()));
    assert!(proxy["detail"].as_str().unwrap().contains("no such thing"), "{proxy}");
}

/// Two fleets have the same host, each with a route of its own.
#[tokio::test]
async fn pages_keep_fleets_apart() {
    let (server, _) = world().await;
    let edge = Fleet::named("shop", "edge");
    let (of_shared, of_edge) = ("HTTPProxy shop/web spec.routes[0]", "HTTPRoute shop/web spec.rules[0]");
    for (fleet, origin) in [(Fleet::Shared, of_shared), (edge.clone(), of_edge)] {
        let upserts = vec![scope("a.example.com", vec![answering(origin, 200)])];
        server.publish(Batch { fleet, changes: Changes { upserts, removes: vec![] } }).unwrap();
    }
    let router = debug_of(admin::board().1, server.clone(), None);
    let texts = |list: &Value, field: &str| -> Vec<String> {
        list.as_array().unwrap().iter().map(|entry| entry[field].as_str().unwrap().to_owned()).collect()
    };

    let fleets = json(&router, "/debug/fleets").await;
    assert_eq!(texts(&fleets, "fleet"), ["shared", "shop/edge"]);
    let types = |fleet: &Value| -> Vec<String> { fleet["resources"].as_object().unwrap().keys().cloned().collect() };
    assert_eq!(types(&fleets[0]), ["rds", "sds", "srds"]);
    assert_eq!(types(&fleets[1]), ["srds"]);
    assert_eq!(texts(&json(&router, "/debug/fleets?fleet=shop/edge").await, "fleet"), ["shop/edge"]);

    let dump = json(&router, "/debug/config_dump?fleet=shop/edge").await;
    assert_eq!(texts(&dump["fleets"], "fleet"), ["shop/edge"]);
    let resources = &dump["fleets"][0]["resources"];
    assert_eq!(texts(resources, "type"), ["srds"]);
    assert!(resources.to_string().contains(of_edge) && !resources.to_string().contains(of_shared), "{dump}");
    let dump = json(&router, "/debug/config_dump?fleet=shared").await;
    assert_eq!(texts(&dump["fleets"], "fleet"), ["shared"]);
    assert!(dump.to_string().contains(of_shared) && !dump.to_string().contains(of_edge), "{dump}");

    let host = json(&router, "/debug/host?name=a.example.com").await;
    assert_eq!(texts(&host["served"], "fleet"), ["shared", "shop/edge"]);
    assert_eq!(host["owners"], serde_json::json!(["HTTPProxy shop/web", "HTTPRoute shop/web"]));
    let object = json(&router, "/debug/object?kind=HTTPRoute&namespace=shop&name=web").await;
    assert_eq!(texts(&object["served"], "fleet"), ["shop/edge"]);

    server.remove_fleet(&edge);
    assert_eq!(texts(&json(&router, "/debug/fleets").await, "fleet"), ["shared"]);
    assert_eq!(texts(&json(&router, "/debug/host?name=a.example.com").await["served"], "fleet"), ["shared"]);
}

#[tokio::test]
async fn what_is_logged_can_be_changed() {
    let filter = Arc::new(Mutex::new("info".to_owned()));
    let (get, set) = (filter.clone(), filter.clone());
    let log = LogFilter {
        get: Arc::new(move || get.lock().clone()),
        set: Arc::new(move |new| match new {
            "" => Err("no filter".to_owned()),
            new => {
                new.clone_into(&mut set.lock());
                Ok(())
            }
        }),
    };
    let server = Server::new(xds::Config::default());
    let router = debug_of(admin::board().1, server.clone(), Some(log));
    assert_eq!(ask(&router, "GET", "/debug/log", "").await, (StatusCode::OK, "info\n".to_owned()));
    let changed = (StatusCode::OK, "info,xds=debug\n".to_owned());
    assert_eq!(ask(&router, "PUT", "/debug/log", "info,xds=debug\n").await, changed);
    assert_eq!(ask(&router, "PUT", "/debug/log", "").await, (StatusCode::BAD_REQUEST, "no filter\n".to_owned()));
    assert_eq!(*filter.lock(), "info,xds=debug");
    let long = "x".repeat(5000);
    assert_eq!(ask(&router, "PUT", "/debug/log", &long).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(*filter.lock(), "info,xds=debug");
    let without = debug_of(admin::board().1, server, None);
    assert_eq!(ask(&without, "GET", "/debug/log", "").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn pages_are_served_until_told_to_stop() {
    let listener = TcpListener::bind(Net::here().unwrap().socket(8000)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let router = admin::health(&Readiness::default());
    let serving = tokio::spawn(admin::serve(listener, router, async { _ = stopped.await }));
    let stream = TcpStream::connect(address).await.unwrap();
    let answer = testbed::http::ask(stream, axum::http::Method::GET, "sesame", "/readyz").await.unwrap();
    assert_eq!((answer.status, &*answer.body), (StatusCode::OK, "ok\n"));
    // A connection that is open and says nothing does not hold up the end.
    let _idle = TcpStream::connect(address).await.unwrap();
    stop.send(()).unwrap();
    testbed::within("the end", Duration::from_secs(20), serving).await.unwrap().unwrap().unwrap();
}
