//! What a rate limit service may do to the messages of requests that it is asked about: nothing to where they end. It may be that of
//! another namespace: one RateLimitService of Emissary holds for all Mappings.
//!
//! As for [authorization servers](super::auth_headers), two requests follow each other on one connection.

use super::auth_headers::{first, seen_header};
use super::requests::TURN;
use super::world::{World, object, service, settings};
use kinds::kind;
use model::listener::RateLimitService;
use pipeline::{
    extensions::ExtensionName,
    settings::{GlobalRateLimits, Packing},
};
use serde_json::json;
use std::{net::Ipv4Addr, time::Duration};
use testbed::{Backend, Client, LimitServer, envoy::Config, eventually};

const HOST: &str = "limited.example.com";

async fn world(packing: Packing) -> (World, Backend, LimitServer) {
    let (backend, limits) = (Backend::start("web").await.unwrap(), LimitServer::start().await.unwrap());
    let mut settings = settings(packing);
    let extension = ExtensionName { namespace: "default".into(), name: "limits".into() };
    settings.rate_limit_service = Some((extension, RateLimitService::default()));
    let service_of = ("default".into(), "limits".into());
    settings.http_proxy.global_rate_limits =
        Some(GlobalRateLimits { service: service_of, default: None, add_namespace: false });
    let meta = |name: &str| json!({"namespace": "default", "name": name});
    let wish = json!({"requestHeader": {"headerName": "x-auth", "descriptorKey": "wish"}});
    let policy = json!({"global": {"descriptors": [{"entries": [wish]}]}});
    let route = json!({"services": [{"name": "web", "port": 80}], "rateLimitPolicy": policy});
    let proxy = json!({"metadata": meta("limited"), "spec": {"virtualhost": {"fqdn": HOST}, "routes": [route]}});
    let extension = json!({"protocol": "h2c", "services": [{"name": "limits", "port": 80}]});
    let objects = [
        service("web", backend.ip()),
        service("limits", limits.ip()),
        object(kind::CONTOUR_EXTENSION_SERVICE, &json!({"metadata": meta("limits"), "spec": extension})),
        object(kind::CONTOUR_HTTP_PROXY, &proxy),
    ];
    let world = World::with(&settings, Config::new().name("limit-headers"), objects).await;
    // Requests that come before Envoy is connected to the service are denied.
    let client = Client::new((Ipv4Addr::LOCALHOST, 8080).into()).host(HOST).header("x-auth", "nothing");
    let counted = async || match client.get("/").await {
        Ok(answer) if answer.status == 200 => Ok(()),
        other => Err(format!("{other:?}")),
    };
    eventually("the service to be asked", Duration::from_secs(20), counted).await.unwrap();
    (world, backend, limits)
}

async fn a_rate_limit_service_frames_nothing(packing: Packing) {
    let _turn = TURN.lock().await;
    let _world = world(packing).await;
    requests_are_as_they_were().await;
    responses_are_as_they_were().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_limit_service_frames_nothing_in_tables() {
    a_rate_limit_service_frames_nothing(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_limit_service_frames_nothing_in_scopes() {
    a_rate_limit_service_frames_nothing(Packing::Scoped).await;
}

async fn requests_are_as_they_were() {
    for wish in [
        "nothing",
        "set content-length=1",
        "set content-length=500",
        "set Content-Length=1",
        "set transfer-encoding=chunked",
        "set connection=upgrade",
        "set upgrade=x",
        "set te=trailers",
        "set proxy-connection=close",
        "set x-sesame-host=x",
        "set :method=PUT",
        "set :path=/../other",
        "set :authority=other.example.com",
        "set host=other.example.com",
    ] {
        let post = first(HOST, "POST", "/", wish, "").await;
        let seen = post.seen();
        let told = (post.status, seen_header(&seen, "content-length"), &seen["body"]["length"]);
        assert_eq!(told, (200, Some("5"), &json!(5)), "{wish}");
        assert_eq!(
            (&seen["method"], &seen["path"], &seen["host"]),
            (&json!("POST"), &json!("/"), &json!(HOST)),
            "{wish}"
        );
        for name in ["transfer-encoding", "connection", "upgrade", "te", "proxy-connection", "x-sesame-host"] {
            assert_eq!(seen_header(&seen, name), None, "{wish}");
        }
        let get = first(HOST, "GET", "/", wish, "").await;
        let seen = get.seen();
        let told = (get.status, seen_header(&seen, "content-length"), &seen["body"]["length"]);
        assert_eq!(told, (200, None, &json!(0)), "{wish}");
    }
    let response = first(HOST, "POST", "/", "set x-user=me", "").await;
    assert_eq!(seen_header(&response.seen(), "x-user"), Some("me"), "other headers are its own business");
}

async fn responses_are_as_they_were() {
    for wish in [
        "answer content-length=5",
        "answer content-length=5000",
        "answer content-length=x",
        "answer :status=204",
        "answer :status=xyz",
        "answer transfer-encoding=chunked",
        "answer connection=close",
    ] {
        let response = first(HOST, "GET", "/", wish, "").await;
        assert_eq!((response.status, response.seen()["name"].as_str()), (200, Some("web")), "{wish}: {response:?}");
        // One that has no length gets none, and a status of the backend stays.
        let response = first(HOST, "GET", "/", wish, "x-echo-chunk: 100\r\nx-echo-status: 418\r\n").await;
        assert_eq!((response.status, response.seen()["name"].as_str()), (418, Some("web")), "{wish}: {response:?}");
        assert_eq!(response.header("content-length"), None, "{wish}");
    }
    assert_eq!(first(HOST, "GET", "/", "answer x-user=me", "").await.header("x-user"), Some("me"));

    for wish in ["deny x-user=me", "deny content-length=20", "deny transfer-encoding=chunked", "deny :status=204"] {
        let response = first(HOST, "GET", "/", wish, "").await;
        assert_eq!(response.status, 429, "{wish}: {response:?}");
    }
}
