//! One bad object hurts only itself: an object whose resource a real Envoy refuses, among a hundred others.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "quarantine/bed.rs"]
mod bed;
#[path = "quarantine/script.rs"]
mod script;
#[path = "packing/world.rs"]
#[allow(dead_code, reason = "shared with the tests of packings")]
mod world;

use bed::{Bed, TIMEOUT};
use model::{Code, ObjectRef};
use pipeline::settings::Packing;
use replicas::Role;
use std::{collections::BTreeSet, time::Instant};
use testbed::{Backend, Client, Load, eventually, within};
use world::{ingress, service};

const MANY: usize = 100;
/// The path of which routes are made such that Envoy refuses them.
const SPOILED: &str = "/spoiled";

fn host(number: usize) -> String {
    format!("h{number}.example.com")
}

fn others(path: &str) -> impl Iterator<Item = kinds::Object> {
    (0..MANY).map(move |number| ingress(&format!("h{number}"), &host(number), path, "web"))
}

fn bad(path: &str) -> kinds::Object {
    ingress("bad", "bad.example.com", path, "web")
}

async fn answers(client: &Client, host: &str, path: &str, wanted: u16) {
    let look = async || match client.clone().host(host).get(path).await.unwrap().status.as_u16() {
        status if status == wanted => Ok(()),
        other => Err(other),
    };
    eventually(format!("{host}{path} to answer {wanted}"), TIMEOUT, look).await.unwrap();
}

async fn served(client: &Client, host: &str, path: &str) {
    answers(client, host, path, 200).await;
}

/// The object that was refused, and nobody else.
fn culprit() -> BTreeSet<ObjectRef> {
    [ObjectRef::new(kinds::kind::INGRESS, "default", "bad")].into()
}

async fn edit_and_mend(packing: Packing) {
    let backend = Backend::start("web").await.unwrap();
    let mut bed = Bed::start(packing, SPOILED).await;
    bed.put([service("web", backend.ip()), bad("/good")]);
    bed.put(others("/"));
    bed.publish();
    let envoy = bed.envoy("first").await;
    let client = Client::new(bed.http());
    for number in 0..MANY {
        served(&client, &host(number), "/").await;
    }
    served(&client, "bad.example.com", "/good").await;
    let load = Load::of(client.clone().host("h0.example.com").get("/new")).per_second(100).start();
    load.answered(5).await;

    // The bad one and half of the others change at the same time.
    let begun = Instant::now();
    bed.put([bad(SPOILED)]);
    bed.put(others("/new").take(MANY / 2));
    bed.publish();
    bed.until("the object is blamed", |bed| bed.refused() == culprit()).await;
    let blamed = begun.elapsed();
    bed.settled().await;
    for number in 0..MANY {
        // What was there before served the new path, too, so the edit shows by what it no longer serves.
        answers(&client, &host(number), "/", if number < MANY / 2 { 404 } else { 200 }).await;
        served(&client, &host(number), "/new").await;
    }
    let told = bed.verdicts[&ObjectRef::new(kinds::kind::INGRESS, "default", "bad")].clone();
    println!("{packing:?}: blamed after {blamed:?}, all others updated after {:?}: {told:?}", begun.elapsed());
    assert!(told.iter().any(|verdict| verdict.code == Code::EnvoyRejected && verdict.message.contains("missing )")));

    // A proxy that had something of the host's own keeps it; in a table that all hosts share that cannot be said.
    let answer = client.clone().host("bad.example.com").get("/good").await.unwrap();
    match packing {
        Packing::Scoped => assert_eq!(answer.status, 200),
        Packing::Plain => assert_eq!((answer.status.as_u16(), answer.text().contains("SES8001")), (503, true)),
    }
    load.stop().await.assert_nothing_lost();

    // One that comes meanwhile is told why, and has everybody else.
    envoy.kill().await.unwrap();
    let fresh = bed.envoy("second").await;
    bed.settled().await;
    let answer = client.clone().host("bad.example.com").get("/good").await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.text().contains("SES8001")), (503, true));
    let line = within("the access log", TIMEOUT, fresh.process().log().line("SES8001")).await.unwrap().unwrap();
    assert!(line.contains(r#""origin_kind":"Ingress""#) && line.contains(r#""origin_name":"bad""#), "{line}");
    served(&client, "h0.example.com", "/new").await;
    bed.pipeline.self_check().unwrap();

    // An edit that leaves the fault leaves the hold; one that mends it ends it.
    let begun = Instant::now();
    bed.put([bad("/mended")]);
    bed.publish();
    served(&client, "bad.example.com", "/mended").await;
    println!("{packing:?}: healed after {:?}", begun.elapsed());
    assert!(bed.refused().is_empty());
    assert!(bed.withheld.is_empty());
    bed.pipeline.self_check().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn in_scopes_an_edit_that_is_refused_hurts_only_itself() {
    edit_and_mend(Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_table_an_edit_that_is_refused_hurts_only_itself() {
    edit_and_mend(Packing::Plain).await;
}

async fn refused_from_the_start(packing: Packing) {
    let backend = Backend::start("web").await.unwrap();
    let mut bed = Bed::start(packing, SPOILED).await;
    bed.put([service("web", backend.ip()), bad(SPOILED), ingress("wild", "*.example.org", SPOILED, "web")]);
    bed.put(others("/"));
    bed.publish();
    let begun = Instant::now();
    let envoy = bed.envoy("first");
    let blamed: BTreeSet<_> = ["bad", "wild"].map(|name| ObjectRef::new(kinds::kind::INGRESS, "default", name)).into();
    let _envoy = envoy.await;
    bed.until("both are blamed", |bed| bed.refused() == blamed).await;
    bed.settled().await;
    let client = Client::new(bed.http());
    for number in 0..MANY {
        served(&client, &host(number), "/").await;
    }
    println!("{packing:?}: two found, all others served after {:?}, with the start of Envoy", begun.elapsed());
    for host in ["bad.example.com", "x.example.org"] {
        assert_eq!(client.clone().host(host).get("/").await.unwrap().status, 503, "{host}");
    }
    bed.pipeline.self_check().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn in_scopes_what_is_refused_from_the_start_is_found() {
    refused_from_the_start(Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_table_what_is_refused_from_the_start_is_found() {
    refused_from_the_start(Packing::Plain).await;
}

async fn shared_between_replicas(packing: Packing) {
    let backend = Backend::start("web").await.unwrap();
    let (mut a, mut b) = (Bed::start(packing, SPOILED).await, Bed::start(packing, SPOILED).await);
    a.replicas.take(Role::Leader);
    b.replicas.take(Role::Follower(a.address.to_string().into()));
    for bed in [&mut a, &mut b] {
        bed.put([service("web", backend.ip()), bad("/good")]);
        bed.put(others("/").take(20));
        bed.publish();
    }
    let _first = a.envoy("first").await;
    let mut events = b.server.events();
    let begun = Instant::now();
    for bed in [&mut a, &mut b] {
        bed.put([bad(SPOILED)]);
        bed.publish();
    }
    a.until("the object is blamed", |bed| bed.refused() == culprit()).await;
    b.until("the object is blamed on the other replica", |bed| bed.refused() == culprit()).await;
    println!("{packing:?}: known on both replicas after {:?}", begun.elapsed());

    // The other replica's proxy is told why, and was never asked.
    let _second = b.envoy("second").await;
    b.settled().await;
    let client = Client::new(b.http());
    served(&client, "h0.example.com", "/").await;
    let answer = client.clone().host("bad.example.com").get("/good").await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.text().contains("SES8001")), (503, true));
    while let Ok(event) = events.try_recv() {
        assert!(!matches!(event, xds::Event::Rejected(_)), "{event:?}");
    }

    for bed in [&mut a, &mut b] {
        bed.put([bad("/mended")]);
        bed.publish();
    }
    for bed in [&mut a, &mut b] {
        served(&Client::new(bed.http()), "bad.example.com", "/mended").await;
        bed.until("nobody is blamed", |bed| bed.refused().is_empty() && bed.withheld.is_empty()).await;
        bed.pipeline.self_check().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_scopes_a_hold_is_shared_between_replicas() {
    shared_between_replicas(Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_table_a_hold_is_shared_between_replicas() {
    shared_between_replicas(Packing::Plain).await;
}

/// A Mapping for every Host.
fn mapping(name: &str, prefix: &str) -> kinds::Object {
    let spec = serde_json::json!({ "hostname": "*", "prefix": prefix, "service": "web" });
    let meta = serde_json::json!({ "namespace": "default", "name": name });
    world::object(kinds::kind::MAPPING, &serde_json::json!({ "metadata": meta, "spec": spec }))
}

/// The port of a Listener of Emissary.
const PORT: u16 = 9549;

/// Routes that Hosts share are refused as one resource, which is traced to those who wrote them.
#[tokio::test(flavor = "multi_thread")]
async fn shared_routes_that_are_refused_are_traced_to_their_objects() {
    let backend = Backend::start("web").await.unwrap();
    let mut bed = Bed::start(Packing::Scoped, SPOILED).await;
    let of = |kind, name: &str, spec: serde_json::Value| {
        let meta = serde_json::json!({ "namespace": "default", "name": name });
        world::object(kind, &serde_json::json!({ "metadata": meta, "spec": spec }))
    };
    let binding = serde_json::json!({ "namespace": { "from": "ALL" } });
    let spec = serde_json::json!({ "port": PORT, "protocol": "HTTP", "securityModel": "XFP", "hostBinding": binding });
    bed.put([of(kinds::kind::LISTENER, "http", spec), service("web", backend.ip())]);
    bed.put(["a", "b"].map(|name| {
        let policy = serde_json::json!({ "insecure": { "action": "Route" } });
        let spec = serde_json::json!({ "hostname": format!("{name}.example.com"), "requestPolicy": policy });
        of(kinds::kind::HOST, name, spec)
    }));
    bed.put([mapping("good", "/good/"), mapping("bad", "/bad/")]);
    bed.publish();
    let envoy = bed.envoy("first").await;
    let client = Client::new((bed.http().ip(), PORT).into());
    for host in ["a.example.com", "b.example.com"] {
        served(&client, host, "/bad/").await;
    }
    bed.put([mapping("bad", SPOILED)]);
    bed.publish();
    let authors: BTreeSet<_> = ["bad", "good"].map(|name| ObjectRef::new(kinds::kind::MAPPING, "default", name)).into();
    bed.until("they are blamed", |bed| bed.refused() == authors).await;
    bed.settled().await;
    for host in ["a.example.com", "b.example.com"] {
        served(&client, host, "/bad/").await;
    }
    envoy.kill().await.unwrap();
    let _fresh = bed.envoy("second").await;
    bed.settled().await;
    for host in ["a.example.com", "b.example.com"] {
        let answer = client.clone().host(host).get("/good/").await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.text().contains("SES8001")), (503, true), "{host}");
    }
    bed.put([mapping("bad", "/mended/")]);
    bed.publish();
    for host in ["a.example.com", "b.example.com"] {
        served(&client, host, "/mended/").await;
    }
    bed.until("nobody is blamed", |bed| bed.refused().is_empty() && bed.withheld.is_empty()).await;
    bed.pipeline.self_check().unwrap();
}
