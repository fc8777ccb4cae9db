//! Mappings that share the same requests, through a real Envoy, as a list and as a tree: each gets its part, and what they leave goes
//! on to the next route. A path in any case keeps its meaning in a tree.

use super::requests::TURN;
use super::world::{World, object, service};
use kinds::{Object, kind};
use pipeline::settings::Packing;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
};
use testbed::{Backend, Client};

/// How many requests are counted.
const REQUESTS: u32 = 800;

fn mapping(name: &str, spec: &Value) -> Object {
    let mut spec = spec.clone();
    spec["hostname"] = "*".into();
    object(kind::MAPPING, &json!({ "metadata": { "namespace": "default", "name": name }, "spec": spec }))
}

/// A Listener on the shared port, a Host for every name, and Mappings; with `more` of them, routes are a tree.
fn objects(backends: &[(&str, Ipv4Addr)], more: usize) -> Vec<Object> {
    let binding = json!({ "namespace": { "from": "ALL" } });
    let spec = json!({ "port": 8080, "protocol": "HTTP", "securityModel": "XFP", "hostBinding": binding });
    let meta = |name: &str| json!({ "namespace": "default", "name": name });
    let action = json!({ "insecure": { "action": "Route" } });
    let mut objects = vec![
        object(kind::LISTENER, &json!({ "metadata": meta("http"), "spec": spec })),
        object(kind::HOST, &json!({ "metadata": meta("any"), "spec": { "hostname": "*", "requestPolicy": action } })),
        mapping("ten", &json!({ "prefix": "/shared/", "service": "a", "weight": 10 })),
        mapping("forty", &json!({ "prefix": "/shared/", "service": "b", "weight": 40 })),
        mapping("rest", &json!({ "prefix": "/shared/", "service": "c" })),
        mapping("some", &json!({ "prefix": "/left/", "service": "a", "weight": 10 })),
        mapping("more", &json!({ "prefix": "/left/", "service": "b", "weight": 20 })),
        mapping("cased", &json!({ "prefix": "/Any/Case/", "service": "b", "case_sensitive": false })),
        mapping("below", &json!({ "prefix": "/any/case", "service": "a" })),
        mapping("every", &json!({ "prefix": "/", "service": "c" })),
    ];
    objects.extend(
        (0..more).map(|at| mapping(&format!("more-{at}"), &json!({ "prefix": format!("/{at}x/"), "service": "c" }))),
    );
    objects.extend(backends.iter().map(|(name, at)| service(name, *at)));
    objects
}

async fn answers(prefix: &str) -> BTreeMap<String, u32> {
    let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))).host("a.example.com");
    let mut answers = BTreeMap::new();
    for at in 0..REQUESTS {
        let answer = client.get(&format!("{prefix}{at}")).await.unwrap();
        *answers.entry(answer.backend().unwrap_or("none").to_owned()).or_default() += 1;
    }
    answers
}

/// Whether a backend got about so many in a hundred: five standard deviations at most away.
fn is_about(answers: &BTreeMap<String, u32>, backend: &str, percent: f64) {
    let found = f64::from(answers.get(backend).copied().unwrap_or_default()) * 100.0 / f64::from(REQUESTS);
    let deviation = (percent * (100.0 - percent) / f64::from(REQUESTS)).sqrt();
    assert!((found - percent).abs() < 5.0 * deviation, "{backend}: {found} %, not {percent} %: {answers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_gets_its_part_and_what_is_left_goes_on() {
    let _turn = TURN.lock().await;
    let backends =
        [Backend::start("a").await.unwrap(), Backend::start("b").await.unwrap(), Backend::start("c").await.unwrap()];
    let named = [("a", backends[0].ip()), ("b", backends[1].ip()), ("c", backends[2].ip())];
    for (packing, more) in [(Packing::Plain, 0), (Packing::Scoped, 0), (Packing::Scoped, 60)] {
        let _world = World::start(packing, objects(&named, more)).await;
        let shared = answers("/shared/").await;
        is_about(&shared, "a", 10.0);
        is_about(&shared, "b", 40.0);
        is_about(&shared, "c", 50.0);
        let left = answers("/left/").await;
        is_about(&left, "a", 10.0);
        is_about(&left, "b", 20.0);
        is_about(&left, "c", 70.0);
        let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))).host("a.example.com");
        for (path, expected) in [("/any/case/x", "b"), ("/ANY/CASE/x", "b"), ("/any/cases", "a"), ("/ANY/cases", "c")] {
            let answer = client.get(path).await.unwrap();
            assert_eq!(answer.backend(), Some(expected), "{path} with {more} more");
        }
    }
}
