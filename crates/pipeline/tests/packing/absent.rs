//! Backends that are not there: Envoy takes their routes, answers for them, and serves everybody else.

use super::claims::{Claims, cluster};
use super::requests::TURN;
use super::world::{World, ingress, object, service};
use echo::grpc::{Reply, Request};
use kinds::{Kind as ObjectKind, Object, kind};
use model::{
    ClusterId, FleetId, PortProtocol, Route,
    cluster::{ClusterOverrides, Protocol},
    route::{Action, Path, PathMatch, UnavailableAnswer, UnavailableShare, WeightedCluster},
};
use pipeline::settings::Packing;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client, client::GrpcAnswer};
use xds::{Changes, Kind};

/// What has changed, without the clusters of the Service `lost` and their endpoints.
fn without_lost(world: &mut World) -> Changes {
    let mut changes = world.pipeline.settle().xds;
    let before = changes.upserts.len();
    let is_cluster = |kind| matches!(kind, Kind::Cluster | Kind::Endpoints);
    changes.upserts.retain(|resource| !is_cluster(resource.kind) || !resource.name.contains("lost"));
    assert!(changes.upserts.len() < before, "a cluster is left out");
    changes
}

async fn an_absent_cluster_is_a_503(packing: Packing) {
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let mut world = World::start(packing, [service("web", backend.ip()), service("lost", backend.ip())]).await;
    world.put([
        ingress("first", "first.example.com", "/", "web"),
        ingress("lost", "lost.example.com", "/", "lost"),
        ingress("wild-lost", "*.example.org", "/", "lost"),
        ingress("last", "last.example.com", "/", "web"),
    ]);
    let changes = without_lost(&mut world);
    // Fails if anything is refused.
    world.proxy.publish(changes).await.unwrap();
    for (host, status) in
        [("first.example.com", 200), ("lost.example.com", 503), ("x.example.org", 503), ("last.example.com", 200)]
    {
        let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))).host(host);
        assert_eq!(client.get("/").await.unwrap().status, status, "{packing:?} {host}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_cluster_is_a_503_in_tables() {
    an_absent_cluster_is_a_503(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_cluster_is_a_503_in_scopes() {
    an_absent_cluster_is_a_503(Packing::Scoped).await;
}

fn of(kind: ObjectKind, name: &str, spec: &Value) -> Object {
    object(kind, &json!({ "metadata": { "namespace": "default", "name": name }, "spec": spec }))
}

/// A mirror that is absent costs nothing but the copies.
async fn an_absent_mirror_gets_no_copies(packing: Packing) {
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let mut world = World::start(packing, [service("web", backend.ip()), service("lost", backend.ip())]).await;
    let mirrored = |name: &str, fqdn: &str| {
        let services = json!([{ "name": "web", "port": 80 }, { "name": "lost", "port": 80, "mirror": true }]);
        let spec = json!({ "virtualhost": { "fqdn": fqdn }, "routes": [{ "services": services }] });
        of(kind::CONTOUR_HTTP_PROXY, name, &spec)
    };
    world.put([mirrored("exact", "a.example.com"), mirrored("wild", "*.example.org")]);
    let changes = without_lost(&mut world);
    world.proxy.publish(changes).await.unwrap();
    for host in ["a.example.com", "A.example.com", "x.example.org"] {
        let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))).host(host);
        let before = backend.running().unwrap().requests();
        assert_eq!(client.get("/").await.unwrap().backend(), Some("web"), "{packing:?} {host}");
        assert_eq!(backend.running().unwrap().requests() - before, 1, "{packing:?} {host}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_mirror_gets_no_copies_in_tables() {
    an_absent_mirror_gets_no_copies(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_mirror_gets_no_copies_in_scopes() {
    an_absent_mirror_gets_no_copies(Packing::Scoped).await;
}

/// Of two services that share requests one is absent: its share is answered with 503, and the other keeps its own.
async fn an_absent_share_is_a_503(packing: Packing) {
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let mut world = World::start(packing, [service("web", backend.ip()), service("lost", backend.ip())]).await;
    let shared = |name: &str, fqdn: &str| {
        let services = json!([{ "name": "web", "port": 80, "weight": 1 }, { "name": "lost", "port": 80, "weight": 1 }]);
        let spec = json!({ "virtualhost": { "fqdn": fqdn }, "routes": [{ "services": services }] });
        of(kind::CONTOUR_HTTP_PROXY, name, &spec)
    };
    world.put([shared("exact", "a.example.com"), shared("wild", "*.example.org")]);
    let changes = without_lost(&mut world);
    world.proxy.publish(changes).await.unwrap();
    for host in ["a.example.com", "A.example.com", "x.example.org"] {
        let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))).host(host);
        let mut counts = [0, 0];
        for _ in 0..100 {
            match client.get("/").await.unwrap().status.as_u16() {
                200 => counts[0] += 1,
                503 => counts[1] += 1,
                other => panic!("{packing:?} {host}: {other}"),
            }
        }
        assert!(counts.iter().all(|count| *count > 0), "{packing:?} {host}: {counts:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_share_is_a_503_in_tables() {
    an_absent_share_is_a_503(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_share_is_a_503_in_scopes() {
    an_absent_share_is_a_503(Packing::Scoped).await;
}

/// Equal hosts have one list of routes, in scopes one that all of them name: an absent cluster closes its own routes on each of them.
async fn an_absent_cluster_is_a_503_on_each_of_equal_hosts(packing: Packing) {
    const PORT: u16 = 9545;
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let mut world = World::start(packing, [service("web", backend.ip()), service("lost", backend.ip())]).await;
    let binding = json!({ "namespace": { "from": "ALL" } });
    let listener = json!({ "port": PORT, "protocol": "HTTP", "securityModel": "XFP", "hostBinding": binding });
    let host = |name: &str| {
        let policy = json!({ "insecure": { "action": "Route" } });
        of(kind::HOST, name, &json!({ "hostname": format!("{name}.example.com"), "requestPolicy": policy }))
    };
    let mapping = |name: &str| {
        of(kind::MAPPING, name, &json!({ "hostname": "*", "prefix": format!("/{name}/"), "service": name }))
    };
    world.put([of(kind::LISTENER, "http", &listener), host("a"), host("b"), mapping("web"), mapping("lost")]);
    let changes = without_lost(&mut world);
    let is_shared =
        |resource: &xds::Resource| resource.kind == Kind::Route && envoy::name::is_shared_routes(&resource.name);
    assert_eq!(changes.upserts.iter().any(is_shared), packing == Packing::Scoped);
    world.proxy.publish(changes).await.unwrap();
    for host in ["a.example.com", "B.example.com"] {
        let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))).host(host);
        for (path, status) in [("/web/", 200), ("/lost/", 503), ("/other/", 404)] {
            assert_eq!(client.get(path).await.unwrap().status, status, "{packing:?} {host}{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_cluster_is_a_503_on_each_of_equal_hosts_in_tables() {
    an_absent_cluster_is_a_503_on_each_of_equal_hosts(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_cluster_is_a_503_on_each_of_equal_hosts_in_scopes() {
    an_absent_cluster_is_a_503_on_each_of_equal_hosts(Packing::Scoped).await;
}

/// Sets the path of a route and its share of requests that no backend gets; without backends it has all of them.
fn unavailable(path: &str, weight: u32, answer: UnavailableAnswer, has_backends: bool) -> impl FnOnce(&mut Route) {
    let path = PathMatch::below(&Path::parse(path).unwrap());
    move |route: &mut Route| {
        route.path = path;
        let Action::Forward(forward) = &mut route.action else { return };
        forward.unavailable = Some(UnavailableShare { weight, answer });
        if has_backends {
            let many = (0..15).map(|_| WeightedCluster::new(cluster("web"), 1_000_000));
            forward.clusters = many.collect();
        } else {
            forward.clusters.clear();
        }
    }
}

/// Backends that cannot be used take their share with an answer of their own, beside those that can.
async fn an_unavailable_share_is_answered(packing: Packing) {
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let mut world = World::start(packing, [service("web", backend.ip())]).await;
    let (internal, unavailable_503) = (UnavailableAnswer::InternalServerError, UnavailableAnswer::ServiceUnavailable);
    let (listener, host) = ("own", "a.example.com");
    let h2c = ClusterOverrides { protocol: Some(Protocol::H2c), ..ClusterOverrides::default() };
    let claims = Claims::new("shares", FleetId::Shared)
        .listener(listener, 9080, PortProtocol::Http, "*")
        .routed(listener, host, "web", unavailable("/share", 15_000_000, internal, true))
        .routed(listener, host, "web", unavailable("/all", 1, internal, false))
        .routed(listener, host, "web", unavailable("/grpc.Gone", 1, unavailable_503, false))
        .routed(listener, host, "web", |route| {
            route.path = PathMatch::below(&Path::parse("/sesame.echo.v1.Echo").unwrap());
            let Action::Forward(forward) = &mut route.action else { return };
            let cluster = ClusterId { overrides: h2c.shared(), ..cluster("web") };
            forward.clusters = vec![WeightedCluster::new(cluster, 1)];
        });
    claims.put(&mut world.pipeline);
    world.publish().await;
    let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 9080))).host(host);
    assert_eq!(client.get("/all/x").await.unwrap().status, 500, "{packing:?}");
    let mut counts = [0, 0];
    for _ in 0..200 {
        match client.get("/share").await.unwrap().status.as_u16() {
            200 => counts[0] += 1,
            500 => counts[1] += 1,
            other => panic!("{packing:?}: {other}"),
        }
    }
    assert!(counts.iter().all(|count| *count >= 60), "{packing:?}: half of the requests each, not {counts:?}");
    // gRPC has statuses of its own: UNAVAILABLE for a backend that is not there, UNIMPLEMENTED where no route matches.
    let client = client.http2();
    for (method, status) in [("/grpc.Gone/Call", 14), ("/other.Service/Call", 12), ("/sesame.echo.v1.Echo/Say", 0)] {
        let call: GrpcAnswer<Reply> = client.grpc(method, &Request::default()).await.unwrap();
        assert_eq!(call.status, Some(status), "{packing:?} {method}: {}", call.message);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unavailable_share_is_answered_in_tables() {
    an_unavailable_share_is_answered(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unavailable_share_is_answered_in_scopes() {
    an_unavailable_share_is_answered(Packing::Scoped).await;
}
