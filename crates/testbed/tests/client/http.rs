use std::time::Duration;

use http::{Method, Version};
use testbed::{Backend, Client, Net, client::Failure};

#[tokio::test]
async fn the_backend_sees_what_the_client_says() {
    let backend = Backend::start("a").await.unwrap();
    let client = backend.client().host("a.example.com").from(Net::here().unwrap().address());
    let answer = client
        .request(Method::PUT, "/some%20path?x=1&y=%2F")
        .header("x-one", "1")
        .header("x-two", "2")
        .header("x-one", "3")
        .body("héllo")
        .await
        .unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.version, Version::HTTP_11);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.backend(), Some("a"));
    let seen = answer.echo();
    assert_eq!(seen.name, "a");
    assert_eq!((&*seen.method, &*seen.path, seen.query.as_deref()), ("PUT", "/some%20path", Some("x=1&y=%2F")));
    assert_eq!((seen.host.as_deref(), &*seen.protocol), (Some("a.example.com"), "HTTP/1.1"));
    let sent: Vec<_> = seen.headers.iter().filter(|(n, _)| n.starts_with("x-")).map(|(n, v)| (&**n, &**v)).collect();
    assert_eq!(sent, [("x-one", "1"), ("x-one", "3"), ("x-two", "2")]);
    assert_eq!((seen.body.length, seen.body.text.as_deref()), (6, Some("héllo")));
    assert_eq!((seen.remote, seen.local), (answer.local, answer.remote));
    assert!(seen.tls.is_none() && answer.tls.is_none());
    assert!(answer.timings.total >= answer.timings.headers);
}

#[tokio::test]
async fn one_port_speaks_every_version() {
    let backend = Backend::start("a").await.unwrap();
    let versions = [
        (backend.client().http10(), Version::HTTP_10, "HTTP/1.0"),
        (backend.client(), Version::HTTP_11, "HTTP/1.1"),
        (backend.client().http2(), Version::HTTP_2, "HTTP/2.0"),
    ];
    for (client, version, name) in versions {
        let answer = client.host("a.example.com:8080").get("/x?q").await.unwrap();
        assert_eq!(answer.version, version);
        let seen = answer.echo();
        assert_eq!((&*seen.protocol, seen.host.as_deref()), (name, Some("a.example.com:8080")));
        assert_eq!((&*seen.path, seen.query.as_deref()), ("/x", Some("q")));
    }
}

#[tokio::test]
async fn a_connection_is_kept_and_its_end_is_noticed() {
    let backend = Backend::start("a").await.unwrap();
    for client in [backend.client(), backend.client().http2()] {
        let connection = client.connect().await.unwrap();
        for n in 1..=3 {
            let answer = connection.get("/").await.unwrap();
            assert_eq!(answer.reused, n > 1);
            assert_eq!(answer.timings.connect.is_zero(), n > 1);
            assert_eq!((answer.echo().request, answer.local), (n, connection.local()));
        }
        assert!(connection.is_open());
        assert_eq!(connection.requests(), 3);
    }
    let open = [backend.client().connect().await.unwrap(), backend.client().http2().connect().await.unwrap()];
    backend.stop().await.unwrap();
    for connection in open {
        connection.closed().await;
        assert!(!connection.is_open());
        assert!(connection.get("/").await.unwrap_err().is_unprocessed());
    }
}

#[tokio::test]
async fn requests_share_an_http2_connection() {
    let backend = Backend::start("a").await.unwrap();
    let connection = backend.client().http2().connect().await.unwrap();
    let slow = connection.get("/slow").header("x-echo-delay", "60s");
    let slow = tokio::spawn(async { slow.await });
    let quick = connection.get("/quick").await.unwrap();
    assert_eq!(quick.echo().path, "/quick");
    assert!(!slow.is_finished());
    slow.abort();
}

#[tokio::test]
async fn what_goes_wrong_is_a_value() {
    let nobody = Client::new(Net::here().unwrap().socket(80));
    let failure = nobody.get("/").await.unwrap_err();
    assert!(failure.is_refused(), "{failure}");

    let backend = Backend::start("a").await.unwrap();
    let slow = backend.client().timeout(Duration::from_millis(50)).get("/").header("x-echo-delay", "60s");
    assert!(slow.await.unwrap_err().is_timeout());

    let invalid = backend.client().get("no slash").await.unwrap_err();
    assert_eq!(invalid.to_string(), "not a request");
}

#[tokio::test]
async fn a_big_body_is_counted_and_its_beginning_given_back() {
    let backend = Backend::start("a").await.unwrap();
    for client in [backend.client(), backend.client().http2()] {
        let answer = client.post("/", vec![b'x'; 300_000]).await.unwrap();
        let body = answer.echo().body;
        assert_eq!((body.length, body.cut, body.text.unwrap().len()), (300_000, true, 65_536));
    }
    let binary = backend.client().post("/", vec![0xff, 0xfe]).await.unwrap().echo().body;
    assert_eq!((binary.text, binary.base64.as_deref(), binary.cut), (None, Some("//4="), false));
}

#[tokio::test]
async fn trailers_go_both_ways() {
    let backend = Backend::start("a").await.unwrap();
    for client in [backend.client(), backend.client().http2()] {
        let request = client.post("/", "body").header("te", "trailers").trailer("x-sum", "42");
        let answer = request.header("x-echo-trailer", "x-took: 1ms").await.unwrap();
        assert_eq!(answer.echo().trailers, [("x-sum".into(), "42".into())]);
        assert_eq!(answer.trailer("x-took"), Some("1ms"));
    }
}

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
