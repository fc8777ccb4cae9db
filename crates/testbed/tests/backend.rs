//! Backends on addresses of their own, stopped, killed and started again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use testbed::Backend;

#[tokio::test]
async fn each_has_an_address_of_its_own() {
    let (a, b) = (Backend::start("a").await.unwrap(), Backend::start("b").await.unwrap());
    assert_ne!(a.ip(), b.ip());
    for backend in [&a, &b] {
        assert_eq!(backend.client().get("/").await.unwrap().echo().name, backend.name());
        assert_eq!(backend.running().unwrap().requests(), 1);
    }
}

#[tokio::test]
async fn it_comes_back_on_the_same_address() {
    let backend = Backend::start("a").await.unwrap();
    let client = backend.client();
    let stopped = backend.stop().await.unwrap();
    assert!(client.get("/").await.unwrap_err().is_refused());
    let killed = stopped.start().await.unwrap().kill().await.unwrap();
    assert!(client.get("/").await.unwrap_err().is_refused());
    let _backend = killed.start().await.unwrap();
    assert_eq!(client.get("/").await.unwrap().status, 200);
}

#[tokio::test]
async fn a_stop_waits_for_what_is_under_way() {
    let backend = Backend::start("a").await.unwrap();
    let connection = backend.client().connect().await.unwrap();
    connection.get("/").await.unwrap();
    let slow =
        connection.get("/slow").header("x-echo-size", "10").header("x-echo-chunk", "1").header("x-echo-pause", "10ms");
    let slow = tokio::spawn(async { slow.await });
    testbed::eventually("the request to arrive", std::time::Duration::from_secs(5), async || {
        (backend.running().unwrap().requests() == 2).then_some(()).ok_or("not yet")
    })
    .await
    .unwrap();
    backend.stop().await.unwrap();
    assert_eq!(slow.await.unwrap().unwrap().body.len(), 10);
}
