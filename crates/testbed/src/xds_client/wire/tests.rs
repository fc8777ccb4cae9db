#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use envoy_api::envoy::config::cluster::v3::Cluster;
use envoy_api::envoy::service::discovery::v3 as discovery;
use envoy_api::{Message, any};

use super::*;

fn cluster(name: &str) -> Cluster {
    Cluster { name: name.into(), alt_stat_name: "x".repeat(300), ..Default::default() }
}

#[test]
fn a_delta_response_is_read_as_it_was_written() {
    let resource = |name: &str| discovery::Resource {
        name: name.into(),
        version: format!("v-{name}"),
        resource: Some(any(&cluster(name))),
        ..Default::default()
    };
    let response = discovery::DeltaDiscoveryResponse {
        system_version_info: "7".into(),
        type_url: "url".into(),
        nonce: "n".into(),
        resources: vec![resource("a"), resource("b")],
        removed_resources: vec!["\nodd".into(), "gone".into()],
        control_plane: Some(Default::default()),
        ..Default::default()
    };
    let raw = super::response(&response.encode_to_vec().into(), true).unwrap();
    assert_eq!((&*raw.version, &*raw.type_url, &*raw.nonce), ("7", "url", "n"));
    assert_eq!(raw.removed, ["\nodd", "gone"]);
    let read: Vec<Resource> = raw.resources.iter().map(|bytes| delta_resource(bytes).unwrap()).collect();
    assert_eq!(read.iter().map(|r| (&*r.name, &*r.version)).collect::<Vec<_>>(), [("a", "v-a"), ("b", "v-b")]);
    assert_eq!(Cluster::decode(read[0].message.clone().unwrap()).unwrap(), cluster("a"));
}

#[test]
fn a_state_of_the_world_response_is_read_as_it_was_written() {
    let response = discovery::DiscoveryResponse {
        version_info: "7".into(),
        type_url: "url".into(),
        nonce: "n".into(),
        resources: vec![any(&cluster("a"))],
        canary: true,
        control_plane: Some(envoy_api::envoy::config::core::v3::ControlPlane { identifier: "x".into() }),
        ..Default::default()
    };
    let raw = super::response(&response.encode_to_vec().into(), false).unwrap();
    assert!(raw.removed.is_empty());
    let read = sotw_resource(&raw.resources[0], &raw.version).unwrap();
    assert_eq!((&*read.name, &*read.version), ("a", "7"));
}

#[test]
fn what_is_no_message_is_noticed() {
    for bytes in [&[0x0a, 5, 1][..], &[0x0a], &[0x0b], &[0xff; 11], &[0x09, 1, 2], &[0x22, 1, 0xff]] {
        assert_eq!(super::response(&Bytes::copy_from_slice(bytes), true).unwrap_err(), Malformed, "{bytes:?}");
    }
}
