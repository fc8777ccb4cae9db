//! Whose requests a limit counts: those of its own host, and nobody else's.

use super::requests::TURN;
use super::world::{World, ingress, object, service};
use kinds::{Object, kind};
use pipeline::settings::Packing;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client};

/// A wildcard root that takes one request an hour.
fn limited(fqdn: &str) -> Object {
    let limit = json!({"local": {"requests": 1, "unit": "hour"}});
    let host = json!({"fqdn": fqdn, "rateLimitPolicy": limit});
    let spec = json!({"virtualhost": host, "routes": [{"services": [{"name": "wild", "port": 80}]}]});
    let meta = json!({"namespace": "default", "name": "limited"});
    object(kind::CONTOUR_HTTP_PROXY, &json!({"metadata": meta, "spec": spec}))
}

async fn ask(host: &str, path: &str) -> String {
    let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))).host(host);
    let answer = client.get(path).await.unwrap();
    format!("{} {}", answer.status.as_u16(), answer.backend().unwrap_or("-"))
}

/// Envoy takes names deeper than one label for the wildcard's, but they belong to whoever takes every host.
async fn a_wildcards_limit_counts_only_its_own(packing: Packing) {
    let _turn = TURN.lock().await;
    let (wild, any) = (Backend::start("wild").await.unwrap(), Backend::start("any").await.unwrap());
    let mut world = World::start(packing, [service("wild", wild.ip()), service("any", any.ip())]).await;
    world.put([limited("*.limited.org"), ingress("any", "", "/", "any")]);
    world.publish().await;
    for number in 0..3 {
        assert_eq!(ask("a.b.limited.org", "/").await, "200 any", "{packing:?} {number}");
    }
    assert_eq!(ask("a.limited.org", "/").await, "200 wild", "{packing:?}: nothing was counted yet");
    assert_eq!(ask("b.limited.org", "/").await, "429 -", "{packing:?}: one request is taken");
    assert_eq!(ask("a.b.limited.org", "/").await, "200 any", "{packing:?}: the limit is another's");

    // The same among so many routes that they stand in a tree.
    world.put([limited("*.long.org")]);
    world.put((0..40).map(|at| ingress(&format!("any-{at}"), "", &format!("/long/{at}"), "any")));
    world.publish().await;
    for at in 0..40 {
        assert_eq!(ask("a.b.long.org", &format!("/long/{at}")).await, "200 any", "{packing:?} {at}");
    }
    assert_eq!(ask("a.long.org", "/").await, "200 wild", "{packing:?}: nothing was counted yet");
    assert_eq!(ask("a.long.org", "/").await, "429 -", "{packing:?}: one request is taken");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wildcards_limit_counts_only_its_own_in_tables() {
    a_wildcards_limit_counts_only_its_own(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wildcards_limit_counts_only_its_own_in_scopes() {
    a_wildcards_limit_counts_only_its_own(Packing::Scoped).await;
}
