//! How long an answer may take on a route that may become a WebSocket: as long as on any other, and a WebSocket lives on.

use super::requests::TURN;
use super::world::{World, object, service};
use kinds::kind;
use pipeline::settings::Packing;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_limit_of_a_route_is_not_that_of_its_websockets() {
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let route = json!({
        "services": [{"name": "web", "port": 80}], "enableWebsockets": true, "timeoutPolicy": {"response": "500ms"},
    });
    let proxy = object(
        kind::CONTOUR_HTTP_PROXY,
        &json!({
            "metadata": {"namespace": "default", "name": "site"},
            "spec": {"virtualhost": {"fqdn": "a.example.com"}, "routes": [route]},
        }),
    );
    let _world = World::start(Packing::Scoped, [service("web", backend.ip()), proxy]).await;
    let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))).host("a.example.com");
    let mut socket = client.websocket("/").await.unwrap();
    let late = client.get("/").header("x-echo-delay", "10s").await.unwrap();
    assert_eq!(late.status, 504);
    // It is older than that request: the same limit has passed for it as well.
    assert_eq!(socket.ask("still there?").await.unwrap(), "still there?");
}
