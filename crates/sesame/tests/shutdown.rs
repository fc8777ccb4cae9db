//! The end of an Envoy: it turns unready, goes on serving, and its end waits for clients to go.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kinds::{Kind, Object, kind};
use pipeline::{Pipeline, Settings};
use rustix::process::Signal;
use serde_json::{Value, json};
use testbed::cases::Proxy;
use testbed::envoy::Admin;
use testbed::{Backend, Client, Process, StateDir, eventually, within};
use tokio::sync::{Mutex, MutexGuard};

const TIMEOUT: Duration = Duration::from_secs(30);
const MANAGER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8090);
const INGRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Tests with an Envoy take turns: all of them listen on the same ports, and the kernel would give a client to either.
static TURN: Mutex<()> = Mutex::const_new(());

fn object(kind: Kind, value: &Value) -> Object {
    kinds::decode::decode_json(kind, value.to_string().as_bytes()).unwrap().object
}

/// Objects by which a port leads to the backend by TCP, and another by UDP.
fn streams(backend: &Backend) -> Vec<Object> {
    let service = |name: &str, to: SocketAddr| {
        let endpoints = json!({"projectsesame.io/endpoints": to.to_string()});
        json!({"metadata": {"namespace": "default", "name": name, "annotations": endpoints},
            "spec": {"ports": [{"port": 80, "protocol": name.to_uppercase()}]}})
    };
    let route = |listener: &str| {
        json!({"metadata": {"namespace": "default", "name": listener}, "spec": {
            "parentRefs": [{"name": "streams", "sectionName": listener}],
            "rules": [{"backendRefs": [{"name": listener, "port": 80}]}]}})
    };
    let class =
        json!({"metadata": {"name": "sesame"}, "spec": {"controllerName": "projectsesame.io/gateway-controller"}});
    let gateway = json!({"metadata": {"namespace": "default", "name": "streams"}, "spec": {"gatewayClassName": "sesame",
        "listeners": [{"name": "tcp", "protocol": "TCP", "port": 9300}, {"name": "udp", "protocol": "UDP", "port": 5300}]}});
    vec![
        object(kind::SERVICE, &service("tcp", backend.tcp())),
        object(kind::SERVICE, &service("udp", backend.udp())),
        object(kind::GATEWAY_CLASS, &class),
        object(kind::GATEWAY, &gateway),
        object(kind::TCP_ROUTE, &route("tcp")),
        object(kind::UDP_ROUTE, &route("udp")),
    ]
}

/// An Envoy that serves one host, and the socket of its admin interface.
async fn proxy(backend: &Backend) -> (Proxy, PathBuf) {
    proxy_with(backend, Vec::new()).await
}

/// The same with further objects.
async fn proxy_with(backend: &Backend, more: Vec<Object>) -> (Proxy, PathBuf) {
    let mut settings = Settings::default();
    settings.resolve.listed_endpoints = true;
    let mut pipeline = Pipeline::new(&settings);
    let endpoints = json!({"projectsesame.io/endpoints": format!("{}:80", backend.ip())});
    let service = json!({"metadata": {"namespace": "default", "name": "web", "annotations": endpoints},
        "spec": {"ports": [{"port": 80}]}});
    let to = json!({"service": {"name": "web", "port": {"number": 80}}});
    let ingress = json!({"metadata": {"namespace": "default", "name": "web"},
        "spec": {"rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": to}]}}]}});
    let own = [object(kind::SERVICE, &service), object(kind::INGRESS, &ingress)];
    for object in own.into_iter().chain(more) {
        pipeline.put(&object.key(), Some(object));
    }
    let mut proxy = Proxy::start("shutdown").await.unwrap();
    proxy.publish(pipeline.settle().xds).await.unwrap();
    let Admin::Unix(socket) = proxy.envoy().admin().clone() else { panic!("the admin interface is a socket") };
    (proxy, socket)
}

/// An Envoy that serves one host, a folder, and what commands are told about both; whoever has it has its turn.
struct Bed {
    proxy: Proxy,
    state: StateDir,
    admin: String,
    ready_file: String,
    _backend: Backend,
    _turn: MutexGuard<'static, ()>,
}

impl Bed {
    async fn start() -> Bed {
        let turn = TURN.lock().await;
        let backend = Backend::start("web").await.unwrap();
        let (proxy, socket) = proxy(&backend).await;
        let state = StateDir::new("shutdown").unwrap();
        let admin = format!("--admin-address={}", socket.display());
        let ready_file = format!("--ready-file={}", state.path().join("ok").display());
        Bed { proxy, state, admin, ready_file, _backend: backend, _turn: turn }
    }
}

fn sesame(state: &StateDir, words: &[&str]) -> Process {
    let command = testbed::Command::new(PathBuf::from(env!("CARGO_BIN_EXE_sesame"))).name(words[0]).arg("envoy");
    words.iter().fold(command, |command, word| command.arg(word)).start_in(state).unwrap()
}

async fn unready(proxy: &Proxy) {
    let unready = async || match proxy.envoy().admin().get("/ready").await {
        Ok(_) => Err("ready"),
        Err(_) => Ok(()),
    };
    eventually("Envoy to be unready", TIMEOUT, unready).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envoy_ends_when_its_clients_are_gone() {
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let (proxy, socket) = proxy(&backend).await;
    let state = StateDir::new("shutdown").unwrap();
    let file = state.path().join("ok");
    // Left over from an earlier life of the container.
    std::fs::write(&file, "").unwrap();
    let ready_file = format!("--ready-file={}", file.display());
    let admin = format!("--admin-address={}", socket.display());
    let manager = sesame(&state, &["shutdown-manager", &admin, &ready_file]);
    manager.expect_http(MANAGER, "/healthz", TIMEOUT).await.unwrap();
    manager.expect_http((Ipv6Addr::LOCALHOST, MANAGER.port()).into(), "/healthz", TIMEOUT).await.unwrap();
    assert!(!file.exists());

    let client = Client::new(INGRESS).connect().await.unwrap();
    assert_eq!(client.get("/").await.unwrap().status, 200);
    let http2 = Client::new(INGRESS).http2().connect().await.unwrap();
    assert_eq!(http2.get("/").await.unwrap().status, 200);
    // A probe that keeps its connection is nobody to wait for.
    let probe = Client::new((Ipv4Addr::LOCALHOST, 8002).into()).connect().await.unwrap();
    assert_eq!(probe.get("/ready").await.unwrap().status, 200);
    let hook = tokio::spawn(async { Client::new(MANAGER).timeout(TIMEOUT).get("/shutdown").await });
    // The output of a hook is seen by nobody: progress is in the log of the manager.
    manager.expect_line("connections still open", TIMEOUT).await.unwrap();
    let shutdown = sesame(&state, &["shutdown", &admin, &ready_file, "--check-interval=100ms"]);

    unready(&proxy).await;
    assert!(!hook.is_finished() && !file.exists(), "a client is there");
    assert_eq!(Client::new(INGRESS).get("/").await.unwrap().status, 200, "who comes all the same is served");

    let answer = client.get("/").await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.header("connection")), (200, Some("close")), "served, and asked to go");
    within("the client to be asked to go", TIMEOUT, client.closed()).await.unwrap();
    assert!(!hook.is_finished() && http2.is_open(), "a client is there");
    assert_eq!(http2.get("/").await.unwrap().status, 200, "the request that GOAWAY follows is served");
    within("the client of HTTP/2 to be asked to go", TIMEOUT, http2.closed()).await.unwrap();
    let ended = within("the end of the drain", TIMEOUT, shutdown.exited()).await.unwrap().unwrap();
    assert!(ended.success(), "{}", shutdown.log().text());
    let answer = within("the hook", TIMEOUT, hook).await.unwrap().unwrap().unwrap();
    assert_eq!(answer.status, 200);
    manager.expect_line("Envoy may exit", TIMEOUT).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_tcp_and_sessions_of_udp_are_waited_for() {
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let (_proxy, socket) = proxy_with(&backend, streams(&backend)).await;
    let state = StateDir::new("shutdown").unwrap();
    let admin = format!("--admin-address={}", socket.display());
    let ready_file = format!("--ready-file={}", state.path().join("ok").display());
    let drain = async || {
        let shutdown = sesame(&state, &["shutdown", &admin, &ready_file, "--check-interval=100ms", "--timeout=2s"]);
        let ended = within("the end of the drain", TIMEOUT, shutdown.exited()).await.unwrap().unwrap();
        assert!(ended.success(), "{}", shutdown.log().text());
        shutdown.log().text()
    };
    // Envoy is not root: ports of listeners are moved up.
    let at = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port + 8000));
    let mut connection = Client::new(at(9300)).open().await.unwrap();
    connection.write("hello").await.unwrap();
    connection.read_exact(5).await.unwrap();
    let log = drain().await;
    assert!(log.contains("1 connections did not close"), "{log}");
    assert!(!Client::new(at(5300)).udp("hello").await.unwrap().is_empty());
    drop(connection);
    let log = drain().await;
    assert!(log.contains("0 connections and 1 UDP sessions did not close"), "{log}");
}

/// The hook that drains also runs when the container is restarted alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_manager_ends_the_drain_of_an_envoy_that_stays() {
    let bed = Bed::start().await;
    let Bed { proxy, state, admin, ready_file, .. } = &bed;
    let client = Client::new(INGRESS).connect().await.unwrap();
    let shutdown = sesame(state, &["shutdown", admin, ready_file, "--check-interval=1h", "--timeout=2h"]);
    unready(proxy).await;
    shutdown.kill().await.unwrap();

    let manager = sesame(state, &["shutdown-manager", admin, ready_file]);
    proxy
        .envoy()
        .process()
        .expect_ok("Envoy to be ready", TIMEOUT, async || proxy.envoy().admin().get("/ready").await)
        .await
        .unwrap();
    manager.expect_line("made it ready again", TIMEOUT).await.unwrap();
    let answer = client.get("/").await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.header("connection")), (200, None), "nobody is asked to go any more");
}

/// Where the hook that drains is missing, or has failed, the hook of Envoy's container still ends, and not before time.
#[tokio::test(flavor = "multi_thread")]
async fn a_manager_that_is_to_end_drains_the_envoy_that_waits_for_it() {
    let bed = Bed::start().await;
    let Bed { proxy, state, admin, ready_file, .. } = &bed;
    let manager = sesame(state, &["shutdown-manager", admin, ready_file]);
    manager.expect_http(MANAGER, "/healthz", TIMEOUT).await.unwrap();
    let client = Client::new(INGRESS).connect().await.unwrap();
    assert_eq!(client.get("/").await.unwrap().status, 200);
    let hook = tokio::spawn(async { Client::new(MANAGER).timeout(TIMEOUT).get("/shutdown").await });
    manager.expect_line("Envoy is shutting down", TIMEOUT).await.unwrap();
    manager.signal(Signal::TERM).unwrap();
    unready(proxy).await;
    assert!(!hook.is_finished(), "a client is there");
    drop(client);
    let answer = within("the hook", TIMEOUT, hook).await.unwrap().unwrap().unwrap();
    assert_eq!(answer.status, 200);
    let ended = within("the end of the manager", TIMEOUT, manager.exited()).await.unwrap().unwrap();
    assert!(ended.success(), "{}", manager.log().text());
}

/// Nothing but the delays is waited for: the first count is not an interval away, and an Envoy without connections is gone two
/// seconds after them. A busy machine has three tries.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_envoy_is_gone_at_once() {
    const DELAYS: Duration = Duration::from_millis(200);
    let mut fastest = TIMEOUT;
    for _ in 0..3 {
        let bed = Bed::start().await;
        let Bed { proxy, state, admin, ready_file, .. } = &bed;
        let delays = ["--drain-delay=100ms", "--check-delay=100ms", "--check-interval=1h", "--timeout=2h"];
        let words = ["shutdown", admin, ready_file].into_iter().chain(delays).collect::<Vec<_>>();
        let begun = Instant::now();
        let shutdown = sesame(state, &words);
        let ended = within("the end of the drain", TIMEOUT, shutdown.exited()).await.unwrap().unwrap();
        assert!(ended.success() && state.path().join("ok").exists(), "{}", shutdown.log().text());
        proxy.envoy().stop().await.unwrap();
        fastest = fastest.min(begun.elapsed());
        if fastest <= DELAYS + Duration::from_secs(2) {
            return;
        }
    }
    panic!("an idle Envoy was gone after {fastest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_stay_are_not_waited_for_for_ever() {
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let (_proxy, socket) = proxy(&backend).await;
    let state = StateDir::new("shutdown").unwrap();
    let file = state.path().join("ok");
    let client = Client::new(INGRESS).connect().await.unwrap();
    assert_eq!(client.get("/").await.unwrap().status, 200);
    let (admin, ready_file) =
        (format!("--admin-address={}", socket.display()), format!("--ready-file={}", file.display()));
    let shutdown = sesame(&state, &["shutdown", &admin, &ready_file, "--check-interval=100ms", "--timeout=1s"]);
    let ended = within("the end of the drain", TIMEOUT, shutdown.exited()).await.unwrap().unwrap();
    assert!(ended.success() && file.exists(), "{}", shutdown.log().text());
    assert!(shutdown.log().text().contains("1 connections did not close within 1s"), "{}", shutdown.log().text());
    assert!(client.is_open());
}

/// As many clients as the operator says may be left are not waited for, and one more is.
#[tokio::test(flavor = "multi_thread")]
async fn as_many_connections_as_the_flag_says_may_be_left() {
    let bed = Bed::start().await;
    let Bed { state, admin, ready_file, .. } = &bed;
    let stays = Client::new(INGRESS).connect().await.unwrap();
    let goes = Client::new(INGRESS).connect().await.unwrap();
    for client in [&stays, &goes] {
        assert_eq!(client.get("/").await.unwrap().status, 200);
    }
    let flags = ["--min-open-connections=1", "--check-interval=100ms", "--timeout=2h"];
    let words = ["shutdown", admin, ready_file].into_iter().chain(flags).collect::<Vec<_>>();
    let shutdown = sesame(state, &words);
    shutdown.expect_line("2 connections still open", TIMEOUT).await.unwrap();
    assert!(!state.path().join("ok").exists(), "two are there");
    drop(goes);
    let ended = within("the end of the drain", TIMEOUT, shutdown.exited()).await.unwrap().unwrap();
    assert!(ended.success() && state.path().join("ok").exists(), "{}", shutdown.log().text());
    assert!(stays.is_open());
}

/// An Envoy that is gone already must not keep its pod.
#[tokio::test(flavor = "multi_thread")]
async fn an_envoy_that_does_not_answer_may_end() {
    let state = StateDir::new("shutdown").unwrap();
    let file = state.path().join("ok");
    let ready_file = format!("--ready-file={}", file.display());
    let shutdown = sesame(&state, &["shutdown", "--admin-address=/nowhere/admin.sock", &ready_file]);
    let ended = within("the end of the drain", TIMEOUT, shutdown.exited()).await.unwrap().unwrap();
    assert!(!ended.success() && file.exists(), "{}", shutdown.log().text());
}
