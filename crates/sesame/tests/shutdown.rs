//! The end of an Envoy: it turns unready, goes on serving, and its end waits for clients to go.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use kinds::{Kind, Object, kind};
use pipeline::{Pipeline, Settings};
use serde_json::{Value, json};
use testbed::cases::Proxy;
use testbed::envoy::Admin;
use testbed::{Backend, Client, Process, StateDir, eventually, within};
use tokio::sync::Mutex;

const PATIENCE: Duration = Duration::from_secs(30);
const MANAGER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8090);
const INGRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Tests with an Envoy take turns: all of them listen on the same ports, and the kernel would give a client to either.
static TURN: Mutex<()> = Mutex::const_new(());

fn object(kind: Kind, value: &Value) -> Object {
    kinds::decode::decode_json(kind, value.to_string().as_bytes()).unwrap().object
}

/// An Envoy that serves one host, and the socket of its admin interface.
async fn proxy(backend: &Backend) -> (Proxy, PathBuf) {
    let mut settings = Settings::default();
    settings.resolve.listed_endpoints = true;
    let mut pipeline = Pipeline::new(&settings);
    let endpoints = json!({"projectsesame.io/endpoints": format!("{}:80", backend.ip())});
    let service = json!({"metadata": {"namespace": "default", "name": "web", "annotations": endpoints},
        "spec": {"ports": [{"port": 80}]}});
    let to = json!({"service": {"name": "web", "port": {"number": 80}}});
    let ingress = json!({"metadata": {"namespace": "default", "name": "web"},
        "spec": {"rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": to}]}}]}});
    for object in [object(kind::SERVICE, &service), object(kind::INGRESS, &ingress)] {
        pipeline.put(&object.key(), Some(object));
    }
    let mut proxy = Proxy::start("shutdown").await.unwrap();
    proxy.publish(pipeline.settle().xds).await.unwrap();
    let Admin::Unix(socket) = proxy.envoy().admin().clone() else { panic!("the admin interface is a socket") };
    (proxy, socket)
}

fn sesame(state: &StateDir, words: &[&str]) -> Process {
    let command = testbed::Command::new(PathBuf::from(env!("CARGO_BIN_EXE_sesame"))).name(words[0]).arg("envoy");
    words.iter().fold(command, |command, word| command.arg(word)).start_in(state).unwrap()
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
    let manager = sesame(&state, &["shutdown-manager", &ready_file]);
    manager.expect_http(MANAGER, "/healthz", PATIENCE).await.unwrap();
    manager.expect_http((Ipv6Addr::LOCALHOST, MANAGER.port()).into(), "/healthz", PATIENCE).await.unwrap();
    assert!(!file.exists());

    let client = Client::new(INGRESS).connect().await.unwrap();
    assert_eq!(client.get("/").await.unwrap().status, 200);
    // A probe that keeps its connection is nobody to wait for.
    let probe = Client::new((Ipv4Addr::LOCALHOST, 8002).into()).connect().await.unwrap();
    assert_eq!(probe.get("/ready").await.unwrap().status, 200);
    let hook = tokio::spawn(async { Client::new(MANAGER).timeout(PATIENCE).get("/shutdown").await });
    let admin = format!("--admin-address={}", socket.display());
    let shutdown = sesame(&state, &["shutdown", &admin, &ready_file, "--check-interval=100ms"]);

    let unready = async || match proxy.envoy().admin().get("/ready").await {
        Ok(_) => Err("ready"),
        Err(_) => Ok(()),
    };
    eventually("Envoy to be unready", PATIENCE, unready).await.unwrap();
    assert!(!hook.is_finished() && !file.exists(), "a client is there");
    assert_eq!(Client::new(INGRESS).get("/").await.unwrap().status, 200, "who comes all the same is served");

    assert_eq!(client.get("/").await.unwrap().status, 200, "who is there is served, and asked to go");
    within("the client to be asked to go", PATIENCE, client.closed()).await.unwrap();
    let ended = within("the end of the drain", PATIENCE, shutdown.exited()).await.unwrap().unwrap();
    assert!(ended.success(), "{}", shutdown.log().text());
    let answer = within("the hook", PATIENCE, hook).await.unwrap().unwrap().unwrap();
    assert_eq!(answer.status, 200);
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
    let ended = within("the end of the drain", PATIENCE, shutdown.exited()).await.unwrap().unwrap();
    assert!(ended.success() && file.exists(), "{}", shutdown.log().text());
    assert!(shutdown.log().text().contains("did not go"), "{}", shutdown.log().text());
    assert!(client.is_open());
}

/// An Envoy that is gone already must not keep its pod.
#[tokio::test(flavor = "multi_thread")]
async fn an_envoy_that_does_not_answer_may_end() {
    let state = StateDir::new("shutdown").unwrap();
    let file = state.path().join("ok");
    let ready_file = format!("--ready-file={}", file.display());
    let shutdown = sesame(&state, &["shutdown", "--admin-address=/nowhere/admin.sock", &ready_file]);
    let ended = within("the end of the drain", PATIENCE, shutdown.exited()).await.unwrap().unwrap();
    assert!(!ended.success() && file.exists(), "{}", shutdown.log().text());
}
