use std::time::Duration;

use testbed::Backend;
use testbed::client::Failure;

#[tokio::test]
async fn status_headers_and_delay() {
    let backend = Backend::start("a").await.unwrap();
    for client in [backend.client(), backend.client().http2()] {
        let request = client.get("/").header("x-echo-status", "503").header("x-echo-delay", "20ms");
        let answer = request
            .header("x-echo-header", "set-cookie: a=1")
            .header("x-echo-header", "set-cookie: b=2")
            .await
            .unwrap();
        assert_eq!(answer.status, 503);
        assert_eq!(answer.header_values("set-cookie"), ["a=1", "b=2"]);
        assert!(answer.timings.headers >= Duration::from_millis(20));
        assert_eq!(answer.echo().header("x-echo-status"), Some("503"));
    }
}

#[tokio::test]
async fn a_wish_that_is_none_is_refused_with_the_reason() {
    let backend = Backend::start("a").await.unwrap();
    let answer = backend.client().get("/").header("x-echo-status", "9").await.unwrap();
    assert_eq!(answer.status, 400);
    assert_eq!(answer.text(), "x-echo-status: \"9\" is not a status from 200 to 599\n");
}

#[tokio::test]
async fn bodies_of_any_size_with_and_without_a_length() {
    let backend = Backend::start("a").await.unwrap();
    for client in [backend.client(), backend.client().http2()] {
        let answer = client.get("/").header("x-echo-size", "1000000").await.unwrap();
        assert_eq!((answer.body.len(), answer.header("content-length")), (1_000_000, Some("1000000")));
        let pieces =
            client.get("/").header("x-echo-size", "4").header("x-echo-chunk", "1").header("x-echo-pause", "5ms");
        let answer = pieces.await.unwrap();
        assert_eq!((answer.body.len(), answer.header("content-length")), (4, None));
        assert!(answer.timings.total - answer.timings.headers >= Duration::from_millis(10));
    }
}

#[tokio::test]
async fn an_answer_is_cut_where_it_was_asked_for() {
    let backend = Backend::start("a").await.unwrap();
    for client in [backend.client(), backend.client().http2()] {
        let cut = |at| client.get("/").header("x-echo-reset", at).header("x-echo-size", "1000");
        let failure = cut("before").await.unwrap_err();
        assert!(matches!(failure, Failure::Exchange(_)), "{failure}");
        assert!(!failure.is_unprocessed(), "{failure}");
        for (at, came) in [("headers", 0), ("body", 500)] {
            let failure = cut(at).await.unwrap_err();
            let partial = failure.partial().unwrap();
            assert_eq!((partial.status.as_u16(), partial.body.len()), (200, came), "{failure}");
        }
        assert_eq!(client.get("/").await.unwrap().status, 200);
    }
}
