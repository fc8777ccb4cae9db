use echo::Seen;
use echo::websocket::{Frame, Opcode};
use testbed::{Backend, Client};

#[tokio::test]
async fn messages_come_back_over_every_version() {
    let backend = Backend::start("a").await.unwrap();
    let clients = [
        backend.client(),
        backend.client().http2(),
        Client::new(backend.https()).https(),
        Client::new(backend.https()).https().http2(),
    ];
    for client in clients {
        let mut socket = client.get("/chat?x=1").header("sec-websocket-protocol", "v2, v1").websocket().await.unwrap();
        assert_eq!(socket.answer.backend(), Some("a"));
        assert_eq!(socket.answer.header("sec-websocket-protocol"), Some("v2"));
        assert_eq!(socket.ask("hello").await.unwrap(), "hello");
        let seen: Seen = serde_json::from_str(&socket.ask(echo::WHO).await.unwrap()).unwrap();
        assert_eq!((&*seen.name, &*seen.path, seen.query.as_deref()), ("a", "/chat", Some("x=1")));
        let big = Frame::new(Opcode::Binary, vec![7; 200_000]);
        socket.write(&big).await.unwrap();
        assert!(socket.read().await.unwrap() == Some(big));
        socket.write(&Frame::new(Opcode::Ping, "p")).await.unwrap();
        assert_eq!(socket.read().await.unwrap(), Some(Frame::new(Opcode::Pong, "p")));
        socket.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_refused_handshake_is_an_answer() {
    let backend = Backend::start("a").await.unwrap();
    for client in [backend.client(), backend.client().http2()] {
        let failure = client.get("/").header("x-echo-status", "403").websocket().await.unwrap_err();
        assert_eq!(failure.partial().unwrap().status, if client_is_http2(&failure) { 405 } else { 403 }, "{failure}");
    }
}

/// A CONNECT that is no WebSocket is refused as such.
fn client_is_http2(failure: &testbed::client::Failure) -> bool {
    failure.partial().unwrap().version == http::Version::HTTP_2
}

#[tokio::test]
async fn a_backend_that_stops_says_so() {
    let backend = Backend::start("a").await.unwrap();
    let mut socket = backend.client().websocket("/").await.unwrap();
    let stopped = tokio::spawn(backend.stop());
    assert_eq!(socket.read().await.unwrap(), Some(Frame::close(1001)));
    assert_eq!(socket.read().await.unwrap(), None);
    stopped.await.unwrap().unwrap();
}
