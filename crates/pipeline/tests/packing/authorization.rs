//! External authorization while connections are open: it comes with the next request, goes with the last that needs it, and is
//! no edit of anybody else's.

use super::claims::Claims;
use super::requests::TURN;
use super::world::{World, https_scope, ingress_with, object, secret, service, settings};
use echo::grpc::{Reply, Request};
use envoy::listener::ext_authz::FILTER;
use envoy_api::{
    Message,
    envoy::config::route::v3::{RouteConfiguration, ScopedRouteConfiguration, VirtualHost},
};
use kinds::{Object, http_proxy::security::AuthorizationServer, kind};
use model::{FleetId, PortProtocol};
use pipeline::{
    Settings,
    authorization::{GlobalAuthorization, of_operator},
    extensions::ExtensionName,
    settings::Packing,
};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client, auth_server::AuthServer, certs::Ca, client::GrpcAnswer, envoy::Config};
use xds::{Kind, Resource};

/// The gRPC status of calls that are answered 403.
const DENIED: u32 = 7;
/// The gRPC status of calls that are answered 401.
const UNAUTHENTICATED: u32 = 16;

fn proxy(authorization: Option<Value>) -> Object {
    let mut host = json!({"fqdn": "guarded.example.com", "tls": {"secretName": "guarded"}});
    if let Some(authorization) = authorization {
        host["authorization"] = authorization;
    }
    let open = json!({"conditions": [{"prefix": "/open"}], "authPolicy": {"disabled": true},
        "permitInsecure": true, "services": [{"name": "web", "port": 80}]});
    let routes = json!([{"services": [{"name": "web", "port": 80}]}, open]);
    let meta = json!({"namespace": "default", "name": "guarded"});
    object(kind::CONTOUR_HTTP_PROXY, &json!({"metadata": meta, "spec": {"virtualhost": host, "routes": routes}}))
}

fn extension(service: &str) -> Object {
    let spec =
        json!({"protocol": "h2c", "services": [{"name": service, "port": 80}], "timeoutPolicy": {"response": "5s"}});
    let meta = json!({"namespace": "default", "name": "auth"});
    object(kind::CONTOUR_EXTENSION_SERVICE, &json!({"metadata": meta, "spec": spec}))
}

fn at(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

async fn servers(ca: &Ca) -> [AuthServer; 2] {
    let tls = ca.leaf("auth").make().server_config();
    [AuthServer::start("first", tls.clone()).await.unwrap(), AuthServer::start("second", tls).await.unwrap()]
}

async fn a_host_that_asks_for_authorization_is_no_edit_of_others(packing: Packing) {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("authorization"));
    let [first, second] = servers(&ca).await;
    let objects = [
        service("web", backend.ip()),
        service("first", first.ip()),
        service("second", second.ip()),
        secret(&ca, "guarded", "guarded.example.com"),
        secret(&ca, "neighbour", "neighbour.example.com"),
        extension("first"),
        proxy(None),
        ingress_with(
            "neighbour",
            "neighbour.example.com",
            "/",
            "web",
            &json!({}),
            &[("neighbour.example.com", "neighbour")],
        ),
    ];
    let mut world = World::with(&settings(packing), Config::new().name("authorization"), objects).await;
    let open = async |host: &str| {
        Client::new(at(8443)).host(host).https().sni(host).trust(&ca).http2().connect().await.unwrap()
    };
    let (guarded, neighbour) = (open("guarded.example.com").await, open("neighbour.example.com").await);
    let denied = async |connection: &testbed::client::Connection, path: &str| {
        connection.get(path).header("x-auth", "deny").await.unwrap().status.as_u16()
    };
    assert_eq!((denied(&guarded, "/").await, denied(&neighbour, "/").await), (200, 200));

    world.put([proxy(Some(json!({"extensionRef": {"name": "auth"}})))]);
    let (set, gone) = world.publish().await;
    let mut expected = vec!["cds extension/default/auth", "eds extension/default/auth"];
    let scope = format!("srds {}", https_scope("guarded.example.com"));
    expected.push(if packing == Packing::Scoped { &scope } else { "rds ingress_https" });
    expected.sort_unstable();
    assert_eq!((set, gone), (expected.iter().map(ToString::to_string).collect::<Vec<_>>(), Vec::new()));
    assert_eq!((denied(&guarded, "/").await, denied(&neighbour, "/").await), (401, 200), "{packing:?}");
    assert_eq!((denied(&guarded, "/open").await, first.asked()), (200, 1));
    assert_eq!(guarded.get("/").await.unwrap().status, 200);

    // A body that is longer than it may be is refused, or cut.
    let mut posted = async |partial: bool, body: &'static str| {
        let limits = json!({"maxRequestBytes": 4, "allowPartialMessage": partial});
        let authorization = json!({"extensionRef": {"name": "auth"}, "withRequestBody": limits});
        world.put([proxy(Some(authorization))]);
        world.publish().await;
        let answer = Client::new(at(8443)).host("guarded.example.com").https().sni("guarded.example.com").trust(&ca);
        let answer = answer.post("/", body).await.unwrap();
        let seen = answer.try_echo().and_then(|seen| seen.header("x-auth-body").map(str::to_owned));
        (answer.status.as_u16(), seen)
    };
    assert_eq!(posted(false, "1234").await, (200, Some("4".to_owned())));
    assert_eq!(posted(false, "12345").await, (413, None));
    assert_eq!(posted(true, "12345").await, (200, Some("4".to_owned())));
    world.put([proxy(Some(json!({"extensionRef": {"name": "auth"}})))]);
    world.publish().await;

    // Other Services: the endpoints of the extension are all that changes.
    world.put([extension("second")]);
    let (set, _) = world.publish().await;
    assert_eq!(set, ["eds extension/default/auth"]);
    let asked = async || {
        let before = second.asked();
        assert_eq!(denied(&guarded, "/").await, 401);
        if second.asked() > before { Ok(()) } else { Err("the first is still asked".to_owned()) }
    };
    testbed::eventually("the second server", std::time::Duration::from_secs(20), asked).await.unwrap();

    // The ExtensionService goes: requests are denied, and nobody else notices.
    world.remove(&extension("second"));
    world.publish().await;
    assert_eq!((denied(&guarded, "/").await, denied(&neighbour, "/").await), (403, 200));

    world.put([proxy(None)]);
    let (set, _) = world.publish().await;
    assert_eq!(set, [expected.pop().unwrap()], "{packing:?}");
    assert_eq!((denied(&guarded, "/").await, denied(&neighbour, "/").await), (200, 200));
    world.pipeline.self_check().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_asks_for_authorization_is_no_edit_of_others_in_tables() {
    a_host_that_asks_for_authorization_is_no_edit_of_others(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_asks_for_authorization_is_no_edit_of_others_in_scopes() {
    a_host_that_asks_for_authorization_is_no_edit_of_others(Packing::Scoped).await;
}

/// A host whose requests a server is asked about with up to four bytes of their bodies; what is longer is cut, or refused.
fn with_bodies(name: &str, fqdn: &str, service_type: &str, is_cut: bool) -> Object {
    let limits = json!({"maxRequestBytes": 4, "allowPartialMessage": is_cut});
    let authorization =
        json!({"extensionRef": {"name": service_type}, "serviceType": service_type, "withRequestBody": limits});
    let host = json!({"fqdn": fqdn, "tls": {"secretName": name}, "authorization": authorization});
    let routes = json!([{"permitInsecure": true, "services": [{"name": "web", "port": 80}]}]);
    let meta = json!({"namespace": "default", "name": name});
    object(kind::CONTOUR_HTTP_PROXY, &json!({"metadata": meta, "spec": {"virtualhost": host, "routes": routes}}))
}

/// However a host is written and whatever a client speaks, no server is sent more of a body than it may be: one that is too long is
/// refused, or cut, and then the server is told so.
async fn a_body_over_the_limit_is_refused_or_cut(packing: Packing) {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("authorization"));
    let [over_grpc, _second] = servers(&ca).await;
    let over_http = Backend::start("checker").await.unwrap();
    let extension = |name: &str, protocol: &str| {
        let services = json!([{"name": name, "port": 80}]);
        let spec = json!({"protocol": protocol, "services": services, "timeoutPolicy": {"response": "5s"}});
        let meta = json!({"namespace": "default", "name": name});
        object(kind::CONTOUR_EXTENSION_SERVICE, &json!({"metadata": meta, "spec": spec}))
    };
    let mut objects = vec![
        service("web", backend.ip()),
        service("grpc", over_grpc.ip()),
        service("http", over_http.ip()),
        extension("grpc", "h2c"),
        extension("http", "http/1.1"),
    ];
    let hosts = [("grpc", false), ("grpc", true), ("http", false), ("http", true)].map(|(service_type, is_cut)| {
        let domain = format!("{service_type}-{}.com", if is_cut { "cut" } else { "whole" });
        (service_type, is_cut, domain)
    });
    for (service_type, is_cut, domain) in &hosts {
        for (name, fqdn) in [("exact", format!("a.{domain}")), ("wild", format!("*.wild.{domain}"))] {
            let name = format!("{name}.{domain}");
            objects.push(secret(&ca, &name, &fqdn));
            objects.push(with_bodies(&name, &fqdn, service_type, *is_cut));
        }
    }
    let _world = World::with(&settings(packing), Config::new().name("auth-bodies"), objects).await;
    let asked = || over_grpc.asked() + over_http.running().unwrap().requests();
    for (service_type, is_cut, domain) in &hosts {
        for host in [format!("a.{domain}"), format!("x.wild.{domain}")] {
            for written in [host.clone(), host.to_uppercase()] {
                let clear = Client::new(at(8080)).host(&written);
                let secure = Client::new(at(8443)).host(&written).https().sni(&host).trust(&ca);
                let clients = [clear.clone(), clear.http2(), secure.clone(), secure.http2()];
                for (number, client) in clients.into_iter().enumerate() {
                    let how = format!("{packing:?} {written} {number}");
                    let before = asked();
                    assert_eq!(client.post("/", "1234").await.unwrap().status, 200, "{how}");
                    assert_eq!(asked() - before, 1, "{how}");
                    let answer = client.post("/", "12345").await.unwrap();
                    let (status, times) = if *is_cut { (200, 2) } else { (413, 1) };
                    assert_eq!((answer.status.as_u16(), asked() - before), (status, times), "{how}");
                    if status == 200 {
                        let seen = answer.echo();
                        assert_eq!(seen.body.length, 5, "{how}: the backend gets all of it");
                        let told = seen.header("x-auth-body").map(str::to_owned);
                        assert_eq!(told.as_deref(), (*service_type == "grpc").then_some("4"), "{how}");
                        let partial = seen.header("x-auth-partial").map(str::to_owned);
                        assert_eq!(partial.as_deref(), (*service_type == "grpc").then_some("true"), "{how}");
                    }
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_over_the_limit_is_refused_or_cut_in_tables() {
    a_body_over_the_limit_is_refused_or_cut(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_over_the_limit_is_refused_or_cut_in_scopes() {
    a_body_over_the_limit_is_refused_or_cut(Packing::Scoped).await;
}

/// A body reaches a server as text, or as bytes where the object says `packAsBytes`: of what is no text it then gets every byte.
async fn a_body_is_sent_as_text_or_as_bytes(packing: Packing) {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("authorization"));
    let [server, _second] = servers(&ca).await;
    let mut objects = vec![service("web", backend.ip()), service("first", server.ip()), extension("first")];
    let hosts = [("text", "text.com", false), ("bytes", "bytes.com", true)];
    for (name, domain, packs) in hosts {
        for (name, fqdn) in
            [(name.to_owned(), format!("a.{domain}")), (format!("{name}-wild"), format!("*.wild.{domain}"))]
        {
            objects.push(secret(&ca, &name, &fqdn));
            let authorization = json!({"extensionRef": {"name": "auth"}, "withRequestBody": {"packAsBytes": packs}});
            let host = json!({"fqdn": fqdn, "tls": {"secretName": name}, "authorization": authorization});
            let routes = json!([{"permitInsecure": true, "services": [{"name": "web", "port": 80}]}]);
            let meta = json!({"namespace": "default", "name": name});
            let spec = json!({"virtualhost": host, "routes": routes});
            objects.push(object(kind::CONTOUR_HTTP_PROXY, &json!({"metadata": meta, "spec": spec})));
        }
    }
    let _world = World::with(&settings(packing), Config::new().name("auth-packed"), objects).await;
    for (_, domain, packs) in hosts {
        for host in [format!("a.{domain}"), format!("A.{domain}"), format!("x.wild.{domain}")] {
            let clear = Client::new(at(8080)).host(&host);
            let secure = Client::new(at(8443)).host(&host).https().sni(host.to_lowercase()).trust(&ca);
            for (number, client) in [clear.clone(), clear.http2(), secure.clone(), secure.http2()].iter().enumerate() {
                for body in [&b"1234"[..], b"\xff\xfe\x00\x80"] {
                    let how = format!("{packing:?} {host} {number} {body:?}");
                    let answer = client.post("/", body).await.unwrap();
                    let seen = answer.echo();
                    let told = |name: &str| seen.header(name).map(str::to_owned);
                    let raw = if packs { "4" } else { "0" };
                    assert_eq!((answer.status.as_u16(), told("x-auth-raw-body").as_deref()), (200, Some(raw)), "{how}");
                    assert_eq!((told("x-auth-body").as_deref(), seen.body.length), (Some("4"), 4), "{how}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_is_sent_as_text_or_as_bytes_in_tables() {
    a_body_is_sent_as_text_or_as_bytes(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_is_sent_as_text_or_as_bytes_in_scopes() {
    a_body_is_sent_as_text_or_as_bytes(Packing::Scoped).await;
}

/// Takes the server out of all routes of a table or a scope, and leaves their marks; how many routes had one.
fn forget_servers(resource: &mut Resource) -> usize {
    let forget = |hosts: &mut [VirtualHost]| {
        let routes = hosts.iter_mut().flat_map(|host| host.routes.iter_mut());
        routes.filter_map(|route| route.typed_per_filter_config.remove(FILTER)).count()
    };
    match resource.kind {
        Kind::Route => {
            let mut table = RouteConfiguration::decode(resource.body.clone()).unwrap();
            let forgotten = forget(&mut table.virtual_hosts);
            resource.body = table.encode_to_vec().into();
            forgotten
        }
        Kind::ScopedRoute => {
            let mut scope = ScopedRouteConfiguration::decode(resource.body.clone()).unwrap();
            let forgotten = scope.route_configuration.as_mut().map_or(0, |table| forget(&mut table.virtual_hosts));
            resource.body = scope.encode_to_vec().into();
            forgotten
        }
        _ => 0,
    }
}

/// The filters know no server of their own: a route that is marked and names none, by whatever mistake, is closed.
async fn a_marked_route_without_a_server_is_closed(packing: Packing) {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("authorization"));
    let [first, _second] = servers(&ca).await;
    let objects = [
        service("web", backend.ip()),
        service("first", first.ip()),
        secret(&ca, "guarded", "guarded.example.com"),
        extension("first"),
        proxy(None),
    ];
    let mut world = World::with(&settings(packing), Config::new().name("authorization"), objects).await;
    world.put([proxy(Some(json!({"extensionRef": {"name": "auth"}})))]);
    let mut changes = world.pipeline.settle().xds;
    let forgotten: usize = changes.upserts.iter_mut().map(forget_servers).sum();
    assert!(forgotten > 0, "no route names a server");
    world.proxy.publish(changes).await.unwrap();
    let client = Client::new(at(8443)).https().sni("guarded.example.com").trust(&ca);
    for host in ["guarded.example.com", "GUARDED.example.com"] {
        for client in [client.clone().host(host), client.clone().host(host).http2()] {
            for wish in ["allow", "deny"] {
                let status = client.get("/").header("x-auth", wish).await.unwrap().status;
                assert_eq!(status, 403, "{packing:?} {host} {wish}");
            }
            assert_eq!(client.get("/open").await.unwrap().status, 200, "{packing:?} {host}");
        }
    }
    assert_eq!(first.asked(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_marked_route_without_a_server_is_closed_in_tables() {
    a_marked_route_without_a_server_is_closed(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_marked_route_without_a_server_is_closed_in_scopes() {
    a_marked_route_without_a_server_is_closed(Packing::Scoped).await;
}

/// Two servers with the weights 3 and 1 are asked about three and one of four requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_services_of_an_extension_are_asked_by_their_weights() {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("authorization"));
    let [first, second] = servers(&ca).await;
    let services = json!([{"name": "first", "port": 80, "weight": 3}, {"name": "second", "port": 80, "weight": 1}]);
    let spec = json!({"protocol": "h2c", "services": services, "timeoutPolicy": {"response": "5s"}});
    let extension = json!({"metadata": {"namespace": "default", "name": "auth"}, "spec": spec});
    let objects = [
        service("web", backend.ip()),
        service("first", first.ip()),
        service("second", second.ip()),
        secret(&ca, "guarded", "guarded.example.com"),
        object(kind::CONTOUR_EXTENSION_SERVICE, &extension),
        proxy(Some(json!({"extensionRef": {"name": "auth"}}))),
    ];
    let _world = World::with(&settings(Packing::Scoped), Config::new().name("weights"), objects).await;
    let client = Client::new(at(8443)).host("guarded.example.com").https().sni("guarded.example.com").trust(&ca);
    let connection = client.http2().connect().await.unwrap();
    for _ in 0..400 {
        assert_eq!(connection.get("/").await.unwrap().status, 200);
    }
    // Five standard deviations of what chance would do.
    let asked = (first.asked(), second.asked());
    assert!(asked.0 + asked.1 == 400 && (57..=143).contains(&asked.1), "{asked:?}");
}

/// The host of another namespace, and the grant that lets it use the ExtensionService.
fn from_another_namespace() -> [Object; 2] {
    let authorization = json!({"extensionRef": {"name": "auth", "namespace": "default"}});
    let host =
        json!({"fqdn": "other.example.com", "tls": {"secretName": "default/guarded"}, "authorization": authorization});
    let routes = json!([{"directResponsePolicy": {"statusCode": 200}}]);
    let spec = json!({"virtualhost": host, "routes": routes});
    let from = json!([{"group": "projectcontour.io", "kind": "HTTPProxy", "namespace": "other"}]);
    let to = json!([{"group": "projectcontour.io", "kind": "ExtensionService", "name": "auth"}]);
    [
        object(kind::CONTOUR_HTTP_PROXY, &json!({"metadata": {"namespace": "other", "name": "other"}, "spec": spec})),
        object(
            kind::REFERENCE_GRANT,
            &json!({"metadata": {"namespace": "default", "name": "other"}, "spec": {"from": from, "to": to}}),
        ),
    ]
}

async fn a_grant_that_is_withdrawn_closes_the_host(packing: Packing) {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("authorization"));
    let [first, _second] = servers(&ca).await;
    let delegation = object(
        kind::CONTOUR_TLS_CERTIFICATE_DELEGATION,
        &json!({"metadata": {"namespace": "default", "name": "all"},
            "spec": {"delegations": [{"secretName": "guarded", "targetNamespaces": ["*"]}]}}),
    );
    let [other, grant] = from_another_namespace();
    let objects = [
        service("web", backend.ip()),
        service("first", first.ip()),
        secret(&ca, "guarded", "*.example.com"),
        extension("first"),
        proxy(Some(json!({"extensionRef": {"name": "auth"}}))),
        delegation,
        other,
    ];
    let mut world = World::with(&settings(packing), Config::new().name("grants"), objects).await;
    let open = async |host: &str| {
        Client::new(at(8443)).host(host).https().sni(host).trust(&ca).http2().connect().await.unwrap()
    };
    let (own, other) = (open("guarded.example.com").await, open("other.example.com").await);
    let status = async |connection: &testbed::client::Connection, wanted: &str| {
        connection.get("/").header("x-auth", wanted).await.unwrap().status.as_u16()
    };
    for _ in 0..2 {
        assert_eq!((status(&own, "allow").await, status(&other, "allow").await), (200, 403), "{packing:?}");
        let before = first.asked();
        assert_eq!((status(&other, "deny").await, first.asked()), (403, before), "{packing:?}: the server was asked");
        world.put([grant.clone()]);
        let (set, _) = world.publish().await;
        let scope = format!("srds {}", https_scope("other.example.com"));
        let expected = if packing == Packing::Scoped { &scope } else { "rds ingress_https" };
        assert_eq!(set, [expected], "a grant is an edit of whoever needs it");
        assert_eq!((status(&other, "allow").await, status(&other, "deny").await), (200, 401), "{packing:?}");
        world.remove(&grant);
        world.publish().await;
    }
    world.pipeline.self_check().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_is_withdrawn_closes_the_host_in_tables() {
    a_grant_that_is_withdrawn_closes_the_host(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_is_withdrawn_closes_the_host_in_scopes() {
    a_grant_that_is_withdrawn_closes_the_host(Packing::Scoped).await;
}

/// A Gateway with a GRPCRoute, and a Listener on a port of its own with a Mapping.
fn of_other_dialects() -> [Object; 6] {
    let of = |kind, namespace: &str, name: &str, spec: Value| {
        object(kind, &json!({"metadata": {"namespace": namespace, "name": name}, "spec": spec}))
    };
    let listeners = json!([{"name": "http", "protocol": "HTTP", "port": 80, "hostname": "calls.example.net"}]);
    let method = json!({"method": {"service": "shop.Cart"}});
    let rule = json!({"matches": [method], "backendRefs": [{"name": "web", "port": 80}]});
    let binding = json!({"namespace": {"from": "ALL"}});
    let policy = json!({"insecure": {"action": "Route"}});
    [
        of(kind::GATEWAY_CLASS, "", "sesame", json!({"controllerName": "projectsesame.io/gateway-controller"})),
        of(kind::GATEWAY, "default", "web", json!({"gatewayClassName": "sesame", "listeners": listeners})),
        of(
            kind::GRPC_ROUTE,
            "default",
            "calls",
            json!({"parentRefs": [{"name": "web"}], "hostnames": ["calls.example.net"], "rules": [rule]}),
        ),
        of(
            kind::LISTENER,
            "default",
            "http",
            json!({"port": 8090, "protocol": "HTTP", "securityModel": "XFP", "hostBinding": binding}),
        ),
        of(kind::HOST, "default", "mapped", json!({"hostname": "mapped.example.com", "requestPolicy": policy})),
        of(
            kind::MAPPING,
            "default",
            "mapped",
            json!({"hostname": "mapped.example.com", "prefix": "/", "service": "web"}),
        ),
    ]
}

/// The server of the operator is asked about every route of every dialect, under TLS and not, but where the object opts out.
async fn the_operators_server_guards_all_dialects(packing: Packing) {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("authorization"));
    let [first, _second] = servers(&ca).await;
    let name = ExtensionName { namespace: "default".into(), name: "auth".into() };
    let global = |disabled: bool| {
        let server: AuthorizationServer =
            serde_json::from_value(json!({"authPolicy": {"disabled": disabled}})).unwrap();
        GlobalAuthorization { extension: name.clone(), settings: of_operator(&server).unwrap() }
    };
    let settings = Settings { authorization: Some(global(false)), ..settings(packing) };
    let tls = [("neighbour.example.com", "neighbour")];
    let objects = [
        service("web", backend.ip()),
        service("first", first.ip()),
        secret(&ca, "guarded", "guarded.example.com"),
        secret(&ca, "neighbour", "neighbour.example.com"),
        extension("first"),
        proxy(None),
        ingress_with("neighbour", "neighbour.example.com", "/", "web", &json!({}), &tls),
        ingress_with("wild", "*.wild.com", "/", "web", &json!({}), &[]),
    ];
    let mut world = World::with(&settings, Config::new().name("authorization"), objects).await;
    world.put(of_other_dialects());
    let contributed = Claims::new("listener", FleetId::Shared).listener("l", 8089, PortProtocol::Http, "").route(
        "l",
        "contributed.example.com",
        "web",
    );
    contributed.put(&mut world.pipeline);
    world.publish().await;
    let status = async |port: u16, host: &str, path: &str| {
        let mut client = Client::new(at(port)).host(host);
        if port == 8443 {
            client = client.https().sni(host.to_ascii_lowercase()).trust(&ca);
        }
        client.get(path).header("x-auth", "deny").await.unwrap().status.as_u16()
    };
    let rows = [
        (8443, "guarded.example.com", "/", 401),
        (8443, "GUARDED.example.com", "/", 401),
        (8443, "guarded.example.com", "/open", 200),
        (8080, "guarded.example.com", "/", 301),
        (8080, "guarded.example.com", "/open", 200),
        (8443, "neighbour.example.com", "/", 401),
        (8080, "neighbour.example.com", "/", 401),
        (8080, "NEIGHBOUR.example.com", "/", 401),
        (8080, "x.wild.com", "/", 401),
        (8089, "contributed.example.com", "/", 401),
        (8090, "mapped.example.com", "/", 401),
        (8090, "MAPPED.example.com", "/", 401),
    ];
    for (port, host, path, expected) in rows {
        assert_eq!(status(port, host, path).await, expected, "{packing:?} {port} {host}{path}");
    }
    let call = async |host: &str| {
        let call = Client::new(at(8080)).host(host).grpc("/shop.Cart/Add", &Request::default());
        let answer: GrpcAnswer<Reply> = call.header("x-auth", "deny").await.unwrap();
        answer.status
    };
    for host in ["calls.example.net", "CALLS.example.net"] {
        assert_eq!(call(host).await, Some(UNAUTHENTICATED), "{packing:?} {host}");
    }
    // Without the server everything is denied but what opts out; the objects are told.
    world.remove(&extension("first"));
    let output = world.pipeline.settle();
    let told = output.verdicts.iter().filter(|(object, _)| object.kind == kind::INGRESS);
    let codes: Vec<_> = told.flat_map(|(_, list)| list.iter().flat_map(|list| list.iter()).map(|it| it.code)).collect();
    assert_eq!(codes, [model::Code::ExtensionNotFound; 2]);
    world.proxy.publish(output.xds).await.unwrap();
    assert_eq!(status(8443, "neighbour.example.com", "/").await, 403);
    assert_eq!(status(8443, "guarded.example.com", "/open").await, 200);
    assert_eq!((status(8090, "mapped.example.com", "/").await, call("calls.example.net").await), (403, Some(DENIED)));
    // Off by default: whoever does not ask for it is not guarded.
    world.put([extension("first")]);
    world.pipeline.set_settings(&Settings { authorization: Some(global(true)), ..settings.clone() });
    world.publish().await;
    assert_eq!(status(8443, "neighbour.example.com", "/").await, 200);
    world.pipeline.set_settings(&Settings { authorization: None, ..settings });
    world.publish().await;
    assert_eq!(status(8443, "guarded.example.com", "/").await, 200);
    assert_eq!(status(8090, "mapped.example.com", "/").await, 200);
    world.pipeline.self_check().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operators_server_guards_all_dialects_in_tables() {
    the_operators_server_guards_all_dialects(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operators_server_guards_all_dialects_in_scopes() {
    the_operators_server_guards_all_dialects(Packing::Scoped).await;
}
