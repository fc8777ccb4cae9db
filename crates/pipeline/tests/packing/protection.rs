//! Closed stays closed, however a request is written and however virtual hosts are packed.
//!
//! With scopes, a request whose Host is not written as its scope is found by a detour, after the chain of filters was built.
//! What protects must hold there, too: every protection of an exact and of a wildcard host is tried with every spelling of
//! the host, in every protocol, as a Host and as an absolute-form target. The open neighbour shows that it is the protection
//! that answers, and not a lost request.

use super::requests::TURN;
use super::world::{World, ingress, object, secret, service, settings};
use kinds::{Object, kind};
use pipeline::{
    Settings,
    authorization::{GlobalAuthorization, of_operator},
    extensions::ExtensionName,
    settings::{GlobalRateLimits, Packing},
};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use testbed::tokens::{TokenSigner, key_set};
use testbed::{Backend, Client, certs::Ca, envoy::Config};

/// What came back: the status, the headers in lower case, and whether a backend was asked.
struct Seen {
    status: u16,
    head: String,
}

impl Seen {
    fn served(&self) -> bool {
        self.head.contains("x-echo-name: ")
    }

    fn grants(&self) -> bool {
        self.head.contains("access-control-allow-origin: ")
    }
}

/// What must come back, however it is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Expect {
    /// This status, and no backend was asked.
    Closed(u16),
    /// A backend's answer.
    Open,
    /// A backend's answer, without leave for the site that asked.
    Withheld,
    /// A backend's answer, with leave for it.
    Granted,
}

impl Expect {
    fn check(self, seen: &Seen, how: &str) {
        match self {
            Expect::Closed(status) => assert!(seen.status == status && !seen.served(), "{how}: {}", seen.head),
            Expect::Open => assert!(seen.status == 200 && seen.served(), "{how}: {}", seen.head),
            Expect::Withheld => assert!(seen.served() && !seen.grants(), "{how}: {}", seen.head),
            Expect::Granted => assert!(seen.served() && seen.grants(), "{how}: {}", seen.head),
        }
    }
}

/// Where requests go.
#[derive(Clone, Copy)]
pub enum TableView<'a> {
    Clear,
    /// On a connection for this server name.
    Tls(&'a str),
}

impl TableView<'_> {
    pub fn client(self) -> Client {
        let at = |port| Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        match self {
            TableView::Clear => at(8080),
            TableView::Tls(name) => at(8443).https().sni(name),
        }
    }
}

/// The ways to write a host that mean the same one.
fn spellings(host: &str) -> [String; 7] {
    let upper = host.to_uppercase();
    let mixed = host.char_indices().map(|(at, c)| if at % 2 == 0 { c.to_ascii_uppercase() } else { c }).collect();
    [
        host.to_owned(),
        upper.clone(),
        mixed,
        format!("{host}."),
        format!("{upper}."),
        format!("{host}:8080"),
        format!("{upper}:1"),
    ]
}

/// Makes a client speak a protocol.
type With = fn(Client) -> Client;

/// Asks in every protocol, for every spelling, with one header, and looks at each answer.
pub async fn try_all(view: TableView<'_>, host: &str, header: (&str, &str), expect: Expect, packing: Packing) {
    let (name, value) = header;
    let protocols: [(&str, With); 3] =
        [("HTTP/1.1", Client::http1), ("HTTP/1.0", Client::http10), ("HTTP/2", Client::http2)];
    for spelling in spellings(host) {
        for (protocol, with) in protocols {
            let client = with(view.client().host(&spelling)).header(name, value);
            let answer = client.get("/").await.unwrap();
            let head = answer.headers.iter().map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap()));
            let seen = Seen { status: answer.status.as_u16(), head: head.collect() };
            expect.check(&seen, &format!("{packing:?} {protocol} {spelling}"));
        }
        for version in ["HTTP/1.1", "HTTP/1.0"] {
            let scheme = if matches!(view, TableView::Clear) { "http" } else { "https" };
            let request = format!(
                "GET {scheme}://{spelling}/ {version}\r\nhost: open.example.com\r\n{name}: {value}\r\nconnection: close\r\n\r\n"
            );
            let mut wire = view.client().open().await.unwrap();
            wire.write(request).await.unwrap();
            let head = wire.read_until(b"\r\n\r\n").await.unwrap();
            let head = String::from_utf8_lossy(&head).to_lowercase();
            let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
            let seen = Seen { status, head };
            expect.check(&seen, &format!("{packing:?} {version} to the target {scheme}://{spelling}/"));
        }
    }
}

/// An HTTPProxy that sends everything to the Service `web`; `host` has what stands beside the fqdn, `route` beside services.
pub fn proxy(name: &str, fqdn: &str, mut host: Value, mut route: Value) -> Object {
    host["fqdn"] = fqdn.into();
    route["services"] = json!([{"name": "web", "port": 80}]);
    object(
        kind::CONTOUR_HTTP_PROXY,
        &json!({
            "metadata": {"namespace": "default", "name": name},
            "spec": {"virtualhost": host, "routes": [route]},
        }),
    )
}

/// A host that asks for authorization, about all routes or only about those that say so.
fn authorized(disabled: bool) -> Value {
    let authorization = json!({"extensionRef": {"name": "nobody"}, "authPolicy": {"disabled": disabled}});
    json!({"tls": {"secretName": "cert"}, "authorization": authorization})
}

/// A host that has a provider of tokens.
fn tokens(default: bool) -> Value {
    let keys = json!({"secretName": "keys", "key": "keys"});
    json!({"tls": {"secretName": "cert"}, "jwtProviders": [{"name": "a", "default": default, "localJWKS": keys}]})
}

/// A Secret with the keys of that provider.
pub fn keys(signer: &TokenSigner) -> Object {
    let keys = key_set([signer]);
    object(kind::SECRET, &json!({"metadata": {"namespace": "default", "name": "keys"}, "stringData": {"keys": keys}}))
}

/// A protection as a part of a virtual host and as a part of a route, and what it answers to us.
fn protections() -> Vec<(&'static str, Value, Value, Expect)> {
    let deny = json!({"ipDenyPolicy": [{"source": "Peer", "cidr": "127.0.0.0/8"}]});
    let allow = json!({"ipAllowPolicy": [{"source": "Remote", "cidr": "10.0.0.0/8"}]});
    let unread = json!({"ipAllowPolicy": [{"source": "Peer", "cidr": "nonsense"}]});
    let limit = json!({"rateLimitPolicy": {"local": {"requests": 1, "unit": "hour"}}});
    let cors = json!({"corsPolicy": {"allowOrigin": ["https://friend.example.com"], "allowMethods": ["GET"]}});
    let required = json!({"permitInsecure": true, "jwtVerificationPolicy": {"require": "a"}});
    let counted = json!({"rateLimitPolicy": {"global": {"descriptors": [{"entries": [{"remoteAddress": {}}]}]}}});
    let asking = json!({"permitInsecure": true, "authPolicy": {"disabled": false}});
    vec![
        ("host-deny", deny.clone(), json!({}), Expect::Closed(403)),
        ("route-deny", json!({}), deny, Expect::Closed(403)),
        ("host-allow", allow.clone(), json!({}), Expect::Closed(403)),
        ("route-allow", json!({}), allow, Expect::Closed(403)),
        ("unread", unread, json!({}), Expect::Closed(503)),
        ("host-limit", limit.clone(), json!({}), Expect::Closed(429)),
        ("route-limit", json!({}), limit, Expect::Closed(429)),
        ("cors", cors, json!({}), Expect::Withheld),
        ("secure", json!({"tls": {"secretName": "cert"}}), json!({}), Expect::Closed(301)),
        ("default-token", tokens(true), json!({"permitInsecure": true}), Expect::Closed(401)),
        ("route-token", tokens(false), required, Expect::Closed(401)),
        // Nobody can be asked: the ExtensionService does not exist.
        ("authorized", authorized(false), json!({"permitInsecure": true}), Expect::Closed(403)),
        ("route-authorized", authorized(true), asking.clone(), Expect::Closed(403)),
        // Nor can the services of the operator.
        ("global-auth", json!({}), asking, Expect::Closed(403)),
        ("global-limit", counted, json!({}), Expect::Closed(500)),
    ]
}

/// The settings of an operator whose rate limit service and authorization server do not exist. Hosts ask that server if they say so.
fn operated(packing: Packing) -> Settings {
    let missing = ExtensionName { namespace: "default".into(), name: "nobody".into() };
    let off = serde_json::from_value(json!({"authPolicy": {"disabled": true}})).unwrap();
    let mut settings = settings(packing);
    settings.authorization =
        Some(GlobalAuthorization { extension: missing.clone(), settings: of_operator(&off).unwrap() });
    let service = (missing.namespace.clone(), missing.name.clone());
    settings.http_proxy.global_rate_limits = Some(GlobalRateLimits { service, default: None, add_namespace: false });
    settings.rate_limit_service = Some((missing, model::listener::RateLimitService::default()));
    settings
}

async fn world(packing: Packing, backend: &Backend) -> World {
    World::with(&operated(packing), Config::new().name("packing"), [service("web", backend.ip())]).await
}

async fn closed_stays_closed(packing: Packing) {
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let ca = Ca::new("protection");
    let mut world = world(packing, &backend).await;
    world.put([
        secret(&ca, "cert", "cert.example.com"),
        keys(&TokenSigner::new("a")),
        ingress("open", "open.example.com", "/", "web"),
    ]);
    for (name, host, route, _) in protections() {
        world.put([
            proxy(name, &format!("{name}.example.com"), host.clone(), route.clone()),
            proxy(&format!("{name}-wild"), &format!("*.{name}.org"), host, route),
        ]);
    }
    world.publish().await;
    let evil = ("origin", "https://evil.example.com");
    try_all(TableView::Clear, "open.example.com", evil, Expect::Open, packing).await;
    try_all(TableView::Clear, "unknown.example.net", evil, Expect::Closed(404), packing).await;
    for (name, _, _, expect) in protections() {
        for host in [format!("{name}.example.com"), format!("x.{name}.org")] {
            if matches!(expect, Expect::Closed(429)) {
                let first = TableView::Clear.client().host(&host).get("/").await.unwrap();
                assert_eq!(first.status, 200, "{packing:?} {host}: one request is taken");
            }
            try_all(TableView::Clear, &host, evil, expect, packing).await;
        }
        try_all(TableView::Clear, &format!("too.deep.{name}.org"), evil, Expect::Closed(404), packing).await;
    }
    for host in ["cors.example.com", "x.cors.org"] {
        let friend = ("origin", "https://friend.example.com");
        try_all(TableView::Clear, host, friend, Expect::Granted, packing).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_stays_closed_in_tables() {
    closed_stays_closed(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_stays_closed_in_scopes() {
    closed_stays_closed(Packing::Scoped).await;
}

async fn closed_stays_closed_under_tls(packing: Packing) {
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let ca = Ca::new("protection");
    let mut world = world(packing, &backend).await;
    world.put([secret(&ca, "cert", "cert.example.com"), secret(&ca, "other", "other.example.com")]);
    world.put([keys(&TokenSigner::new("a"))]);
    let secure = |mut host: Value, name: &str| {
        host["tls"] = json!({"secretName": name});
        host
    };
    world.put([
        proxy("open", "open.example.com", secure(json!({}), "cert"), json!({})),
        proxy("other", "other.example.com", secure(json!({}), "other"), json!({})),
        proxy("other-wild", "*.other.org", secure(json!({}), "other"), json!({})),
    ]);
    let validated = json!({"tls": {"secretName": "cert", "clientValidation": {"caSecret": "ca"}}});
    let meta = json!({"namespace": "default", "name": "ca"});
    world.put([
        object(kind::SECRET, &json!({"metadata": meta, "stringData": {"ca.crt": ca.pem()}})),
        proxy("validated", "validated.example.com", validated.clone(), json!({})),
        proxy("validated-wild", "*.validated.org", validated, json!({})),
    ]);
    let protections = || protections().into_iter().filter(|(name, ..)| *name != "secure");
    for (name, host, route, _) in protections() {
        let host = secure(host, "cert");
        world.put([
            proxy(name, &format!("{name}.example.com"), host.clone(), route.clone()),
            proxy(&format!("{name}-wild"), &format!("*.{name}.org"), host, route),
        ]);
    }
    world.publish().await;
    let evil = ("origin", "https://evil.example.com");
    try_all(TableView::Tls("open.example.com"), "open.example.com", evil, Expect::Open, packing).await;
    for (name, _, _, expect) in protections() {
        for host in [format!("{name}.example.com"), format!("x.{name}.org")] {
            if matches!(expect, Expect::Closed(429)) {
                let first = TableView::Tls(&host).client().host(&host).get("/").await.unwrap();
                assert_eq!(first.status, 200, "{packing:?} {host}: one request is taken");
            }
            // On its own connection, and on one that was made for a neighbour with the same certificate.
            for name in [host.as_str(), "open.example.com"] {
                try_all(TableView::Tls(name), &host, evil, expect, packing).await;
            }
        }
    }
    // Hosts of another certificate, or that require one of the client, are on another connection, and those of nobody nowhere.
    for (host, status) in [
        ("other.example.com", 421),
        ("x.other.org", 421),
        ("validated.example.com", 421),
        ("x.validated.org", 421),
        ("unknown.example.net", 404),
    ] {
        try_all(TableView::Tls("open.example.com"), host, evil, Expect::Closed(status), packing).await;
    }
    let own = ca.leaf("client").make();
    for host in ["validated.example.com", "x.validated.org"] {
        let client = TableView::Tls(host).client().host(host);
        assert!(client.get("/").await.is_err(), "{packing:?} {host}: there is a connection without a certificate");
        assert_eq!(client.identity(&own).get("/").await.unwrap().status, 200, "{packing:?} {host}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_stays_closed_under_tls_in_tables() {
    closed_stays_closed_under_tls(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_stays_closed_under_tls_in_scopes() {
    closed_stays_closed_under_tls(Packing::Scoped).await;
}
