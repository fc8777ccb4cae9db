//! Mappings that share the same requests, through a real Envoy, as a list and as a tree: each gets its part, and what they leave goes
//! on to the next route; a shadow gets copies of its part. A path in any case keeps its meaning in a tree.

use super::requests::TURN;
use super::world::{World, object, service};
use kinds::{Object, kind};
use pipeline::settings::Packing;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};
use testbed::{Backend, Client, eventually};

/// How many requests are counted.
const REQUESTS: u32 = 800;
/// Long enough for copies to arrive on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

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
        mapping("copied", &json!({ "prefix": "/copied/", "service": "c" })),
        mapping("copies", &json!({ "prefix": "/copied/", "service": "copies", "shadow": true, "weight": 30 })),
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

/// By how much the share of a backend may differ, in percent of all requests: five standard deviations.
fn tolerance(percent: f64) -> f64 {
    5.0 * (percent * (100.0 - percent) / f64::from(REQUESTS)).sqrt()
}

fn in_percent(count: u32) -> f64 {
    f64::from(count) * 100.0 / f64::from(REQUESTS)
}

/// Whether a backend got about so many in a hundred.
fn is_about(answers: &BTreeMap<String, u32>, backend: &str, percent: f64) {
    let found = in_percent(answers.get(backend).copied().unwrap_or_default());
    assert!((found - percent).abs() <= tolerance(percent), "{backend}: {found} %, not {percent} %: {answers:?}");
}

/// Whether a backend gets a copy of about so many in a hundred of the requests that another answers.
async fn is_copied(copies: &Backend, percent: f64) {
    let count = || u32::try_from(copies.running().unwrap().requests()).unwrap();
    let before = count();
    is_about(&answers("/copied/").await, "c", 100.0);
    // Nobody waits for a copy: the last ones arrive after the answers.
    let enough = async || match count() - before {
        found if in_percent(found) > percent - tolerance(percent) => Ok(()),
        found => Err(found),
    };
    eventually("enough copies", TIMEOUT, enough).await.unwrap();
    is_about(&[("copies".to_owned(), count() - before)].into(), "copies", percent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_gets_its_part_and_what_is_left_goes_on() {
    let _turn = TURN.lock().await;
    let backends =
        [Backend::start("a").await.unwrap(), Backend::start("b").await.unwrap(), Backend::start("c").await.unwrap()];
    let copies = Backend::start("copies").await.unwrap();
    let [a, b, c] = backends.each_ref().map(Backend::ip);
    let named = [("a", a), ("b", b), ("c", c), ("copies", copies.ip())];
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
        is_copied(&copies, 30.0).await;
        let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))).host("a.example.com");
        for (path, expected) in [("/any/case/x", "b"), ("/ANY/CASE/x", "b"), ("/any/cases", "a"), ("/ANY/cases", "c")] {
            let answer = client.get(path).await.unwrap();
            assert_eq!(answer.backend(), Some(expected), "{path} with {more} more");
        }
    }
}
