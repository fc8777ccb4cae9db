//! The fetcher against servers that answer, rotate, hang, reset, send garbage and redirect.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use model::ObjectRef;
use model::jwt::{AddressFamily, JwksTrust, JwksUri};
use testbed::certs::Ca;
use testbed::tokens::{TokenSigner, key_set};
use testbed::{KeyAnswer, KeyServer};
use tokio::sync::mpsc::UnboundedReceiver;

/// How long anything may take.
const TIMEOUT: Duration = Duration::from_secs(20);

fn quick() -> Limits {
    let (shortest_interval, first_retry) = (Duration::from_millis(20), Duration::from_millis(20));
    Limits { shortest_interval, first_retry, last_retry: Duration::from_millis(50), ..Limits::default() }
}

fn spec() -> FetchSpec {
    let (timeout, cache) = (Duration::from_secs(5), Duration::from_millis(20));
    FetchSpec { ca: None, family: AddressFamily::V4, timeout, cache }
}

fn source(namespace: &str, uri: &str) -> Arc<RemoteJwks> {
    let uri = JwksUri::parse(uri).unwrap();
    Arc::new(RemoteJwks { namespace: namespace.into(), uri, trust: None, family: None })
}

fn of(server: &KeyServer) -> Arc<RemoteJwks> {
    source("a", &format!("http://{}/jwks", server.address()))
}

async fn next(news: &mut UnboundedReceiver<JwksUpdate>) -> JwksState {
    tokio::time::timeout(TIMEOUT, news.recv()).await.expect("there is news in time").unwrap().1
}

fn ids(state: &JwksState) -> Vec<String> {
    let keys = state.keys.iter().flat_map(|keys| keys.keys());
    let id =
        |key: &Arc<str>| serde_json::from_str::<serde_json::Value>(key).unwrap()["kid"].as_str().unwrap().to_owned();
    keys.map(id).collect()
}

fn keys(names: &[&str]) -> KeyAnswer {
    let keys: Vec<TokenSigner> = names.iter().map(|name| TokenSigner::new(name)).collect();
    KeyAnswer::Document(key_set(&keys))
}

/// What comes of one fetch.
async fn once(source: Arc<RemoteJwks>, spec: FetchSpec, limits: Limits) -> JwksState {
    let (mut fetcher, mut news) = Fetcher::new(limits, Metrics::default());
    fetcher.want(source, spec.into());
    next(&mut news).await
}

#[tokio::test]
async fn keys_are_fetched_again_and_the_last_ones_are_kept() {
    let server = KeyServer::start(None).await.unwrap();
    server.set(keys(&["one"]));
    let (mut fetcher, mut news) = Fetcher::new(quick(), Metrics::default());
    fetcher.want(of(&server), spec().into());
    let state = next(&mut news).await;
    assert_eq!((ids(&state), &state.failure), (vec!["one".to_owned()], &None));

    server.set(keys(&["one", "two"]));
    assert_eq!(ids(&next(&mut news).await), ["one", "two"]);

    server.set(KeyAnswer::Reset);
    let state = next(&mut news).await;
    assert_eq!(ids(&state), ["one", "two"]);
    assert!(state.failure.is_some());

    // The same failure is no news.
    let requests = server.requests();
    testbed::eventually(
        "more requests",
        TIMEOUT,
        async || if server.requests() > requests + 3 { Ok(()) } else { Err("") },
    )
    .await
    .unwrap();
    assert!(news.try_recv().is_err());

    server.set(keys(&["three"]));
    let state = next(&mut news).await;
    assert_eq!((ids(&state), state.failure), (vec!["three".to_owned()], None));

    // Nobody wants it any more, so nobody asks.
    fetcher.forget(&of(&server));
    assert!(fetcher.tasks.is_empty() && fetcher.namespaces.values().all(|queue| queue.strong_count() <= 1));
}

#[tokio::test]
async fn what_is_no_key_set_is_told() {
    let server = KeyServer::start(None).await.unwrap();
    let raw = |text: &str| KeyAnswer::Raw(text.as_bytes().to_vec());
    let redirect = "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/latest\r\ncontent-length: 0\r\n\r\n";
    let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(resolve::jwks::LONGEST + 1));
    for (answer, why) in [
        (KeyAnswer::Document("garbage".to_owned()), "the document is not valid JSON"),
        (KeyAnswer::Document("{\"keys\":[]}".to_owned()), "the document has no usable key among 0"),
        (raw("garbage\r\n\r\n"), "the HTTP exchange failed"),
        (raw(""), "the HTTP exchange failed"),
        (raw("HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n"), "the answer is 500"),
        (raw(redirect), "redirects are not followed"),
        (raw(&endless), "longer than"),
        (raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"), "the document ended early"),
        (KeyAnswer::Reset, "the HTTP exchange failed"),
    ] {
        server.set(answer.clone());
        let state = once(of(&server), spec(), quick()).await;
        let failure = state.failure.unwrap();
        assert!(state.keys.is_none() && failure.contains(why), "{answer:.80?}: {failure}");
    }
    server.set(KeyAnswer::Hang);
    let short = FetchSpec { timeout: Duration::from_millis(100), ..spec() };
    assert_eq!(once(of(&server), short.clone(), quick()).await.failure.as_deref(), Some("no answer within 100ms"));
    // However long a provider would wait.
    let long = FetchSpec { timeout: Duration::from_secs(1000), ..spec() };
    let limits = Limits { longest_fetch: Duration::from_millis(50), ..quick() };
    assert_eq!(once(of(&server), long, limits).await.failure.as_deref(), Some("no answer within 50ms"));
    let nobody = once(source("a", &format!("http://{}:81/", server.address().ip())), spec(), quick()).await;
    assert!(nobody.failure.as_deref().unwrap().contains("cannot connect"), "{nobody:?}");
}

#[tokio::test]
async fn neither_the_machine_itself_nor_a_metadata_service_is_asked() {
    for uri in ["http://localhost/", "http://127.0.0.1:9/", "https://169.254.169.254/latest", "http://0.0.0.0/"] {
        let state = once(source("a", uri), spec(), quick()).await;
        let failure = state.failure.unwrap();
        assert!(failure.contains("is a loopback, link-local"), "{uri}: {failure}");
    }
    // The name of an IPv6 address that is one of IPv4.
    let six = FetchSpec { family: AddressFamily::All, ..spec() };
    for uri in ["http://[::1]/", "http://[::ffff:169.254.169.254]/", "http://[fd00:ec2::254]/", "http://[::127.0.0.1]/"]
    {
        let failure = once(source("a", uri), six.clone(), quick()).await.failure.unwrap();
        assert!(failure.contains("is a loopback, link-local"), "{uri}: {failure}");
    }
    let missing = once(source("a", "http://no-such-name.invalid/"), spec(), quick()).await;
    assert!(missing.failure.as_deref().unwrap().contains("cannot be resolved"), "{missing:?}");
}

/// The server that a name leads to in the test below, beside addresses that may not be asked.
static SERVER: std::sync::OnceLock<IpAddr> = std::sync::OnceLock::new();

/// What the DNS of a cluster says about Services of type ExternalName.
fn external_names(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let metadata = IpAddr::from([169, 254, 169, 254]);
    let addresses = match host {
        "loopback.a.svc.cluster.local" => vec![IpAddr::from([127, 0, 0, 1])],
        "metadata.a.svc.cluster.local" => vec![metadata],
        "both.a.svc.cluster.local" => [metadata].into_iter().chain(SERVER.get().copied()).collect(),
        _ => return Err(io::ErrorKind::NotFound.into()),
    };
    Ok(addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect())
}

#[tokio::test]
async fn a_name_of_the_cluster_leads_to_no_address_that_may_not_be_asked() {
    let limits = Limits { look_up: external_names, ..quick() };
    for (service, address) in [("loopback", "127.0.0.1"), ("metadata", "169.254.169.254")] {
        let state = once(source("a", &format!("http://{service}.a.svc.cluster.local/")), spec(), limits.clone()).await;
        let failure = state.failure.unwrap();
        assert!(state.keys.is_none() && failure.contains(address), "{service}: {failure}");
        assert!(failure.contains("is a loopback, link-local"), "{service}: {failure}");
    }
    // Of several addresses the others are asked.
    let server = KeyServer::start(None).await.unwrap();
    server.set(keys(&["one"]));
    SERVER.set(server.address().ip()).unwrap();
    let uri = format!("http://both.a.svc.cluster.local:{}/", server.address().port());
    assert_eq!(ids(&once(source("a", &uri), spec(), limits.clone()).await), ["one"]);
    let missing = once(source("a", "http://nobody.a.svc.cluster.local/"), spec(), limits).await;
    assert!(missing.failure.as_deref().unwrap().contains("cannot be resolved"), "{missing:?}");
}

#[tokio::test]
async fn a_server_is_trusted_by_its_ca_and_names() {
    let (ca, other) = (Ca::new("keys"), Ca::new("other"));
    let leaf = ca.leaf("keys.example.com").dns("also.example.com").make();
    let server = KeyServer::start(Some(leaf.server_config())).await.unwrap();
    server.set(keys(&["one"]));
    let asked = async |names: &[&str], trusted: Option<&Ca>| {
        let ca_object = ObjectRef::new(kinds::kind::SECRET, "a", "ca");
        let names = names.iter().map(|name| Arc::from(*name)).collect();
        let trust = trusted.map(|_| JwksTrust { ca: ca_object, names });
        let source = RemoteJwks { trust, ..(*source("a", &format!("https://{}/", server.address()))).clone() };
        let spec = FetchSpec { ca: trusted.map(|ca| ca.pem().into()), ..spec() };
        once(source.into(), spec, quick()).await
    };
    assert_eq!(ids(&asked(&["keys.example.com"], Some(&ca)).await), ["one"]);
    assert_eq!(ids(&asked(&["nobody.example.com", "also.example.com"], Some(&ca)).await), ["one"]);
    assert_eq!(ids(&asked(&[], None).await), ["one"]);
    for (names, ca) in [(["nobody.example.com"], &ca), (["keys.example.com"], &other)] {
        let state = asked(&names, Some(ca)).await;
        assert!(state.failure.as_deref().unwrap().contains("the TLS handshake failed"), "{state:?}");
    }
}

#[tokio::test]
async fn a_namespace_whose_servers_hang_holds_up_no_other() {
    let (slow, good) = (KeyServer::start(None).await.unwrap(), KeyServer::start(None).await.unwrap());
    slow.set(KeyAnswer::Hang);
    good.set(keys(&["one"]));
    let (mut fetcher, mut news) = Fetcher::new(Limits { of_namespace: 2, in_total: 3, ..quick() }, Metrics::default());
    let hanging = FetchSpec { timeout: Duration::from_secs(1000), ..spec() };
    for number in 0..50 {
        fetcher.want(source("bad", &format!("http://{}/{number}", slow.address())), hanging.clone().into());
    }
    testbed::eventually("hanging requests", TIMEOUT, async || if slow.requests() >= 2 { Ok(()) } else { Err("none") })
        .await
        .unwrap();
    fetcher.want(source("good", &format!("http://{}/", good.address())), spec().into());
    assert_eq!(ids(&next(&mut news).await), ["one"]);
    assert_eq!(slow.requests(), 2);
}

#[tokio::test]
async fn fetches_are_counted_by_result_and_servers_are_no_labels() {
    let metrics = Metrics::default();
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let page = || {
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        page
    };
    let value = |name: &str| {
        let page = page();
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{name} is not in {page}")).parse::<f64>().unwrap()
    };
    let fetches = |result: &str| value(&format!("sesame_jwks_fetches_total{{result=\"{result}\"}}"));
    assert_eq!((fetches("success"), fetches("failure"), fetches("timeout")), (0.0, 0.0, 0.0));

    let (good, bad) = (KeyServer::start(None).await.unwrap(), KeyServer::start(None).await.unwrap());
    good.set(keys(&["one"]));
    bad.set(KeyAnswer::Hang);
    let (mut fetcher, mut news) = Fetcher::new(quick(), metrics);
    fetcher.want(of(&good), FetchSpec { cache: Duration::from_secs(1000), ..spec() }.into());
    next(&mut news).await;
    fetcher.want(of(&bad), FetchSpec { timeout: Duration::from_millis(50), ..spec() }.into());
    next(&mut news).await;
    assert_eq!(fetches("success"), 1.0);
    assert!(fetches("timeout") >= 1.0);
    assert_eq!((value("sesame_jwks_servers"), value("sesame_jwks_servers_without_keys")), (2.0, 1.0));
    bad.set(KeyAnswer::Reset);
    assert!(next(&mut news).await.failure.is_some());
    assert!(fetches("failure") >= 1.0);
    let age = value("sesame_jwks_oldest_keys_age_seconds");
    assert!(age > 0.0 && age < TIMEOUT.as_secs_f64(), "{age}");
    assert!(!page().contains(&good.address().to_string()), "what tenants write is no label");
    fetcher.forget(&of(&bad));
    fetcher.forget(&of(&good));
    assert_eq!((value("sesame_jwks_servers"), value("sesame_jwks_oldest_keys_age_seconds")), (0.0, 0.0));
}
