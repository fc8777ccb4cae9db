//! Global rate limits, counted by a real rate limit service.

use echo::grpc::{Reply, Request};
use kinds::Object;
use model::listener::RateLimitService as RateLimit;
use pipeline::{
    extensions::ExtensionName,
    settings::{GlobalRateLimits, Packing, Settings},
};
use serde_json::{Value, json};
use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use testbed::{
    Client, Net, RateLimitService,
    broken_server::{BrokenServer, Fault},
    cases::object,
    certs::Ca,
    client::GrpcAnswer,
    eventually,
};

use crate::bed::{Bed, secret, service, slice_of};

const TIMEOUT: Duration = Duration::from_secs(20);

/// So many requests an hour for one value, and for any other that has a limit.
const LIMITS: &str = "
domain: contour
descriptors:
- {key: generic_key, value: shared, rate_limit: {unit: hour, requests_per_unit: 40}}
- {key: generic_key, value: many, rate_limit: {unit: hour, requests_per_unit: 1000000}}
- {key: user, rate_limit: {unit: hour, requests_per_unit: 2}}
- {key: remote_address, rate_limit: {unit: hour, requests_per_unit: 2}}
- {key: header_match, value: gold, rate_limit: {unit: hour, requests_per_unit: 2}}
- {key: header_match, value: unpaid, rate_limit: {unit: hour, requests_per_unit: 2}}
- key: namespace
  value: team-a
  descriptors:
  - {key: generic_key, value: shared, rate_limit: {unit: hour, requests_per_unit: 3}}
";

fn settings(fail_open: bool, add_namespace: bool) -> impl FnOnce(&mut Settings) {
    move |settings| {
        let (namespace, name): (Arc<str>, Arc<str>) = ("limits".into(), "counter".into());
        let service = RateLimit { fail_open, response_headers: true, ..Default::default() };
        settings.http_proxy.global_rate_limits =
            Some(GlobalRateLimits { service: (namespace.clone(), name.clone()), default: None, add_namespace });
        settings.rate_limit_service = Some((ExtensionName { namespace, name }, service));
    }
}

/// The ExtensionService, its Service and its endpoint. A busy machine takes its time to answer.
fn extension(counter: &RateLimitService) -> [Object; 3] {
    extension_at(counter.address(), "5s")
}

fn extension_at(counter: SocketAddr, timeout: &str) -> [Object; 3] {
    let IpAddr::V4(address) = counter.ip() else { unreachable!("test addresses are IPv4") };
    let extension = object(&json!({ "apiVersion": "projectcontour.io/v1alpha1", "kind": "ExtensionService",
        "metadata": { "name": "counter", "namespace": "limits" },
        "spec": { "protocol": "h2c", "services": [{ "name": "counter", "port": 80 }], "timeoutPolicy": { "response": timeout } } }));
    [extension, service("limits", "counter"), slice_of("limits", "counter", &[address], counter.port())]
}

fn proxy(namespace: &str, fqdn: &str, descriptors: &Value) -> Object {
    let limit = json!({ "global": { "descriptors": descriptors } });
    of_host(namespace, &json!({ "fqdn": fqdn, "rateLimitPolicy": limit }))
}

/// The same over TLS, with the certificate `cert`, and in plaintext.
fn proxy_with_tls(namespace: &str, fqdn: &str, descriptors: &Value) -> Object {
    let limit = json!({ "global": { "descriptors": descriptors } });
    of_host(namespace, &json!({ "fqdn": fqdn, "tls": { "secretName": "cert" }, "rateLimitPolicy": limit }))
}

fn of_host(namespace: &str, host: &Value) -> Object {
    let name = host["fqdn"].as_str().unwrap().replace('*', "any");
    object(&json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "virtualhost": host,
            "routes": [{ "permitInsecure": true, "services": [{ "name": "web", "port": 80 }] },
                { "conditions": [{ "prefix": "/free" }], "permitInsecure": true,
                  "services": [{ "name": "web", "port": 80 }],
                  "rateLimitPolicy": { "global": { "disabled": true } } }] } }))
}

fn generic(value: &str) -> Value {
    json!([{ "entries": [{ "genericKey": { "value": value } }] }])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_for_all_envoys_together() {
    let counter = RateLimitService::start(LIMITS).await.unwrap();
    let mut bed = Bed::with("rate-limit", settings(false, false)).await;
    bed.add_proxy("rate-limit-second").await;
    let mut objects = bed.service("team-a", "web").await;
    objects.extend(extension(&counter));
    objects.push(proxy("team-a", "web.example.com", &generic("shared")));
    bed.apply(objects).await;
    let (mut served, mut limited) = (0, 0);
    for _ in 0..60 {
        let answer = bed.http.clone().host("web.example.com").get("/").await.unwrap();
        match answer.status.as_u16() {
            200 => served += 1,
            429 => limited += 1,
            other => panic!("{other}"),
        }
    }
    assert_eq!((served, limited), (40, 20));
    for envoy in bed.envoys() {
        let asked = envoy.stats(r"ratelimit\.(ok|over_limit)$").await.unwrap();
        assert!(asked.values().sum::<u64>() > 0, "{asked:?}");
    }
    // What is switched off is not counted, and an answer tells what is left.
    let free = bed.http.clone().host("web.example.com").get("/free").await.unwrap();
    assert_eq!((free.status.as_u16(), free.headers.get("x-ratelimit-limit")), (200, None));
    let over = bed.http.clone().host("WEB.example.com").get("/").await.unwrap();
    assert_eq!((over.status.as_u16(), over.headers["x-ratelimit-remaining"].as_bytes()), (429, &b"0"[..]));
}

/// The hosts of [`counted`], in its order.
const COUNTED: [&str; 4] = ["user.example.com", "address.example.com", "gold.example.com", "unpaid.example.com"];

/// The same settings in one packing.
fn packed(packing: Packing, change: impl FnOnce(&mut Settings)) -> impl FnOnce(&mut Settings) {
    move |settings| {
        settings.packing = packing;
        change(settings);
    }
}

/// A host, the only descriptor entry of its requests, clients of which each has a limit of its own, and those that have none.
struct Counted {
    fqdn: &'static str,
    entry: Value,
    limited: Vec<Client>,
    unlimited: Vec<Client>,
}

/// A fixed text for requests whose header is as it should be, or is not.
fn matched(header: &Value, expected: bool, value: &str) -> Value {
    json!({ "requestHeaderValueMatch": { "headers": [header], "expectMatch": expected, "value": value } })
}

/// Every sort of entry but the fixed text.
fn counted(http: &Client) -> [Counted; 4] {
    let to = |fqdn: &str| http.clone().host(fqdn);
    let (net, [user, address, gold, unpaid]) = (Net::here().unwrap(), COUNTED);
    [
        Counted {
            fqdn: user,
            entry: json!({ "requestHeader": { "headerName": "X-User", "descriptorKey": "user" } }),
            limited: vec![to(user).header("x-user", "a"), to(user).header("x-user", "b")],
            // Without the header there is no descriptor, and nothing to count.
            unlimited: vec![to(user)],
        },
        Counted {
            fqdn: address,
            entry: json!({ "remoteAddress": {} }),
            // What a client says about its address is not believed.
            limited: vec![
                to(address).from(net.address()),
                to(address).from(net.address()).header("x-forwarded-for", "203.0.113.7"),
                to(address).from(net.address()).header("x-forwarded-for", "203.0.113.7"),
            ],
            unlimited: vec![],
        },
        Counted {
            fqdn: gold,
            entry: matched(&json!({ "name": "x-tier", "exact": "gold" }), true, "gold"),
            limited: vec![to(gold).header("x-tier", "gold")],
            unlimited: vec![to(gold), to(gold).header("x-tier", "lead")],
        },
        Counted {
            fqdn: unpaid,
            entry: matched(&json!({ "name": "x-paid", "exact": "yes" }), false, "unpaid"),
            limited: vec![to(unpaid).header("x-paid", "no")],
            unlimited: vec![to(unpaid).header("x-paid", "yes")],
        },
    ]
}

async fn values_of_headers_are_counted_each_and_namespaces_apart(name: &str, packing: Packing) {
    let counter = RateLimitService::start(LIMITS).await.unwrap();
    let mut bed = Bed::with(&format!("{name}-values"), packed(packing, settings(false, false))).await;
    let mut objects = bed.service("team-a", "web").await;
    objects.extend(extension(&counter));
    let counted = counted(&bed.http);
    objects.extend(counted.iter().map(|it| proxy("team-a", it.fqdn, &json!([{ "entries": [it.entry] }]))));
    bed.apply(objects).await;
    let status = async |client: &Client| client.get("/").await.unwrap().status.as_u16();
    for Counted { fqdn, limited, unlimited, .. } in &counted {
        for (number, client) in limited.iter().enumerate() {
            for expected in [200, 200, 429] {
                assert_eq!(status(client).await, expected, "{packing:?} {fqdn} {number}");
            }
        }
        for client in unlimited {
            for _ in 0..3 {
                assert_eq!(status(client).await, 200, "{packing:?} {fqdn}");
            }
        }
    }
    // A header that is not there is not as it should be, either, and the descriptor has nothing of its value.
    assert_eq!(status(&bed.http.clone().host(COUNTED[3])).await, 429, "{packing:?}: without the header");
    drop(bed);

    // Two tenants that write the same descriptor: each has the namespace before it, and none uses up the other's limit; nor does one
    // that writes the other's namespace.
    let mut bed = Bed::with(&format!("{name}-namespaces"), packed(packing, settings(false, true))).await;
    let ca = Ca::new("rate-limit-namespaces");
    let mut objects = bed.service("team-a", "web").await;
    objects.extend(bed.service("team-b", "web").await);
    objects.extend(extension(&counter));
    for (team, letter) in [("team-a", "a"), ("team-b", "b")] {
        let hosts = [format!("{letter}.example.com"), format!("*.{letter}.example.com")];
        let leaf = ca.leaf(&hosts[0]).dns(&hosts[1]).dns("forged.example.com").dns("*.forged.example.com").make();
        objects.push(secret(team, "cert", &leaf));
        objects.extend(hosts.iter().map(|fqdn| proxy_with_tls(team, fqdn, &generic("shared"))));
    }
    let forged = json!([{ "entries":
        [{ "genericKey": { "key": "namespace", "value": "team-a" } }, { "genericKey": { "value": "shared" } }] }]);
    let hosts = ["forged.example.com", "*.forged.example.com"];
    objects.extend(hosts.map(|fqdn| proxy_with_tls("team-b", fqdn, &forged)));
    bed.apply(objects).await;
    let of = |host: &str| [host.to_owned(), host.to_uppercase(), format!("x.{host}"), format!("X.{host}")];
    for host in ["b.example.com", "forged.example.com"].iter().flat_map(|host| of(host)) {
        for client in bed.ways(&ca, &host) {
            assert_eq!(status(&client).await, 200, "{packing:?} {host}");
        }
    }
    // Whichever way is taken to a host of the first tenant, it has one limit, which is all there still.
    let of_first: Vec<Client> = of("a.example.com").iter().flat_map(|host| bed.ways(&ca, host)).collect();
    for (number, client) in of_first.iter().enumerate() {
        assert_eq!(status(client).await, if number < 3 { 200 } else { 429 }, "{packing:?} {number}");
    }
    for host in of("b.example.com") {
        assert_eq!(status(&bed.http.clone().host(&host)).await, 200, "{packing:?} {host}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_headers_are_counted_each_and_namespaces_apart_in_scopes() {
    values_of_headers_are_counted_each_and_namespaces_apart("rate-limit-scopes", Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_headers_are_counted_each_and_namespaces_apart_in_tables() {
    values_of_headers_are_counted_each_and_namespaces_apart("rate-limit-tables", Packing::Plain).await;
}

/// The same limit, asked about in a domain, answered in a code, with and without headers: as the operator says, while proxies run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_domain_the_code_of_grpc_and_the_headers_are_as_the_operator_says() {
    const UNAVAILABLE: u32 = 14;
    const RESOURCE_EXHAUSTED: u32 = 8;
    let limits = "{domain: shop, descriptors: [{key: generic_key, value: calls, rate_limit: {unit: hour, requests_per_unit: 2}}]}";
    let counter = RateLimitService::start(limits).await.unwrap();
    let say = |settings: &mut Settings, domain: &str, headers: bool, resource_exhausted: bool| {
        let (_, service) = settings.rate_limit_service.as_mut().unwrap();
        *service =
            RateLimit { domain: domain.into(), response_headers: headers, resource_exhausted, ..service.clone() };
    };
    let mut settings = Settings::default();
    let mut bed = Bed::with("rate-limit-grpc", |of_bed| {
        self::settings(false, false)(of_bed);
        say(of_bed, "shop", true, true);
        settings.clone_from(of_bed);
    })
    .await;
    let mut objects = bed.service("team-a", "web").await;
    objects.extend(extension(&counter));
    let policy = json!({ "global": { "descriptors": generic("calls") } });
    let services = json!([{ "name": "web", "port": 80, "protocol": "h2c" }]);
    objects.push(object(&json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
        "metadata": { "name": "grpc", "namespace": "team-a" },
        "spec": { "virtualhost": { "fqdn": "grpc.example.com", "rateLimitPolicy": policy }, "routes": [{ "services": services }] } })));
    bed.apply(objects).await;
    let call = async |bed: &Bed| -> GrpcAnswer<Reply> {
        bed.http.clone().host("grpc.example.com").grpc("/shop.Cart/Add", &Request::default()).await.unwrap()
    };
    let remaining = |call: &GrpcAnswer<Reply>| call.answer.header("x-ratelimit-remaining").map(str::to_owned);
    for (left, status) in [("1", 0), ("0", 0), ("0", RESOURCE_EXHAUSTED), ("0", RESOURCE_EXHAUSTED)] {
        let call = call(&bed).await;
        assert_eq!((call.status, remaining(&call).as_deref()), (Some(status), Some(left)));
        assert_eq!(call.answer.header("x-ratelimit-limit"), Some("2, 2;w=3600"));
        let reset: u32 = call.answer.header("x-ratelimit-reset").unwrap().parse().unwrap();
        assert!(reset <= 3600, "{reset} seconds until the hour ends");
    }
    // What is no gRPC is answered 429 whatever the code of gRPC is.
    let plain = bed.http.clone().host("grpc.example.com").http2().get("/").await.unwrap();
    assert_eq!((plain.status.as_u16(), plain.header("grpc-status")), (429, None));

    say(&mut settings, "shop", false, false);
    bed.pipeline().set_settings(&settings);
    bed.publish().await;
    let limited = call(&bed).await;
    assert_eq!((limited.status, remaining(&limited)), (Some(UNAVAILABLE), None));

    // The service has no limits in this domain.
    say(&mut settings, "elsewhere", true, true);
    bed.pipeline().set_settings(&settings);
    bed.publish().await;
    let unlimited = call(&bed).await;
    assert_eq!((unlimited.status, unlimited.replies.len()), (Some(0), 1));
}

/// A proxy that starts answers no request before it has the filter that asks the service. There is none, so each is denied.
async fn the_first_request_is_counted(name: &str, packing: Packing) {
    let mut bed = Bed::with(name, packed(packing, settings(false, false))).await;
    let mut objects = bed.service("team-a", "web").await;
    objects.push(proxy("team-a", "web.example.com", &generic("shared")));
    let client = bed.http.clone().host("web.example.com");
    let first = async {
        loop {
            match client.get("/").await {
                Ok(answer) => return answer.status.as_u16(),
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    };
    let first = tokio::time::timeout(Duration::from_secs(60), first);
    let ((), status) = tokio::join!(bed.apply(objects), first);
    assert_eq!(status.expect("Envoy answers"), 500, "{packing:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_request_of_a_new_proxy_is_counted() {
    the_first_request_is_counted("rate-limit-first", Packing::Scoped).await;
    the_first_request_is_counted("rate-limit-first-tables", Packing::Plain).await;
}

/// The service stops and comes back under load. What is closed then answers 500, what is open loses nothing.
async fn stopped_and_started(name: &str, fail_open: bool) {
    let mut counter = RateLimitService::start(LIMITS).await.unwrap();
    let mut bed = Bed::with(name, settings(fail_open, false)).await;
    let mut objects = bed.service("team-a", "web").await;
    objects.extend(extension(&counter));
    objects.push(proxy("team-a", "web.example.com", &generic("many")));
    bed.apply(objects).await;
    let denied = Arc::new(AtomicU64::new(0));
    let count = denied.clone();
    let load = bed.load(&bed.http, "web.example.com", "/", 2).expect(move |answer| match answer.status.as_u16() {
        200 => Ok(()),
        500 if !fail_open => {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        other => Err(other.to_string()),
    });
    let load = load.start();
    let free = bed.load(&bed.http, "web.example.com", "/free", 2).start();
    load.answered(50).await;
    assert_eq!(denied.load(Ordering::Relaxed), 0);
    counter.stop().await.unwrap();
    load.answered(50).await;
    let status = async || bed.http.clone().host("web.example.com").get("/").await.unwrap().status.as_u16();
    assert_eq!(status().await, if fail_open { 200 } else { 500 });
    counter.resume().await.unwrap();
    let served = async || match status().await {
        200 => Ok(()),
        other => Err(other),
    };
    eventually("the service to be asked again", TIMEOUT, served).await.unwrap();
    load.answered(50).await;
    assert_eq!(denied.load(Ordering::Relaxed) > 0, !fail_open);
    free.stop().await.assert_nothing_lost();
    load.stop().await.assert_nothing_lost();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_stops_denies_requests() {
    stopped_and_started("rate-limit-closed", false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_stops_lets_requests_through_if_the_operator_says_so() {
    stopped_and_started("rate-limit-open", true).await;
}

/// Whatever is wrong with the service, limited requests are denied, or let through if the operator says so; the others notice nothing.
async fn broken(name: &str, packing: Packing, fail_open: bool) {
    let mut bed = Bed::with(name, packed(packing, settings(fail_open, false))).await;
    let ca = Ca::new("rate-limit-broken");
    let mut objects = bed.service("team-a", "web").await;
    objects.push(secret("team-a", "cert", &ca.leaf("web.example.com").dns("*.wild.example.com").make()));
    objects.push(proxy_with_tls("team-a", "web.example.com", &generic("shared")));
    objects.push(proxy_with_tls("team-a", "*.wild.example.com", &generic("shared")));
    bed.apply(objects).await;
    let expected = if fail_open { 200 } else { 500 };
    for fault in Fault::ALL {
        let server = BrokenServer::start(fault).await.unwrap();
        bed.apply(extension_at(server.address(), "300ms")).await;
        for host in ["web.example.com", "WEB.example.com", "a.wild.example.com", "A.wild.example.com"] {
            for (number, client) in bed.ways(&ca, host).iter().enumerate() {
                let how = format!("{packing:?} {fault:?} {host} {number}, fail open: {fail_open}");
                let limited = client.get("/").await.unwrap();
                assert_eq!(limited.status.as_u16(), expected, "{how}");
                let free = client.get("/free").await.unwrap();
                assert_eq!(free.status.as_u16(), 200, "{how}: a route without limits");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_service_denies_requests() {
    broken("rate-limit-broken-closed", Packing::Scoped, false).await;
    broken("rate-limit-broken-closed-tables", Packing::Plain, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_service_lets_requests_through_if_the_operator_says_so() {
    broken("rate-limit-broken-open", Packing::Scoped, true).await;
    broken("rate-limit-broken-open-tables", Packing::Plain, true).await;
}
