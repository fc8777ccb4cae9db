//! Redirects that Envoy follows by itself: to hosts that somebody has, and to nobody else's; never around TLS.
//!
//! A backend answers what the request wishes for, also the second time: so an answer that came by a followed redirect is a
//! redirect, too, from the backend of the second host.

use super::requests::TURN;
use super::world::{World, https_port, ingress, object, secret, service, settings};
use kinds::{Object, kind};
use pipeline::Settings;
use pipeline::settings::{Certificates, Packing};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client, certs::Ca, envoy::Config};

fn http(host: &str) -> Client {
    Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))).host(host)
}

fn https(host: &str) -> Client {
    Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8443))).host(host).https().sni(host)
}

/// The status and the backend of the answer to a request whose backend redirects to `location`.
async fn redirected(client: &Client, location: &str) -> String {
    let request =
        client.get("/").header("x-echo-status", "302").header("x-echo-header", &format!("location: {location}"));
    let answer = request.header("x-echo-header", "set-cookie: a=b").await.unwrap();
    let status = answer.status.as_u16();
    if status == 302 {
        // Whoever sent it, the client gets all of it.
        assert_eq!(answer.headers["location"], location);
        assert_eq!(answer.headers["set-cookie"], "a=b");
    }
    format!("{status} {}", answer.backend().unwrap_or("-"))
}

/// An HTTPProxy whose redirects are followed; `host` has what stands beside the fqdn, `route` what stands beside services.
pub fn following(name: &str, fqdn: &str, mut host: Value, mut route: Value) -> Object {
    host["fqdn"] = fqdn.into();
    if route["services"].is_null() {
        route["services"] = json!([{"name": name, "port": 80}]);
    }
    route["internalRedirectPolicy"] = json!({});
    object(
        kind::CONTOUR_HTTP_PROXY,
        &json!({
            "metadata": {"namespace": "default", "name": name},
            "spec": {"virtualhost": host, "routes": [route]},
        }),
    )
}

async fn a_redirect_leads_to_hosts_of_the_same_table(packing: Packing) {
    let _turn = TURN.lock().await;
    let names = ["a", "b", "wild", "t", "u", "w", "own", "far"];
    let mut backends = Vec::new();
    for name in names {
        backends.push(Backend::start(name).await.unwrap());
    }
    let services = backends.iter().map(|backend| service(backend.name(), backend.ip()));
    let mut world = World::start(packing, services).await;
    let ca = Ca::new("redirects");
    let tls = |name: &str| json!({"tls": {"secretName": name}});
    world.put([
        secret(&ca, "cert", "*.example.org"),
        secret(&ca, "below", "*.w.org"),
        secret(&ca, "own", "own.w.org"),
        secret(&ca, "far", "far.example.net"),
        following("a", "a.example.com", json!({}), json!({})),
        ingress("b", "b.example.com", "/", "b"),
        ingress("wild", "*.wild.org", "/", "wild"),
        following("t", "t.example.org", tls("cert"), json!({})),
        following("u", "u.example.org", tls("cert"), json!({})),
        following("w", "*.w.org", tls("below"), json!({})),
        following("own", "own.w.org", tls("own"), json!({})),
        following("far", "far.example.net", tls("far"), json!({})),
    ]);
    world.publish().await;
    let table = [
        (http("a.example.com"), "http://b.example.com/", "302 b"),
        (http("A.example.com"), "http://B.Example.COM:8080/x", "302 b"),
        (http("a.example.com"), "http://a.example.com/again", "302 a"),
        (http("a.example.com"), "http://x.wild.org/", "302 wild"),
        (http("a.example.com"), "http://nobody.example.com/", "302 a"),
        (http("a.example.com"), "http://example.com/", "302 a"),
        (http("a.example.com"), "https://b.example.com/", "302 a"),
        (http("a.example.com"), "http://192.0.2.1/", "302 a"),
        (http("a.example.com"), "http://~/", "302 a"),
        // What stands under TLS is not reached around it.
        (http("a.example.com"), "http://t.example.org/", "301 -"),
        (https("t.example.org"), "https://u.example.org/", "302 u"),
        (https("t.example.org"), "https://nobody.example.org/", "302 t"),
        (https("t.example.org"), "https://b.example.com/", "302 t"),
        (https("t.example.org"), "https://own.w.org/", "302 t"),
        (https("x.w.org"), "https://y.w.org/", "302 w"),
        (https("x.w.org"), "https://nobody.org/", "302 w"),
        (https("x.w.org"), "https://own.w.org/", "302 w"),
        (https("own.w.org"), "https://x.w.org/", "302 own"),
        (https("t.example.org"), "https://far.example.net/", "302 t"),
        (https("x.w.org"), "https://far.example.net/", "302 w"),
        (https("far.example.net"), "https://t.example.org/", "302 far"),
    ];
    for (client, location, answer) in table {
        for client in [client.clone().http1(), client.http2()] {
            assert_eq!(redirected(&client, location).await, answer, "{packing:?} to {location}");
        }
    }
    // Whoever takes every host takes redirects, too.
    world.put([ingress("any", "", "/", "b")]);
    world.publish().await;
    assert_eq!(redirected(&http("a.example.com"), "http://nobody.example.com/").await, "302 b", "{packing:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_leads_to_hosts_of_the_same_table_in_tables() {
    a_redirect_leads_to_hosts_of_the_same_table(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_leads_to_hosts_of_the_same_table_in_scopes() {
    a_redirect_leads_to_hosts_of_the_same_table(Packing::Scoped).await;
}

/// Where hosts with certificates of their own share a chain, no connection is for two of them.
async fn on_demand_no_redirect_leads_to_another_host(packing: Packing) {
    let _turn = TURN.lock().await;
    let (t, u) = (Backend::start("t").await.unwrap(), Backend::start("u").await.unwrap());
    let settings = Settings { certificates: Certificates::OnDemand, ..settings(packing) };
    let services = [service("t", t.ip()), service("u", u.ip())];
    let mut world = World::with(&settings, Config::new().name("redirects"), services).await;
    let ca = Ca::new("on demand");
    for name in ["t", "u"] {
        let host = format!("{name}.example.org");
        world.put([secret(&ca, name, &host), following(name, &host, json!({"tls": {"secretName": name}}), json!({}))]);
    }
    world.publish().await;
    for location in ["https://t.example.org/again", "https://nobody.example.org/", "https://u.example.org/"] {
        assert_eq!(redirected(&https("t.example.org"), location).await, "302 t", "{packing:?} to {location}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_demand_no_redirect_leads_to_another_host_in_tables() {
    on_demand_no_redirect_leads_to_another_host(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_demand_no_redirect_leads_to_another_host_in_scopes() {
    on_demand_no_redirect_leads_to_another_host(Packing::Scoped).await;
}

/// The key of a host under TLS, from the port in the clear: set by a tenant's route or service, sent by the client, or by the
/// backend with its redirect.
async fn no_redirect_leads_around_tls(packing: Packing) {
    let _turn = TURN.lock().await;
    let mut backends = Vec::new();
    for name in ["route", "service", "honest", "closed"] {
        backends.push(Backend::start(name).await.unwrap());
    }
    let services = backends.iter().map(|backend| service(backend.name(), backend.ip()));
    let mut world = World::start(packing, services).await;
    let ca = Ca::new("around");
    let key = "ingress_https|closed.example.com";
    let set = json!({"set": [{"name": "X-Sesame-Host", "value": key}]});
    world.put([
        secret(&ca, "cert", "closed.example.com"),
        following("route", "route.example.com", json!({}), json!({"requestHeadersPolicy": set})),
        following(
            "service",
            "service.example.com",
            json!({}),
            json!({"services": [
                {"name": "service", "port": 80, "requestHeadersPolicy": set},
            ]}),
        ),
        following("honest", "honest.example.com", json!({}), json!({})),
        following("closed", "closed.example.com", json!({"tls": {"secretName": "cert"}}), json!({})),
    ]);
    world.publish().await;
    let to_closed = |client: Client| async move { redirected(&client, "http://closed.example.com/").await };
    let direct = https("closed.example.com").get("/").await.unwrap();
    assert_eq!((direct.status.as_u16(), direct.backend()), (200, Some("closed")), "{packing:?}");
    for host in ["route.example.com", "service.example.com"] {
        assert_eq!(to_closed(http(host)).await, "503 -", "{packing:?} {host}");
    }
    assert_eq!(to_closed(http("honest.example.com")).await, "301 -", "{packing:?}");
    for name in ["x-sesame-host", "X-Sesame-Server-Name", "X-Sesame-Chain", "x-sesame-anything"] {
        let forged = http("honest.example.com").header(name, key);
        assert_eq!(to_closed(forged).await, "301 -", "{packing:?} {name}");
        let sent = http("honest.example.com").header("x-echo-header", &format!("{name}: {key}"));
        assert_eq!(to_closed(sent).await, "301 -", "{packing:?} {name} of the backend");
    }
    // Nor do backends see what a client wrote into headers of ours.
    let forged = http("honest.example.com").header("x-sesame-host", key).header("x-sesame-server-name", "forged");
    let seen = forged.get("/").await.unwrap().echo();
    assert_ne!(seen.header("x-sesame-host"), Some(key), "{packing:?}");
    assert_eq!(seen.header("x-sesame-server-name"), None, "{packing:?}");
    assert_eq!(seen.header("x-sesame-chain"), None, "{packing:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_redirect_leads_around_tls_in_tables() {
    no_redirect_leads_around_tls(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_redirect_leads_around_tls_in_scopes() {
    no_redirect_leads_around_tls(Packing::Scoped).await;
}

/// A redirect to a host that is not listed goes to the client, as one does that leads to a host of another connection. Below a wildcard it
/// is listed: else the wildcard would be found in its place.
#[test]
fn a_host_that_no_other_connection_serves_is_listed_below_a_wildcard_alone() {
    let ca = Ca::new("listed");
    let settings = Settings { certificates: Certificates::OnDemand, ..settings(Packing::Scoped) };
    let mut pipeline = pipeline::Pipeline::new(&settings);
    let hosts = [("wild", "*.wild.org"), ("below", "below.wild.org"), ("far", "far.example.com")];
    for (name, fqdn) in hosts {
        let tls = json!({"tls": {"secretName": name}});
        for object in
            [service(name, Ipv4Addr::LOCALHOST), secret(&ca, name, fqdn), following(name, fqdn, tls, json!({}))]
        {
            pipeline.put(&object.key(), Some(object));
        }
    }
    pipeline.settle();
    let list = pipeline.engine().get::<pipeline::redirects::RedirectScopes>(&https_port()).unwrap().body.clone();
    let is_listed = |host: &str| list.windows(host.len()).any(|part| part == host.as_bytes());
    assert_eq!(hosts.map(|(_, fqdn)| is_listed(fqdn)), [true, true, false]);
}

/// A scope that lists all hosts changes whenever one comes or goes: where nobody looks there, there is none.
#[test]
fn an_exact_host_with_its_certificate_on_demand_needs_no_list_of_all_hosts() {
    let ca = Ca::new("own scope");
    let settings = Settings { certificates: Certificates::OnDemand, ..settings(Packing::Scoped) };
    let scopes = |fqdn: &str| {
        let mut pipeline = pipeline::Pipeline::new(&settings);
        let tls = json!({"tls": {"secretName": "cert"}});
        let objects =
            [service("a", Ipv4Addr::LOCALHOST), secret(&ca, "cert", fqdn), following("a", fqdn, tls, json!({}))];
        for object in objects {
            pipeline.put(&object.key(), Some(object));
        }
        pipeline.settle();
        pipeline.engine().rows::<pipeline::redirects::RedirectScopes>().count()
    };
    assert_eq!(scopes("a.example.com"), 0);
    assert_eq!(scopes("*.example.com"), 1);
}
