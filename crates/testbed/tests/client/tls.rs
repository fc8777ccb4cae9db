use testbed::certs::Ca;
use testbed::client::{Failure, TlsVersion};
use testbed::{Backend, Client};

#[tokio::test]
async fn name_host_and_address_are_chosen_apart() {
    let ca = Ca::new("ca");
    let leaf = ca.leaf("tls.example.com").make();
    let backend = Backend::named("a").tls(&leaf).start().await.unwrap();
    let client = Client::new(backend.https()).host("http.example.com").sni("tls.example.com").trust(&ca);
    let answer = client.get("/").await.unwrap();
    let seen = answer.echo();
    assert_eq!(seen.host.as_deref(), Some("http.example.com"));
    let tls = seen.tls.unwrap();
    assert_eq!((tls.sni.as_deref(), tls.alpn.as_deref()), (Some("tls.example.com"), Some("http/1.1")));
    assert_eq!(tls.version, "TLSv1.3");
    let certificate = answer.certificate().unwrap();
    assert_eq!((&*certificate.subject, &*certificate.issuer), ("CN=tls.example.com", "CN=ca"));
    assert_eq!(certificate.sans, ["DNS:tls.example.com"]);
    assert!(!answer.timings.tls.is_zero());

    let without = client.clone().accept_any().no_sni().get("/").await.unwrap();
    assert_eq!(without.echo().tls.unwrap().sni, None);
    let other = client.sni("other.example.com").get("/").await.unwrap_err();
    assert!(matches!(&other, Failure::Tls { .. }), "{other}");
}

#[tokio::test]
async fn http2_by_alpn_and_alpn_by_hand() {
    let backend = Backend::start("a").await.unwrap();
    let client = Client::new(backend.https()).https().host("a.example.com");
    let answer = client.clone().http2().get("/").await.unwrap();
    assert_eq!((answer.version, answer.echo().tls.unwrap().alpn.as_deref()), (http::Version::HTTP_2, Some("h2")));
    let none = client.clone().alpn(Vec::<Vec<u8>>::new()).get("/").await.unwrap();
    assert_eq!(none.echo().tls.unwrap().alpn, None);
    let unknown = client.alpn(["spdy/1"]).get("/").await.unwrap_err();
    assert_eq!(unknown.alert(), Some(rustls::AlertDescription::NoApplicationProtocol));
}

#[tokio::test]
async fn versions_are_kept_to() {
    let backend = Backend::start("a").await.unwrap();
    let client = Client::new(backend.https()).https();
    for (version, name) in [(TlsVersion::V1_2, "TLSv1.2"), (TlsVersion::V1_3, "TLSv1.3")] {
        let answer = client.clone().tls_versions(version, version).get("/").await.unwrap();
        assert_eq!(answer.tls.unwrap().version, name);
    }
}

#[tokio::test]
async fn a_client_certificate_is_seen_or_demanded() {
    let ca = Ca::new("ca");
    let server = ca.leaf("a.example.com").make();
    let alice = ca.nameless_leaf("alice").organisation("example").uri("spiffe://example/alice").client_only().make();
    let open = Backend::named("open").tls_config(echo_config()).start().await.unwrap();
    let answer = Client::new(open.https()).identity(&alice).get("/").await.unwrap();
    let seen = &answer.echo().tls.unwrap().peer[0];
    assert_eq!((&*seen.subject, &*seen.issuer), ("CN=alice, O=example", "CN=ca"));
    assert_eq!(seen.sans, ["URI:spiffe://example/alice"]);

    let strict = Backend::named("strict").tls_for_clients(&server, &ca).start().await.unwrap();
    let client = Client::new(strict.https()).https();
    assert_eq!(client.clone().identity(&alice).get("/").await.unwrap().status, 200);
    let none = client.get("/").await.unwrap_err();
    assert_eq!(none.alert(), Some(rustls::AlertDescription::CertificateRequired));
    let stranger = Ca::new("ca").nameless_leaf("mallory").make();
    assert!(client.identity(&stranger).get("/").await.unwrap_err().alert().is_some());
}

/// The backend's own default, which asks for client certificates and takes any: none of ours stands in its way.
fn echo_config() -> std::sync::Arc<rustls::ServerConfig> {
    echo::Tls::self_signed(["localhost"]).unwrap().into_config()
}
