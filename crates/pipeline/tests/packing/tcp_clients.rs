//! Which clients may reach a backend of a `tcpproxy`: decided before the backend is connected.
//!
//! The backend speaks first, as mail servers and databases do. A client that is refused says nothing more than its handshake
//! needs, and must not hear the greeting; the backend must not even see a connection. A wider wildcard and a fallback
//! certificate stand beside every host, and must not take those who were refused.

use super::requests::TURN;
use super::world::{World, object, secret, settings};
use kinds::{Object, kind};
use model::ObjectRef;
use pipeline::settings::{Certificates, Packing};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use testbed::{Client, Net, certs::Ca, client::Wire, envoy::Config};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

const GREETING: &[u8] = b"220 secret banner\r\n";

/// A backend that greets every client and then sends back what it is sent, in the clear on port 80, under TLS on port 443.
struct Greeter {
    at: Ipv4Addr,
    connections: Arc<AtomicUsize>,
}

impl Greeter {
    async fn start(ca: &Ca) -> Greeter {
        let (at, connections) = (Net::here().unwrap().address(), Arc::new(AtomicUsize::new(0)));
        let tls = TlsAcceptor::from(ca.leaf("backend").make().server_config());
        for port in [80, 443] {
            let listener = TcpListener::bind((at, port)).await.unwrap();
            let (seen, tls) = (connections.clone(), tls.clone());
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    seen.fetch_add(1, Ordering::SeqCst);
                    let tls = tls.clone();
                    tokio::spawn(async move {
                        match port {
                            80 => greet(stream).await,
                            _ => greet(tls.accept(stream).await?).await,
                        }
                    });
                }
            });
        }
        Greeter { at, connections }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    fn services(&self) -> [Object; 2] {
        [("mail", 80), ("mail-tls", 443)].map(|(name, port)| {
            let annotations = json!({"projectsesame.io/endpoints": format!("{}:{port}", self.at)});
            let meta = json!({"namespace": "default", "name": name, "annotations": annotations});
            object(kind::SERVICE, &json!({"metadata": meta, "spec": {"ports": [{"port": port}]}}))
        })
    }
}

async fn greet(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
    stream.write_all(GREETING).await?;
    stream.flush().await?;
    let mut byte = [0];
    while stream.read(&mut byte).await? > 0 {
        stream.write_all(&byte).await?;
        stream.flush().await?;
    }
    Ok(())
}

/// Who decrypts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decrypts {
    Envoy,
    Backend,
}

/// A root whose connections are passed on; `host` is what stands beside the fqdn.
fn root(name: &str, fqdn: &str, decrypts: Decrypts, mut host: Value) -> Object {
    host["fqdn"] = fqdn.into();
    let (tls, service) = match decrypts {
        Decrypts::Envoy => (json!({"secretName": "cert"}), json!({"name": "mail", "port": 80})),
        Decrypts::Backend => (json!({"passthrough": true}), json!({"name": "mail-tls", "port": 443})),
    };
    host["tls"] = tls;
    object(
        kind::CONTOUR_HTTP_PROXY,
        &json!({
            "metadata": {"namespace": "default", "name": name},
            "spec": {"virtualhost": host, "tcpproxy": {"services": [service]}},
        }),
    )
}

/// A root that answers requests itself; `host` is what stands beside the fqdn.
fn answering(name: &str, mut host: Value) -> Object {
    host["fqdn"] = format!("{name}.example.com").into();
    let routes = json!([{"directResponsePolicy": {"statusCode": 200}}]);
    object(
        kind::CONTOUR_HTTP_PROXY,
        &json!({
            "metadata": {"namespace": "default", "name": name},
            "spec": {"virtualhost": host, "routes": routes},
        }),
    )
}

/// One that asks for the fallback certificate, so that there is a chain for every name.
fn fallback() -> Object {
    answering("fallback", json!({"tls": {"secretName": "cert", "enableFallbackCertificate": true}}))
}

fn allow(list: &Value) -> Value {
    json!({"ipAllowPolicy": list})
}

fn deny(list: &Value) -> Value {
    json!({"ipDenyPolicy": list})
}

fn peer(cidr: &str) -> Value {
    json!({"source": "Peer", "cidr": cidr})
}

fn remote(cidr: &str) -> Value {
    json!({"source": "Remote", "cidr": cidr})
}

fn client(from: &str, name: &str) -> Client {
    let from: Ipv4Addr = from.parse().unwrap();
    Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8443))).from(from).https().sni(name)
}

/// What a client hears that says nothing; the connection, too, where it stands.
async fn heard(client: &Client) -> Option<Wire> {
    let mut wire = client.open().await.ok()?;
    let greeting = wire.read_exact(GREETING.len()).await.ok()?;
    assert_eq!(greeting, GREETING);
    Some(wire)
}

/// Asks, and compares what is heard and whether the backend was connected.
async fn check(greeter: &Greeter, client: &Client, expected: bool, how: &str) {
    let before = greeter.connections();
    assert_eq!(heard(client).await.is_some(), expected, "{how}");
    assert_eq!(greeter.connections() - before, usize::from(expected), "connections of the backend, {how}");
}

async fn world(packing: Packing, certificates: Certificates, proxy_protocol: bool) -> (World, Greeter) {
    let ca = Ca::new("tcp clients");
    let greeter = Greeter::start(&ca).await;
    let mut settings = pipeline::Settings { certificates, ..settings(packing) };
    settings.http_proxy.fallback_certificate = Some(ObjectRef::new(kinds::kind::SECRET, "default", "fallback"));
    settings.https_settings.proxy_protocol = proxy_protocol;
    settings.http_settings.proxy_protocol = proxy_protocol;
    let certificates = [secret(&ca, "cert", "*.example.com"), secret(&ca, "fallback", "fallback.example.com")];
    let objects = greeter.services().into_iter().chain(certificates).chain([fallback()]);
    let world = World::with(&settings, Config::new().name("tcp-clients"), objects).await;
    (world, greeter)
}

const ONE: &str = "127.0.0.1";
const TWO: &str = "127.0.0.2";

/// Lists, and whether they let in [`ONE`] and [`TWO`].
fn lists() -> Vec<(&'static str, Value, bool, bool)> {
    vec![
        ("none", json!({}), true, true),
        ("deny-peer", deny(&json!([peer("127.0.0.1")])), false, true),
        ("deny-remote", deny(&json!([remote("127.0.0.1/32"), remote("10.0.0.0/8")])), false, true),
        ("deny-either", deny(&json!([peer("127.0.0.1"), remote("127.0.0.2")])), false, false),
        ("deny-all", deny(&json!([peer("0.0.0.0/0")])), false, false),
        ("deny-others", deny(&json!([peer("10.0.0.0/8"), remote("::/0")])), true, true),
        ("deny-mapped", deny(&json!([peer("::ffff:127.0.0.1")])), false, true),
        ("allow-peer", allow(&json!([peer("127.0.0.1")])), true, false),
        ("allow-remote", allow(&json!([remote("127.0.0.0/31")])), true, false),
        ("allow-either", allow(&json!([peer("127.0.0.1"), remote("127.0.0.2")])), true, true),
        ("allow-all", allow(&json!([peer("0.0.0.0/0")])), true, true),
        ("allow-others", allow(&json!([peer("10.0.0.0/8"), remote("::/0")])), false, false),
        ("unread", deny(&json!([peer("10.0.0.0/8"), peer("nonsense")])), false, false),
        ("both", json!({"ipAllowPolicy": [peer("127.0.0.1")], "ipDenyPolicy": [peer("10.0.0.0/8")]}), false, false),
    ]
}

async fn refused_before_a_backend_is_connected(packing: Packing, certificates: Certificates) {
    let _turn = TURN.lock().await;
    let (mut world, greeter) = world(packing, certificates, false).await;
    for decrypts in [Decrypts::Envoy, Decrypts::Backend] {
        // The wider wildcard is open to everybody.
        world.put([root("wide", "*.example.com", decrypts, json!({}))]);
        for (name, list, ..) in lists() {
            world.put([
                root(name, &format!("{name}.example.com"), decrypts, list.clone()),
                root(&format!("{name}-wild"), &format!("*.{name}.example.com"), decrypts, list),
            ]);
        }
        world.publish().await;
        for (name, _, one, two) in lists() {
            for host in [format!("{name}.example.com"), format!("x.{name}.example.com")] {
                for (from, expected) in [(ONE, one), (TWO, two)] {
                    let how = format!("{packing:?} {certificates:?} {decrypts:?} {host} from {from}");
                    check(&greeter, &client(from, &host), expected, &how).await;
                }
            }
        }
        check(&greeter, &client(ONE, "other.example.com"), true, "the wider wildcard").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_before_a_backend_is_connected_in_tables() {
    refused_before_a_backend_is_connected(Packing::Plain, Certificates::PerChain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_before_a_backend_is_connected_in_scopes() {
    refused_before_a_backend_is_connected(Packing::Scoped, Certificates::PerChain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_before_a_backend_is_connected_beside_certificates_on_demand() {
    refused_before_a_backend_is_connected(Packing::Scoped, Certificates::OnDemand).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_before_a_backend_is_connected_as_certificates_are_by_default() {
    refused_before_a_backend_is_connected(Packing::Scoped, Certificates::Auto).await;
}

/// Behind a load balancer the peer is the load balancer, and the remote address is what it tells.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_that_a_load_balancer_tells_is_the_remote_one() {
    let _turn = TURN.lock().await;
    let (mut world, greeter) = world(Packing::Scoped, Certificates::PerChain, true).await;
    let inside = "10.0.0.0/8";
    let hosts = [
        ("deny-remote", deny(&json!([remote(inside)]))),
        ("deny-peer", deny(&json!([peer(inside)]))),
        ("allow-remote", allow(&json!([remote(inside)]))),
        ("allow-peer", allow(&json!([peer("127.0.0.1")]))),
    ];
    for (name, list) in &hosts {
        world.put([root(name, &format!("{name}.example.com"), Decrypts::Envoy, list.clone())]);
    }
    world.put([
        answering("web-deny", deny(&json!([remote(inside)]))),
        answering("web-allow", allow(&json!([remote(inside)]))),
    ]);
    world.publish().await;
    // An IPv4 client may be told as an address of IPv6: it is the same client.
    for (line, [deny_remote, deny_peer, allow_remote, allow_peer]) in [
        ("PROXY TCP4 10.1.2.3 192.0.2.1 40000 443\r\n", [false, true, true, true]),
        ("PROXY TCP4 11.1.2.3 192.0.2.1 40000 443\r\n", [true, true, false, true]),
        ("PROXY TCP6 ::ffff:10.1.2.3 2001:db8::1 40000 443\r\n", [false, true, true, true]),
        ("PROXY TCP6 2001:db8::2 2001:db8::1 40000 443\r\n", [true, true, false, true]),
    ] {
        for ((name, _), expected) in hosts.iter().zip([deny_remote, deny_peer, allow_remote, allow_peer]) {
            let client = client(ONE, &format!("{name}.example.com")).preamble(line);
            check(&greeter, &client, expected, &format!("{name} {line}")).await;
        }
        // The same of requests.
        for (name, status) in
            [("web-deny", if deny_remote { 200 } else { 403 }), ("web-allow", if allow_remote { 200 } else { 403 })]
        {
            let http = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))).host(format!("{name}.example.com"));
            assert_eq!(http.preamble(line).get("/").await.unwrap().status, status, "{name} {line}");
        }
    }
}

/// A list that changes holds for whoever comes from then on; connections that stand go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_changes_ends_no_connection() {
    let _turn = TURN.lock().await;
    let (mut world, greeter) = world(Packing::Scoped, Certificates::PerChain, false).await;
    let host = "edited.example.com";
    world.put([root("edited", host, Decrypts::Envoy, json!({}))]);
    world.publish().await;
    let mut standing = heard(&client(ONE, host)).await.expect("everybody may connect");
    world.put([root("edited", host, Decrypts::Envoy, deny(&json!([peer("127.0.0.1")])))]);
    world.publish().await;
    check(&greeter, &client(ONE, host), false, "after the list came").await;
    check(&greeter, &client(TWO, host), true, "who is not in the list").await;
    standing.write(b"x").await.unwrap();
    assert_eq!(standing.read_exact(1).await.unwrap(), b"x");
    world.put([root("edited", host, Decrypts::Envoy, json!({}))]);
    world.publish().await;
    check(&greeter, &client(ONE, host), true, "after the list went").await;
}
