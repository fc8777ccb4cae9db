//! Emissary's own test client, its echo over gRPC behind Mappings, and its authorization server as an AuthService: protocols spoken by
//! libraries that are not ours.

use crate::bed::{Bed, secret, service, slice_of};
use kinds::Object;
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use testbed::{Client, KatServer, cases::object, certs::Ca, kat_client};

fn of(kind: &str, name: &str, spec: &Value) -> Object {
    object(&json!({ "apiVersion": "getambassador.io/v3alpha1", "kind": kind,
        "metadata": { "name": name, "namespace": "team-a" }, "spec": spec }))
}

fn listener(name: &str, port: u16, protocol: &str) -> Object {
    let binding = json!({ "namespace": { "from": "ALL" } });
    of("Listener", name, &json!({ "port": port, "protocol": protocol, "securityModel": "XFP", "hostBinding": binding }))
}

fn mapping(name: &str, spec: &Value) -> Object {
    let mut all = json!({ "hostname": "*", "service": "web" });
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    of("Mapping", name, &all)
}

/// What `kat-client` says of a call: the status of gRPC, and the backend of a reply.
fn call(result: &Value) -> (Option<&str>, Option<&str>) {
    (result["headers"]["Grpc-Status"][0].as_str(), result["text"]["backend"].as_str())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_of_emissary_is_served_over_every_protocol_that_it_speaks() {
    let echo = KatServer::echo().await.unwrap();
    let IpAddr::V4(address) = echo.address().ip() else { unreachable!("test addresses are IPv4") };
    let mut bed = Bed::with("emissary-kat", |settings| settings.emissary.address = settings.http.address).await;
    let ca = Ca::new("kat");
    let mut objects = bed.service("team-a", "web").await;
    let policy = json!({ "insecure": { "action": "Route" } });
    // Envoy's own cipher suites are all for TLS 1.2 or later.
    let of_old_clients =
        json!({ "min_tls_version": "v1.0", "cipher_suites": ["ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA"] });
    objects.extend([
        service("team-a", "echo"),
        slice_of("team-a", "echo", &[address], echo.address().port()),
        secret("team-a", "cert", &ca.leaf("a.example.com").dns("old.example.com").make()),
        listener("http", 9080, "HTTP"),
        listener("https", 9443, "HTTPS"),
        of("Module", "ambassador", &json!({ "config": { "enable_grpc_http11_bridge": true } })),
        of("Host", "any", &json!({ "hostname": "*", "tlsSecret": { "name": "cert" }, "requestPolicy": policy })),
        of(
            "Host",
            "old",
            &json!({ "hostname": "old.example.com", "tlsSecret": { "name": "cert" }, "tls": of_old_clients }),
        ),
        mapping("web", &json!({ "prefix": "/web/", "rewrite": "/seen/" })),
        mapping("socket", &json!({ "prefix": "/socket/", "allow_upgrade": ["websocket"] })),
        mapping("moved", &json!({ "prefix": "/moved/", "service": "other.example.com", "host_redirect": true })),
        mapping("echo", &json!({ "prefix": "/echo.EchoService/", "rewrite": "", "service": "echo", "grpc": true })),
    ]);
    bed.apply(objects).await;
    let at = bed.http.addr().ip();
    let (http, https) = (format!("http://{at}:9080"), format!("https://{at}:9443"));
    let method = format!("{http}/echo.EchoService/Echo");
    let over_tls_to = |host: &str, version: &str| {
        json!({ "url": format!("{https}/web/tls"), "headers": { "Host": host }, "sni": true, "ca_cert": ca.pem(),
            "minTLSv": version, "maxTLSv": version })
    };
    let over_tls = |version: &str| over_tls_to("a.example.com", version);
    let web_text = json!({ "content-type": "application/grpc-web-text", "accept": "application/grpc-web-text" });
    let results = kat_client::ask([
        json!({ "url": format!("{http}/web/plain?a=b"), "headers": { "Host": "a.example.com" } }),
        json!({ "url": format!("{http}/moved/"), "headers": { "Host": "a.example.com" } }),
        over_tls("v1.2"),
        over_tls("v1.3"),
        over_tls("v1.1"),
        over_tls_to("old.example.com", "v1.0"),
        over_tls_to("old.example.com", "v1.1"),
        json!({ "url": method, "grpc_type": "real", "headers": { "kat-req-echo-requested-status": "0" } }),
        json!({ "url": method, "grpc_type": "real", "headers": { "kat-req-echo-requested-status": "7" } }),
        json!({ "url": method, "grpc_type": "bridge", "headers": { "content-type": "application/grpc" } }),
        json!({ "url": method, "grpc_type": "web", "headers": web_text }),
        json!({ "url": format!("ws://{at}:9080/socket/"), "messages": ["one", "two"] }),
    ])
    .await
    .unwrap();
    let [plain, moved, tls12, tls13, tls11, old10, old11, called, denied, bridged, web, socket] =
        <[Value; 12]>::try_from(results).unwrap();

    assert_eq!((&plain["status"], &plain["json"]["path"]), (&json!(200), &json!("/seen/plain")), "{plain}");
    assert_eq!((&plain["json"]["query"], &plain["json"]["host"]), (&json!("a=b"), &json!("a.example.com")), "{plain}");
    let location = &moved["headers"]["Location"][0];
    assert_eq!((&moved["status"], location), (&json!(301), &json!("http://other.example.com/moved/")), "{moved}");
    for (answer, version) in [(tls12, 0x0303), (tls13, 0x0304), (old10, 0x0301), (old11, 0x0302)] {
        assert_eq!((&answer["status"], &answer["tls_version"]), (&json!(200), &json!(version)), "{answer}");
    }
    assert!(tls11["error"].as_str().is_some_and(|error| error.contains("protocol version")), "{tls11}");
    assert_eq!(call(&called), (Some("0"), Some("kat-server")), "{called}");
    assert_eq!(call(&denied), (Some("7"), None), "{denied}");
    assert_eq!(call(&bridged), (Some("0"), Some("kat-server")), "{bridged}");
    assert_eq!(call(&web), (Some("0"), Some("kat-server")), "{web}");
    assert_eq!((&socket["status"], &socket["messages"]), (&json!(101), &json!(["one", "two"])), "{socket}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_of_emissary_decides_as_an_auth_service() {
    let mut bed = Bed::with("emissary-kat-auth", |settings| settings.emissary.address = settings.http.address).await;
    let server = KatServer::start().await.unwrap();
    let IpAddr::V4(address) = server.address().ip() else { unreachable!("test addresses are IPv4") };
    let mut objects = bed.service("team-a", "web").await;
    let policy = json!({ "insecure": { "action": "Route" } });
    objects.extend([
        service("team-a", "kat"),
        slice_of("team-a", "kat", &[address], server.address().port()),
        listener("http", 9080, "HTTP"),
        of("Host", "any", &json!({ "hostname": "*", "requestPolicy": policy })),
        of("AuthService", "auth", &json!({ "auth_service": "kat", "proto": "grpc" })),
        mapping("guarded", &json!({ "prefix": "/guarded/", "auth_context_extensions": { "team": "shop" } })),
        mapping("open", &json!({ "prefix": "/open/", "bypass_auth": true })),
    ]);
    bed.apply(objects).await;
    let client = Client::new(SocketAddr::new(bed.http.addr().ip(), 9080)).host("a.example.com");
    let asking = |status: &str| client.clone().header("kat-req-extauth-requested-status", status);
    let allowed = asking("200").get("/guarded/").await.unwrap();
    assert_eq!(allowed.status, 200);
    let seen = allowed.echo();
    assert_eq!(seen.header("kat-resp-extauth-protocol-version"), Some("v3"));
    assert_eq!(seen.header("kat-resp-extauth-context-extensions"), Some(r#"{"team":"shop"}"#));
    for status in [401, 403, 503] {
        let denied = asking(&status.to_string()).header("kat-req-extauth-requested-location", "/login");
        let denied = denied.get("/guarded/").await.unwrap();
        assert_eq!((denied.status.as_u16(), denied.headers["location"].as_bytes()), (status, &b"/login"[..]));
        assert!(denied.try_echo().is_none(), "a backend was asked");
        let bypassed = asking(&status.to_string()).get("/open/").await.unwrap();
        assert_eq!(bypassed.status, 200, "the Mapping bypasses it");
    }
}
