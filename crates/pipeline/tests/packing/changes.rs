//! Hosts that come, change and go while others are asked for: nobody else's requests are lost, and a new host answers
//! from the moment that its scope is there.

use super::world::{World, https_scope, ingress, ingress_with, secret, service};
use pipeline::settings::Packing;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client, Load, certs::Ca};

pub async fn run(backends: [Backend; 3]) {
    let ca = Ca::new("packing");
    let none = json!({});
    let objects = backends.iter().map(|backend| service(backend.name(), backend.ip()));
    let mut world = World::start(Packing::Scoped, objects).await;
    world.put([
        ingress("steady", "steady.org", "/", "exact"),
        secret(&ca, "wild", "*.example.com"),
        ingress_with("wild", "*.example.com", "/", "wild", &none, &[("*.example.com", "wild")]),
    ]);
    world.publish().await;
    let http = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)));
    let https = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8443))).https().host("x.example.com");
    let load = Load::of(http.clone().host("steady.org").get("/")).per_second(100).start();
    let encrypted = Load::of(https.clone().get("/")).per_second(50).start();
    load.answered(20).await;

    // The first exact host beside a wildcard: its scope, and its name in the listener's map.
    let exact = ingress_with("exact", "e.example.com", "/", "exact", &none, &[("e.example.com", "wild")]);
    let (set, gone) = {
        world.put([exact.clone()]);
        world.publish().await
    };
    assert!(set.contains(&format!("srds {}", https_scope("e.example.com"))), "{set:?}");
    assert!(gone.is_empty(), "{gone:?}");
    assert_eq!(https.clone().host("e.example.com").get("/").await.unwrap().backend(), Some("exact"));
    assert_eq!(https.get("/").await.unwrap().backend(), Some("wild"));

    for round in 0..20 {
        let name = format!("n{round}");
        let host = format!("{name}.new.com");
        let object = ingress(&name, &host, "/", ["exact", "wild", "any"][round % 3]);
        world.put([object.clone()]);
        world.publish().await;
        let answer = http.clone().host(&host).get("/").await.unwrap();
        assert_eq!(answer.backend(), Some(["exact", "wild", "any"][round % 3]));
        world.put([ingress(&name, &host, "/moved", "any")]);
        world.publish().await;
        assert_eq!(http.clone().host(&host).get("/").await.unwrap().status, 404);
        assert_eq!(http.clone().host(&host).get("/moved").await.unwrap().backend(), Some("any"));
        world.remove(&object);
        world.publish().await;
        assert_eq!(http.clone().host(&host).get("/moved").await.unwrap().status, 404);
    }
    world.remove(&exact);
    world.publish().await;
    assert_eq!(https.get("/").await.unwrap().backend(), Some("wild"));
    load.stop().await.assert_nothing_lost();
    encrypted.stop().await.assert_nothing_lost();
}
