//! Mappings whose `load_balancer` keeps a client on one endpoint, through a real Envoy: by the cookie that it is given, by a header, or by
//! its address.

use super::requests::TURN;
use super::world::{World, object};
use kinds::{Object, kind};
use pipeline::settings::Packing;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::{Ipv4Addr, SocketAddr},
};
use testbed::{Backend, Client};

/// How many clients there are: enough that not all of them are sent to one endpoint.
const CLIENTS: u8 = 20;
/// How often each of them asks, on a connection of its own each time.
const REQUESTS: usize = 5;

fn mapping(name: &str, balancer: &Value) -> Object {
    let spec = json!({
        "hostname": "*", "prefix": format!("/{name}/"), "service": "web", "resolver": "endpoint", "load_balancer": balancer,
    });
    object(kind::MAPPING, &json!({ "metadata": { "namespace": "default", "name": name }, "spec": spec }))
}

fn objects(endpoints: [Ipv4Addr; 2]) -> Vec<Object> {
    let meta = |name: &str| json!({ "namespace": "default", "name": name });
    let binding = json!({ "namespace": { "from": "ALL" } });
    let listener = json!({ "port": 8080, "protocol": "HTTP", "securityModel": "XFP", "hostBinding": binding });
    let host = json!({ "hostname": "*", "requestPolicy": { "insecure": { "action": "Route" } } });
    let mut service = meta("web");
    let listed = endpoints.map(|at| format!("{at}:80")).join(",");
    service["annotations"] = json!({ "projectsesame.io/endpoints": listed });
    vec![
        object(kind::LISTENER, &json!({ "metadata": meta("http"), "spec": listener })),
        object(kind::HOST, &json!({ "metadata": meta("any"), "spec": host })),
        mapping("cookie", &json!({ "policy": "ring_hash", "cookie": { "name": "sticky", "ttl": "60s" } })),
        mapping("header", &json!({ "policy": "maglev", "header": "x-user" })),
        mapping("address", &json!({ "policy": "ring_hash", "source_ip": true })),
        object(kind::SERVICE, &json!({ "metadata": service, "spec": { "ports": [{ "port": 80 }] } })),
    ]
}

fn client() -> Client {
    Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))).host("a.example.com")
}

/// The only backend that answers a client; there is a failure where several do.
async fn only_backend(client: &Client, path: &str) -> String {
    let mut found = BTreeSet::new();
    for _ in 0..REQUESTS {
        let answer = client.get(path).await.unwrap();
        assert_eq!(answer.header("set-cookie"), None, "{path}");
        found.insert(answer.backend().unwrap_or("none").to_owned());
    }
    assert_eq!(found.len(), 1, "{path}: {found:?}");
    found.pop_first().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_stays_with_the_endpoint_that_its_cookie_header_or_address_leads_to() {
    let _turn = TURN.lock().await;
    let (one, two) = (Backend::start("one").await.unwrap(), Backend::start("two").await.unwrap());
    let _world = World::start(Packing::Scoped, objects([one.ip(), two.ip()])).await;
    let mut seen: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for number in 1..=CLIENTS {
        let first = client().get("/cookie/").await.unwrap();
        let cookie = first.header("set-cookie").unwrap().split(';').next().unwrap();
        assert!(cookie.starts_with("sticky="), "{cookie}");
        let by_cookie = only_backend(&client().header("cookie", cookie), "/cookie/").await;
        assert_eq!(first.backend(), Some(by_cookie.as_str()), "{cookie}");
        let by_header = only_backend(&client().header("x-user", &format!("user-{number}")), "/header/").await;
        let by_address = only_backend(&client().from(Ipv4Addr::new(127, 0, 0, number)), "/address/").await;
        for (key, backend) in [("cookie", by_cookie), ("header", by_header), ("address", by_address)] {
            seen.entry(key).or_default().insert(backend);
        }
    }
    let both = BTreeSet::from(["one".to_owned(), "two".to_owned()]);
    assert!(seen.values().all(|backends| *backends == both), "{seen:?}");
}
