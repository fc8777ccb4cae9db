//! A health check over gRPC of a Mapping, of a backend that answers it: the endpoint is healthy because it said so.

use super::requests::TURN;
use super::world::{World, object, service};
use kinds::{Kind, Object, kind};
use pipeline::settings::Packing;
use serde_json::{Value, json};
use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};
use testbed::{Backend, Client, eventually};

/// How long a check may take on a machine that has other work.
const TIMEOUT: Duration = Duration::from_secs(60);

fn of(kind: Kind, name: &str, spec: &Value) -> Object {
    object(kind, &json!({ "metadata": { "namespace": "default", "name": name }, "spec": spec }))
}

/// The health of the only endpoint of the Mapping's cluster, as Envoy says it.
async fn health(world: &World) -> Option<Value> {
    let clusters = world.proxy.envoy().admin().clusters().await.ok()?;
    let clusters = clusters["cluster_statuses"].as_array()?;
    let own = clusters.iter().find(|cluster| cluster["name"].as_str().is_some_and(|name| name.contains("/web/")))?;
    Some(own["host_statuses"][0]["health_status"].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_is_asked_over_grpc() {
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let check = json!({ "interval": "1s", "health_check": { "grpc": { "upstream_name": "web" } } });
    let world = World::start(
        Packing::Scoped,
        [
            of(
                kind::LISTENER,
                "http",
                &json!({ "port": 8080, "protocol": "HTTP", "securityModel": "XFP", "hostBinding": { "namespace": { "from": "ALL" } } }),
            ),
            of(kind::HOST, "any", &json!({ "hostname": "*", "requestPolicy": { "insecure": { "action": "Route" } } })),
            of(
                kind::MAPPING,
                "web",
                &json!({ "hostname": "*", "prefix": "/", "service": "web", "grpc": true, "health_checks": [check] }),
            ),
            service("web", backend.ip()),
        ],
    )
    .await;
    let is_healthy = async || match health(&world).await {
        Some(health) if health == json!({ "eds_health_status": "HEALTHY" }) => Ok(()),
        other => Err(format!("{other:?}")),
    };
    eventually("the check to succeed", TIMEOUT, is_healthy).await.unwrap();
    assert!(backend.running().unwrap().requests() > 0, "it was asked");
    let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))).host("a.example.com");
    assert_eq!(client.get("/").await.unwrap().status, 200);
}
