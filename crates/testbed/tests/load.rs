//! A load loses nothing against a healthy backend, and reports whatever a sick one does to it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use testbed::{Backend, Load};

#[tokio::test]
async fn nothing_is_lost_and_connections_are_kept() {
    let backend = Backend::start("a").await.unwrap();
    for client in [backend.client(), backend.client().http2()] {
        let load = Load::of(client.get("/")).per_second(500).start();
        load.answered(200).await;
        let report = load.stop().await;
        report.assert_nothing_lost();
        assert!(report.sent >= 200 && report.connections <= 50, "{report}");
        assert!(report.p50 <= report.p99 && report.p99 <= report.max && !report.p50.is_zero(), "{report}");
    }
}

#[tokio::test]
async fn each_request_may_differ_and_each_answer_is_judged() {
    let backend = Backend::start("a").await.unwrap();
    let every_fourth = |n: u64, request: testbed::client::Request| match n % 4 {
        0 => request.header("x-echo-status", "503"),
        _ => request,
    };
    let load = Load::of(backend.client().get("/")).per_second(1000).vary(every_fourth).start();
    load.answered(100).await;
    let report = load.stop().await;
    let bad = report.sent.div_ceil(4);
    assert_eq!(report.failed.len() as u64, bad, "{report}");
    assert!(report.failed.iter().all(|failed| failed.status.is_some_and(|s| s == 503)), "{report}");

    let picky = Load::of(backend.client().get("/")).per_second(1000).expect(|answer| match answer.backend() {
        Some("b") => Ok(()),
        other => Err(format!("answered by {other:?}")),
    });
    let load = picky.start();
    load.answered(10).await;
    let report = load.stop().await;
    assert_eq!(report.failed.len() as u64, report.sent);
    assert_eq!(report.failed[0].what, "answered by Some(\"a\")");
}

#[tokio::test]
async fn resets_are_counted_one_by_one() {
    let backend = Backend::start("a").await.unwrap();
    let reset = |n: u64, request: testbed::client::Request| match n % 10 {
        3 => request.header("x-echo-reset", "before"),
        7 => request.header("x-echo-reset", "body"),
        _ => request,
    };
    for client in [backend.client(), backend.client().http2()] {
        let load = Load::of(client.get("/")).per_second(1000).vary(reset).start();
        load.answered(100).await;
        let report = load.stop().await;
        let expected = (0..report.sent).filter(|n| matches!(n % 10, 3 | 7)).count();
        assert_eq!(report.failed.len(), expected, "{report}");
        let cut: Vec<_> = report.failed.iter().filter(|failed| failed.status.is_some()).collect();
        assert!(!cut.is_empty() && cut.iter().all(|failed| failed.what.contains("broke off")), "{report}");
    }
}

#[tokio::test]
async fn an_outage_is_seen_with_its_time_and_ends() {
    let backend = Backend::start("a").await.unwrap();
    for client in [backend.client(), backend.client().http2()] {
        let backend = Backend::named("b").start().await.unwrap();
        let load = Load::of(client.to(backend.http()).get("/")).per_second(500).start();
        load.answered(50).await;
        assert_eq!(load.failed(), 0);
        let again = backend.kill().await.unwrap();
        load.answered(50).await;
        let lost = load.failed();
        assert!(lost >= 49, "{lost}");
        let _backend = again.start().await.unwrap();
        // What was under way when the backend came back may still fail.
        load.answered(50).await;
        let lost = load.failed();
        load.answered(50).await;
        assert_eq!(load.failed(), lost);
        let report = load.stop().await;
        assert!(report.failed.iter().all(|failed| failed.status.is_none()), "{report}");
        assert!(report.failed[0].at >= Duration::from_millis(50), "{report}");
    }
}

/// In HTTP/2 only: an HTTP/1.1 server cannot close an idle connection without racing with the next request on it.
#[tokio::test]
async fn a_graceful_stop_loses_nothing_that_was_sent() {
    let backend = Backend::start("a").await.unwrap();
    let slow = backend.client().http2().get("/").header("x-echo-delay", "20ms");
    let load = Load::of(slow).per_second(500).start();
    load.answered(50).await;
    backend.stop().await.unwrap();
    load.answered(1).await;
    let report = load.stop().await;
    assert!(report.failed.iter().all(|failed| failed.what.contains("cannot connect")), "{report}");
}

#[tokio::test]
async fn what_cannot_be_sent_yet_waits_and_the_wait_counts() {
    let backend = Backend::start("a").await.unwrap();
    let slow = backend.client().get("/").header("x-echo-delay", "50ms");
    let load = Load::of(slow).per_second(1000).in_flight(1).start();
    load.answered(5).await;
    let report = load.stop().await;
    report.assert_nothing_lost();
    // The fifth was due at 4 ms and had to wait for four others.
    assert!(report.max >= Duration::from_millis(200), "{report}");
}
