//! What an authorization server may do to the messages of requests that it is asked about: nothing to where they end, or to whose
//! route they take.
//!
//! Two requests follow each other on one connection, and the server may write the first response or the second request if it can change
//! a length. What comes back is read as strictly as a client of HTTP/1 reads it; clients of HTTP/2 are told the same. Hosts are exact
//! ones, in capitals, too, and wildcards, in both packings.

use super::requests::TURN;
use super::world::{World, object, secret, service, settings};
use kinds::{Object, kind};
use pipeline::settings::Packing;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};
use testbed::{Backend, Client, KeyAnswer, KeyServer, auth_server::AuthServer, certs::Ca, envoy::Config};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// An exact host, the same in capitals, which is found by another way, and one below a wildcard.
const HOSTS: [&str; 3] = ["guarded.example.com", "GUARDED.example.com", "a.wild.example.com"];

fn meta(name: &str) -> Value {
    json!({"namespace": "default", "name": name})
}

/// How a server over HTTP is asked whose headers are passed on by wide patterns.
fn over_http() -> Value {
    let allowed = json!([{"prefix": "content-"}, {"prefix": "x-sesame-"}, {"contains": "e"}]);
    json!({"extensionRef": {"name": "auth"}, "responseTimeout": "5s", "serviceType": "http",
        "httpSettings": {"allowedUpstreamHeaders": allowed}})
}

/// A host whose requests the server is asked about.
fn proxy(name: &str, fqdn: &str, authorization: &Value) -> Object {
    let host = json!({"fqdn": fqdn, "tls": {"secretName": "guarded"}, "authorization": authorization});
    let route = |condition: Value, service: &str| {
        json!({"conditions": [condition], "permitInsecure": true, "enableWebsockets": true,
            "services": [{"name": service, "port": 80}]})
    };
    let listed = |condition: Value| {
        let mut route = route(condition, "inside");
        route["ipAllowPolicy"] = json!([{"source": "Peer", "cidr": "10.0.0.0/8"}]);
        route
    };
    let routes = json!([
        route(json!({"prefix": "/"}), "web"),
        listed(json!({"prefix": "/listed"})),
        listed(json!({"header": {"name": "x-inside", "exact": "yes"}})),
    ]);
    object(kind::CONTOUR_HTTP_PROXY, &json!({"metadata": meta(name), "spec": {"virtualhost": host, "routes": routes}}))
}

fn objects(
    ca: &Ca,
    [web, inside]: [Ipv4Addr; 2],
    auth: Ipv4Addr,
    protocol: &str,
    authorization: &Value,
) -> Vec<Object> {
    let extension = json!({"protocol": protocol, "services": [{"name": "auth", "port": 80}]});
    vec![
        service("web", web),
        service("inside", inside),
        service("auth", auth),
        secret(ca, "guarded", "guarded.example.com"),
        object(kind::CONTOUR_EXTENSION_SERVICE, &json!({"metadata": meta("auth"), "spec": extension})),
        proxy("guarded", "guarded.example.com", authorization),
        proxy("wild", "*.wild.example.com", authorization),
    ]
}

/// A response as a client takes it.
#[derive(Debug)]
pub(super) struct Response {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Response {
    fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.head.lines().skip(1).filter_map(|line| line.split_once(": "))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The names of its headers.
    fn names(&self) -> BTreeSet<String> {
        self.headers().map(|(name, _)| name.to_ascii_lowercase()).collect()
    }

    /// What the backend saw.
    pub(super) fn seen(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The names of the headers that the backend saw.
fn seen_names(response: &Response) -> Vec<Value> {
    response.seen()["headers"].as_array().unwrap().iter().map(|header| header[0].clone()).collect()
}

/// The header of a request that the backend saw.
pub(super) fn seen_header<'a>(seen: &'a Value, name: &str) -> Option<&'a str> {
    let all = seen["headers"].as_array().unwrap().iter();
    all.into_iter().find(|header| header[0] == name).and_then(|header| header[1].as_str())
}

/// What comes back for these bytes until the connection ends, or nothing more comes.
async fn raw(bytes: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, 8080)).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let (mut all, mut buffer) = (Vec::new(), vec![0; 65536]);
    while let Ok(Ok(n @ 1..)) = tokio::time::timeout(Duration::from_secs(3), stream.read(&mut buffer)).await {
        all.extend_from_slice(&buffer[..n]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// The responses to requests with these methods; what is left over is one more.
fn responses(mut text: &str, methods: &[&str]) -> Vec<Response> {
    let mut all = Vec::new();
    while let Some((head, rest)) = text.split_once("\r\n\r\n") {
        let status = head.get(9..12).and_then(|code| code.parse().ok()).unwrap_or(0);
        let mut response = Response { status, head: head.to_owned(), body: String::new() };
        text = rest;
        let is_head = methods.get(all.len()) == Some(&"HEAD");
        if !is_head && !matches!(status, 100..200 | 204 | 304) {
            if response.header("transfer-encoding") == Some("chunked") {
                while let Some((size, rest)) = text.split_once("\r\n") {
                    let (chunk, rest) = rest.split_at(usize::from_str_radix(size, 16).unwrap());
                    response.body += chunk;
                    text = rest.strip_prefix("\r\n").unwrap();
                    if size == "0" {
                        break;
                    }
                }
            } else {
                let length: usize = response.header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
                let (body, rest) = text.split_at(length.min(text.len()));
                response.body = body.to_owned();
                text = rest;
            }
        }
        all.push(response);
    }
    all
}

/// The response to a request with this wish; the one that follows it is as it should be.
pub(super) async fn first(host: &str, method: &str, path: &str, wish: &str, more: &str) -> Response {
    let one = |wish: &str, more: &str| {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nx-auth: {wish}\r\n{more}");
        if method == "POST" { format!("{head}content-length: 5\r\n\r\n12345") } else { head + "\r\n" }
    };
    let text = raw(&(one(wish, more) + &one("second", "connection: close\r\n"))).await;
    let mut all = responses(&text, &[method, method]);
    assert_eq!(all.len(), 2, "{method} {host}{path} {wish}: {text}");
    let second = all.pop().unwrap();
    assert_eq!(second.status, 200, "{method} {host}{path} {wish}: {text}");
    if method != "HEAD" {
        let seen = second.seen();
        let told = (seen_header(&seen, "x-auth"), &seen["method"], &seen["body"]["length"]);
        let length = if method == "POST" { 5 } else { 0 };
        assert_eq!(told, (Some("second"), &json!(method), &json!(length)), "{wish}: {text}");
    }
    all.pop().unwrap()
}

/// The response to the same request over HTTP/2.
async fn over_http2(host: &str, method: &str, wish: &str) -> Response {
    at_over_http2(host, method, "/", ("x-auth", wish)).await
}

/// The response to a request for a path over HTTP/2, with one more header.
async fn at_over_http2(host: &str, method: &str, path: &str, (name, wish): (&str, &str)) -> Response {
    let client = Client::new((Ipv4Addr::LOCALHOST, 8080).into()).host(host).http2().header(name, wish);
    let answer = if method == "POST" { client.post(path, "12345") } else { client.get(path) };
    let answer = answer.await.unwrap_or_else(|error| panic!("{method} {host} {wish}: {error}"));
    let headers = answer.headers.iter().map(|(name, value)| format!("\n{name}: {}", value.to_str().unwrap()));
    Response { status: answer.status.as_u16(), head: headers.collect(), body: answer.text() }
}

async fn world(packing: Packing) -> (World, [Backend; 2], AuthServer) {
    let backends = [Backend::start("web").await.unwrap(), Backend::start("inside").await.unwrap()];
    let ca = Ca::new("authorization");
    let auth = AuthServer::start("auth", ca.leaf("auth").make().server_config()).await.unwrap();
    let over_grpc = json!({"extensionRef": {"name": "auth"}, "responseTimeout": "5s"});
    let objects = objects(&ca, [backends[0].ip(), backends[1].ip()], auth.ip(), "h2c", &over_grpc);
    let world = World::with(&settings(packing), Config::new().name("auth-headers"), objects).await;
    (world, backends, auth)
}

/// The same with a server over HTTP, which says the same to whatever it is asked.
async fn world_over_http(packing: Packing) -> (World, [Backend; 2], KeyServer) {
    let backends = [Backend::start("web").await.unwrap(), Backend::start("inside").await.unwrap()];
    let ca = Ca::new("authorization");
    let auth = KeyServer::start(None).await.unwrap();
    let IpAddr::V4(ip) = auth.address().ip() else { unreachable!("test addresses are IPv4") };
    let objects = objects(&ca, [backends[0].ip(), backends[1].ip()], ip, "http/1.1", &over_http());
    let world = World::with(&settings(packing), Config::new().name("auth-headers-http"), objects).await;
    (world, backends, auth)
}

async fn an_authorization_server_does_not_frame_requests(packing: Packing) {
    let _turn = TURN.lock().await;
    let _world = world(packing).await;
    for host in HOSTS {
        requests_are_as_they_were(host).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authorization_server_does_not_frame_requests_in_tables() {
    an_authorization_server_does_not_frame_requests(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authorization_server_does_not_frame_requests_in_scopes() {
    an_authorization_server_does_not_frame_requests(Packing::Scoped).await;
}

async fn requests_are_as_they_were(host: &str) {
    let usual = first(host, "POST", "/", "nothing", "").await;
    assert_eq!((usual.status, seen_header(&usual.seen(), "content-length")), (200, Some("5")));
    let written = usual.seen()["host"].clone();
    assert!(written.as_str().is_some_and(|written| written.eq_ignore_ascii_case(host)), "{written}");
    let (usual, usual_over_http2) = (seen_names(&usual), seen_names(&over_http2(host, "POST", "nothing").await));
    for wish in [
        "set content-length=1",
        "append content-length=1",
        "set content-length=500",
        "remove content-length",
        "set transfer-encoding=chunked",
        "set Transfer-Encoding=chunked",
        "set connection=x-auth-by",
        "set keep-alive=1",
        "set upgrade=websocket",
        "set te=trailers",
        "set trailer=x",
        "set proxy-connection=close",
        "set proxy-authorization=x",
        "set x-sesame-host=x",
        "set :method=PUT",
        "set :path=/listed",
        "set :scheme=ftp",
        "set :authority=other.example.com",
        "set host=other.example.com",
    ] {
        let both = [
            (first(host, "POST", "/", wish, "").await, &usual),
            (over_http2(host, "POST", wish).await, &usual_over_http2),
        ];
        for (response, usual) in both {
            let seen = response.seen();
            let told = (response.status, &seen["method"], &seen["path"], &seen["host"], &seen["body"]["length"]);
            let expected = (200, &json!("POST"), &json!("/"), &written, &json!(5));
            assert_eq!(told, expected, "{wish}");
            let names = seen_names(&response);
            assert!(names.iter().all(|name| usual.contains(name)), "{wish}: {names:?}");
        }
    }
    let response = first(host, "POST", "/", "set x-user=me", "").await;
    assert_eq!(seen_header(&response.seen(), "x-user"), Some("me"), "other headers are its own business");
}

async fn an_authorization_server_does_not_frame_responses(packing: Packing) {
    let _turn = TURN.lock().await;
    let _world = world(packing).await;
    for host in HOSTS {
        responses_are_as_they_were(host).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authorization_server_does_not_frame_responses_in_tables() {
    an_authorization_server_does_not_frame_responses(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authorization_server_does_not_frame_responses_in_scopes() {
    an_authorization_server_does_not_frame_responses(Packing::Scoped).await;
}

async fn responses_are_as_they_were(host: &str) {
    for wish in [
        "answer content-length=5",
        "answer content-length=5000",
        "answer content-length=x",
        "answer :status=204",
        "answer :status=304",
        "answer :status=100",
        "answer :status=xyz",
        "answer transfer-encoding=chunked",
        "answer transfer-encoding=gzip",
        "answer connection=close",
        "answer upgrade=h2c",
    ] {
        for response in [first(host, "GET", "/", wish, "").await, over_http2(host, "GET", wish).await] {
            let told = (response.status, response.seen()["name"].as_str().map(str::to_owned));
            assert_eq!(told, (200, Some("web".to_owned())), "{wish}: {response:?}");
            assert!(response.header("connection").is_none() && response.header("upgrade").is_none(), "{response:?}");
        }
        // One that has no length gets none, and a status of the backend stays.
        let response = first(host, "GET", "/", wish, "x-echo-chunk: 100\r\nx-echo-status: 418\r\n").await;
        assert_eq!((response.status, response.seen()["name"].as_str()), (418, Some("web")), "{wish}: {response:?}");
        assert_eq!(response.header("content-length"), None, "{wish}");
        let response = first(host, "HEAD", "/", wish, "").await;
        let length: usize = response.header("content-length").unwrap().parse().unwrap();
        assert!(response.status == 200 && length > 500 && length < 5000, "{wish}: {response:?}");
    }
    assert_eq!(first(host, "GET", "/", "answer x-user=me", "").await.header("x-user"), Some("me"));

    for (wish, status, body) in [
        ("deny", 401, "denied"),
        ("deny content-length=20", 401, ""),
        ("deny transfer-encoding=chunked", 401, ""),
        ("deny :status=204", 401, ""),
        ("deny 402", 402, "denied"),
        ("deny 100", 403, "denied"),
        ("deny 101", 403, "denied"),
        ("deny 204", 403, "denied"),
        ("deny 304", 403, "denied"),
    ] {
        for response in [first(host, "GET", "/", wish, "").await, over_http2(host, "GET", wish).await] {
            assert_eq!((response.status, &*response.body), (status, body), "{wish}");
        }
    }

    let upgrade = format!(
        "GET / HTTP/1.1\r\nhost: {host}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    let mut wire = Client::new((Ipv4Addr::LOCALHOST, 8080).into()).open().await.unwrap();
    wire.write(upgrade).await.unwrap();
    let text = String::from_utf8(wire.read_until(b"\r\n\r\n").await.unwrap()).unwrap();
    let switched = responses(&text, &["GET"]);
    assert_eq!((switched[0].status, switched[0].header("upgrade")), (101, Some("websocket")), "{text}");
}

/// Headers of the connection, of message framing and of Sesame's own, and one that is the server's own business.
const WRITTEN: &str = "keep-alive: timeout=1\r\nproxy-connection: close\r\nproxy-authenticate: Basic\r\nte: trailers\r\n\
    trailer: x-end\r\nupgrade: h2c\r\nx-sesame-host: ingress_http|other.example.com\r\n\
    x-sesame-server-name: other.example.com\r\nx-sesame-chain: other\r\nx-user: me\r\n";

/// The answer of a server over HTTP, which then closes the connection.
fn http_answer(status: &str, headers: &str, body: &str) -> KeyAnswer {
    KeyAnswer::Raw(format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n{body}").into_bytes())
}

/// The same body with its length, and in chunks.
fn framed(body: &str) -> [(String, String); 2] {
    let length = body.len();
    [
        (format!("{WRITTEN}content-type: text/auth\r\ncontent-length: {length}\r\n"), body.to_owned()),
        (
            format!("{WRITTEN}content-type: text/auth\r\ntransfer-encoding: chunked\r\n"),
            format!("{length:x}\r\n{body}\r\n0\r\n\r\n"),
        ),
    ]
}

/// A server over HTTP answers with a message of its own, whose length and connection are not those of the request, and wide patterns
/// would pass them on.
async fn a_server_over_http_frames_nothing(packing: Packing) {
    let _turn = TURN.lock().await;
    let (_world, _backends, auth) = world_over_http(packing).await;
    for host in HOSTS {
        allowed_over_http(host, &auth).await;
        denied_over_http(host, &auth).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_over_http_frames_nothing_in_tables() {
    a_server_over_http_frames_nothing(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_over_http_frames_nothing_in_scopes() {
    a_server_over_http_frames_nothing(Packing::Scoped).await;
}

async fn allowed_over_http(host: &str, auth: &KeyServer) {
    for method in ["POST", "GET"] {
        auth.set(http_answer("200 OK", "", ""));
        let usual = [first(host, method, "/", "nothing", "").await, over_http2(host, method, "nothing").await];
        for (headers, body) in framed("yes") {
            auth.set(http_answer("200 OK", &headers, &body));
            let both = [first(host, method, "/", "written", "").await, over_http2(host, method, "written").await];
            for (response, usual) in both.iter().zip(&usual) {
                let (seen, usual_seen) = (response.seen(), usual.seen());
                let told = ["method", "path", "host"].map(|field| &seen[field]);
                let expected = ["method", "path", "host"].map(|field| &usual_seen[field]);
                assert_eq!((response.status, told), (200, expected), "{method} {headers}");
                assert_eq!(seen["body"]["length"], usual_seen["body"]["length"], "{method} {headers}");
                let mut expected = seen_names(usual);
                expected.extend([json!("content-type"), json!("x-user")]);
                let names = seen_names(response);
                assert!(names.iter().all(|name| expected.contains(name)), "{method} {headers}: {names:?}");
                assert_eq!(seen_header(&seen, "x-user"), Some("me"), "other headers are its own business");
                // The client is told nothing of what the server said.
                assert_eq!(response.names(), usual.names(), "{method} {headers}");
            }
        }
    }
}

async fn denied_over_http(host: &str, auth: &KeyServer) {
    // Over HTTP/1.1 Envoy sends a body whose length it does not know in chunks of its own.
    let is_end_to_end = |response: &Response| {
        let hop_by_hop = ["connection", "keep-alive", "proxy-connection", "upgrade"];
        hop_by_hop.iter().all(|name| response.header(name).is_none())
    };
    for (headers, body) in framed("denied") {
        auth.set(http_answer("401 Unauthorized", &headers, &body));
        for (method, body) in [("GET", "denied"), ("HEAD", "")] {
            let one = |more: &str| format!("{method} / HTTP/1.1\r\nhost: {host}\r\n{more}\r\n");
            let text = raw(&(one("") + &one("connection: close\r\n"))).await;
            let both = responses(&text, &[method, method]);
            let told: Vec<_> = both.iter().map(|response| (response.status, &*response.body)).collect();
            assert_eq!(told, [(401, body); 2], "{method} {text}");
            assert!(is_end_to_end(&both[0]), "{text}");
        }
        let response = over_http2(host, "GET", "written").await;
        assert_eq!((response.status, &*response.body), (401, "denied"), "{headers}");
        assert!(is_end_to_end(&response) && response.header("transfer-encoding").is_none(), "{response:?}");
    }
    // A status without a body, with the length of one.
    auth.set(http_answer("304 Not Modified", &format!("{WRITTEN}content-length: 6\r\n"), ""));
    let one = |more: &str| format!("GET / HTTP/1.1\r\nhost: {host}\r\n{more}\r\n");
    let text = raw(&(one("") + &one("connection: close\r\n"))).await;
    let told: Vec<_> = responses(&text, &["GET", "GET"]).into_iter().map(|it| (it.status, it.body)).collect();
    assert_eq!(told, [(403, String::new()), (403, String::new())], "{text}");
}

/// An authorization server may add headers by which another route would be chosen, whose IP list the request never met.
async fn the_route_stays_the_one_whose_protection_was_passed(packing: Packing) {
    let _turn = TURN.lock().await;
    let _world = world(packing).await;
    for host in HOSTS {
        routes_stay(host).await;
    }
}

async fn routes_stay(host: &str) {
    for (path, name, value) in [("/listed", "x-other", "yes"), ("/", "x-inside", "yes")] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{name}: {value}\r\n\r\n");
        let over_http1 = responses(&raw(&request).await, &["GET"])[0].status;
        let over_http2 = at_over_http2(host, "GET", path, (name, value)).await.status;
        assert_eq!((over_http1, over_http2), (403, 403), "{host}{path}");
    }
    for wish in ["set x-inside=yes", "set :path=/listed", "set :path=/listed?x"] {
        for response in [first(host, "GET", "/", wish, "").await, over_http2(host, "GET", wish).await] {
            let seen = response.seen();
            assert_eq!((&seen["name"], &seen["path"]), (&json!("web"), &json!("/")), "{host} {wish}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_route_stays_the_one_whose_protection_was_passed_in_tables() {
    the_route_stays_the_one_whose_protection_was_passed(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_route_stays_the_one_whose_protection_was_passed_in_scopes() {
    the_route_stays_the_one_whose_protection_was_passed(Packing::Scoped).await;
}
