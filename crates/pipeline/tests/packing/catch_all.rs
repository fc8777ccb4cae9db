//! Names deeper than one label below a wildcard host: they get the routes of the catch-all, or 503, never a part of them.

use super::requests::TURN;
use super::world::{World, ingress, object, service};
use kinds::{Object, kind};
use model::{Code, Verdict};
use pipeline::settings::Packing;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client};

/// An Ingress without a host: the path `/` and so many below it.
fn catch_all(count: usize) -> Object {
    let backend = json!({"service": {"name": "any", "port": {"number": 80}}});
    let path = |path: String| json!({"path": path, "pathType": "Prefix", "backend": backend});
    let paths: Vec<Value> = (0..count).map(|at| format!("/{at}")).chain(["/".to_owned()]).map(path).collect();
    let meta = json!({"namespace": "default", "name": "any"});
    object(kind::INGRESS, &json!({"metadata": meta, "spec": {"rules": [{"http": {"paths": paths}}]}}))
}

async fn ask(host: &str, path: &str) -> String {
    let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))).host(host);
    let answer = client.get(path).await.unwrap();
    format!("{} {}", answer.status.as_u16(), answer.backend().unwrap_or("-"))
}

/// Publishes, and gives the objects that are told that the catch-all is too long.
async fn reported(world: &mut World) -> Vec<String> {
    let output = world.pipeline.settle();
    world.proxy.publish(output.xds).await.unwrap();
    let long = |verdict: &&Verdict| verdict.code == Code::CatchAllTooLong;
    let all = output.verdicts.iter().flat_map(|(_, list)| list).flat_map(|list| list.iter());
    all.filter(long).map(|verdict| verdict.origin.object.to_string()).collect()
}

async fn deeper_names_get_the_catch_all_or_503(packing: Packing) {
    let _turn = TURN.lock().await;
    let (wild, any) = (Backend::start("wild").await.unwrap(), Backend::start("any").await.unwrap());
    let mut world = World::start(packing, [service("wild", wild.ip()), service("any", any.ip())]).await;
    world.put([ingress("wild", "*.example.com", "/", "wild"), catch_all(99)]);
    assert!(reported(&mut world).await.is_empty(), "{packing:?}");
    for path in ["/", "/0", "/98"] {
        assert_eq!(ask("a.b.example.com", path).await, "200 any", "{packing:?} {path}");
    }
    world.put([catch_all(100)]);
    assert_eq!(reported(&mut world).await, ["Ingress default/any"], "{packing:?}");
    for path in ["/", "/0", "/99", "/elsewhere"] {
        assert_eq!(ask("a.b.example.com", path).await, "503 -", "{packing:?} {path}");
        assert_eq!(ask("b.example.com", path).await, "200 wild", "{packing:?} {path}");
        assert_eq!(ask("example.org", path).await, "200 any", "{packing:?} {path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deeper_names_get_the_catch_all_or_503_in_tables() {
    deeper_names_get_the_catch_all_or_503(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deeper_names_get_the_catch_all_or_503_in_scopes() {
    deeper_names_get_the_catch_all_or_503(Packing::Scoped).await;
}
