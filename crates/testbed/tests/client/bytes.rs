use echo::Who;
use testbed::{Backend, Client};

#[tokio::test]
async fn tcp_gives_back_what_it_gets() {
    let backend = Backend::start("a").await.unwrap();
    for client in [Client::new(backend.tcp()), Client::new(backend.tls_tcp()).sni("a.example.com")] {
        let mut wire = client.open().await.unwrap();
        for text in ["hello", "again"] {
            wire.write(text).await.unwrap();
            assert_eq!(wire.read_exact(5).await.unwrap(), text.as_bytes());
        }
        wire.finish().await.unwrap();
        assert!(wire.read_to_end().await.unwrap().is_empty());

        let mut wire = client.open().await.unwrap();
        wire.write("who?\n").await.unwrap();
        let who: Who = serde_json::from_slice(&wire.read_until(b"\n").await.unwrap()).unwrap();
        assert_eq!((&*who.name, who.remote), ("a", wire.local()));
        assert_eq!(who.tls.and_then(|tls| tls.sni).as_deref(), wire.tls().map(|_| "a.example.com"));
    }
}

#[tokio::test]
async fn datagrams_come_back() {
    let backend = Backend::start("a").await.unwrap();
    let client = Client::new(backend.udp());
    assert_eq!(client.udp("hello").await.unwrap(), b"hello");
    let who: Who = serde_json::from_slice(&client.udp(echo::WHO).await.unwrap()).unwrap();
    assert_eq!(who.name, "a");
}

#[tokio::test]
async fn requests_written_by_hand() {
    let backend = Backend::start("a").await.unwrap();
    let client = backend.client();
    let answer = client.raw("GET /by%20hand HTTP/1.0\r\n\r\n").await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.contains("\"/by%20hand\""), "{answer}");
    let refused = client.raw("this is no request\r\n\r\n").await.unwrap();
    assert!(refused.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&refused));
}

#[tokio::test]
async fn a_preamble_comes_before_everything() {
    let backend = Backend::start("a").await.unwrap();
    let mut wire = Client::new(backend.tcp()).preamble("PROXY UNKNOWN\r\n").open().await.unwrap();
    assert_eq!(wire.read_until(b"\n").await.unwrap(), b"PROXY UNKNOWN\r\n");
}
