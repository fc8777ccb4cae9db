//! `sesame echo` as a process: it answers, and it ends as a pod should.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use echo::Who;
use rustix::process::Signal;
use testbed::certs::Ca;
use testbed::{Backend, Client};

fn sesame() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_sesame"))
}

#[tokio::test]
async fn it_answers_on_every_port() {
    let ca = Ca::new("ca");
    let backend = Backend::named("a")
        .tls_for_clients(&ca.leaf("a.example.com").make(), &ca)
        .start_process(sesame())
        .await
        .unwrap();
    assert_eq!(backend.client().http2().get("/x").await.unwrap().echo().name, "a");
    let alice = ca.nameless_leaf("alice").make();
    let https = Client::new(backend.https()).host("a.example.com").trust(&ca);
    let seen = https.clone().identity(&alice).get("/").await.unwrap().echo();
    assert_eq!(seen.tls.unwrap().peer[0].subject, "CN=alice");
    assert!(https.get("/").await.unwrap_err().alert().is_some());
    let who: Who = serde_json::from_slice(&Client::new(backend.udp()).udp(echo::WHO).await.unwrap()).unwrap();
    assert_eq!(who.name, "a");
    let mut wire = Client::new(backend.tcp()).open().await.unwrap();
    wire.write("hello").await.unwrap();
    assert_eq!(wire.read_exact(5).await.unwrap(), b"hello");
}

#[tokio::test]
async fn sigterm_ends_it_when_requests_are_answered() {
    let backend = Backend::named("a").start_process(sesame()).await.unwrap();
    let connection = backend.client().http2().connect().await.unwrap();
    let slow =
        connection.get("/").header("x-echo-size", "20").header("x-echo-chunk", "1").header("x-echo-pause", "20ms");
    let slow = tokio::spawn(async { slow.await });
    // The first lets the slow one be sent; the second is sent, and so answered, after the server has taken the slow one.
    connection.get("/").await.unwrap();
    connection.get("/").await.unwrap();
    let process = backend.process().unwrap();
    process.signal(Signal::TERM).unwrap();
    assert_eq!(slow.await.unwrap().unwrap().body.len(), 20);
    let ended = testbed::within("the process to end", Duration::from_secs(5), process.exited()).await.unwrap().unwrap();
    assert!(ended.success(), "{ended}");
}

#[test]
fn help_tells_what_can_be_asked_for() {
    let help = Command::new(sesame()).args(["echo", "--help"]).output().unwrap();
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(help.status.success() && text.contains("--client-ca") && text.contains("x-echo-status"), "{text}");
}

#[test]
fn an_address_that_is_none_or_not_ours_is_named() {
    for (address, complaint) in
        [("nowhere", "not ADDRESS:PORT or PORT"), ("192.0.2.1:80", "cannot listen on 192.0.2.1:80")]
    {
        let failed = Command::new(sesame()).args(["echo", "--http", address]).output().unwrap();
        let text = String::from_utf8(failed.stderr).unwrap();
        assert!(!failed.status.success() && text.contains(complaint), "{text}");
    }
}
