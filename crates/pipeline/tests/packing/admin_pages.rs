//! Envoy's admin pages and routes that lead to loopback, as one to a name of DNS does that resolves to it.

use super::requests::TURN;
use super::world::{World, ingress, object, settings};
use kinds::kind;
use pipeline::{Settings, settings::Packing};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Client, envoy::Config};

/// The port of the read-only admin listener in Contour.
const ADMIN: u16 = 9001;

/// What a route to the port of the admin listener answers.
async fn answer(admin_port: u16) -> u16 {
    let _turn = TURN.lock().await;
    let meta = json!({"namespace": "default", "name": "local",
        "annotations": {"projectsesame.io/endpoints": format!("127.0.0.1:{ADMIN}")}});
    let service = object(kind::SERVICE, &json!({"metadata": meta, "spec": {"ports": [{"port": 80}]}}));
    let settings = Settings { admin_port, ..settings(Packing::Scoped) };
    let objects = [service, ingress("local", "local.example.com", "/", "local")];
    let _world = World::with(&settings, Config::new().name("admin-pages"), objects).await;
    let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))).host("local.example.com");
    client.get("/config_dump").await.unwrap().status.as_u16()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_route_leads_to_the_admin_pages_unless_the_operator_gives_them_a_port() {
    assert_eq!(answer(Settings::default().admin_port).await, 503);
    assert_eq!(answer(ADMIN).await, 200);
}
