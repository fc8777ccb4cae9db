//! Slots: filters that come by ECDS. A filled one reaches open connections; one that is gone is what its default is. The slots that only
//! marked requests pass are filled in the tests of JWT and of Emissary's AuthService.

use super::requests::TURN;
use super::world::{World, http_port, https_port, ingress, ingress_with, secret, service, settings};
use envoy::listener::slots::Slot;
use envoy_api::envoy::config::core::v3::TypedExtensionConfig;
use envoy_api::envoy::config::rbac::v3::{Rbac as Rules, rbac::Action};
use envoy_api::envoy::extensions::filters::http::rbac::v3::Rbac;
use envoy_api::{Message, any};
use model::PortId;
use pipeline::settings::Packing;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client, certs::Ca, envoy::Config};
use xds::{Changes, Kind, Resource};

/// Fills a slot with a filter that refuses every request.
fn filled(port: &PortId, slot: Slot) -> Resource {
    let nobody = Rules { action: Action::Allow.into(), ..Default::default() };
    let typed_config = Some(any(&Rbac { rules: Some(nobody), ..Default::default() }));
    let name = envoy::name::slot(port, slot);
    let message = TypedExtensionConfig { name: name.clone(), typed_config };
    Resource::new(Kind::Extension, name, message.encode_to_vec())
}

async fn a_filled_slot_protects_open_connections(packing: Packing) {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("slots"));
    let objects = [
        service("web", backend.ip()),
        secret(&ca, "own", "own.example.com"),
        secret(&ca, "wild", "*.wild.com"),
        ingress_with("own", "own.example.com", "/", "web", &json!({}), &[("own.example.com", "own")]),
        ingress_with("wild", "*.wild.com", "/", "web", &json!({}), &[("*.wild.com", "wild")]),
        ingress("plain", "plain.example.com", "/", "web"),
    ];
    // It is ready, and no listener warms: slots that nobody fills are published as well.
    let mut world = World::with(&settings(packing), Config::new().name("slots"), objects).await;
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let https = |host: &str| Client::new(at(8443)).host(host).https().sni(host).trust(&ca);
    let hosts = [
        (http_port(), Client::new(at(8080)).host("plain.example.com")),
        (https_port(), https("own.example.com")),
        (https_port(), https("own.example.com").http2()),
        (https_port(), https("x.wild.com")),
    ];
    let mut open = Vec::new();
    for (port, client) in hosts {
        let connection = client.connect().await.unwrap();
        assert_eq!(connection.get("/").await.unwrap().status, 200);
        open.push((port, connection));
    }
    let slot = Slot::RateLimit;
    for port in [http_port(), https_port()] {
        world.proxy.publish(Changes { upserts: vec![filled(&port, slot)], removes: Vec::new() }).await.unwrap();
        for (of, connection) in &open {
            let status = if *of == port { 403 } else { 200 };
            assert_eq!(connection.get("/").await.unwrap().status, status, "{packing:?} {slot} of {port}: {of}");
        }
        let gone = (Kind::Extension, envoy::name::slot(&port, slot).into());
        world.proxy.publish(Changes { upserts: Vec::new(), removes: vec![gone] }).await.unwrap();
        for (of, connection) in &open {
            let emptied = async || match connection.get("/").await.unwrap().status.as_u16() {
                200 => Ok(()),
                status => Err(format!("{status} on {of}")),
            };
            testbed::eventually("an empty slot", std::time::Duration::from_secs(20), emptied).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filled_slot_protects_open_connections_in_tables() {
    a_filled_slot_protects_open_connections(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filled_slot_protects_open_connections_in_scopes() {
    a_filled_slot_protects_open_connections(Packing::Scoped).await;
}
