//! Equal messages encode to equal bytes, in whatever order they were built: versions are hashes of these bytes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use envoy_api::envoy::config::core::v3::Metadata;
use envoy_api::envoy::config::route::v3 as route;
use envoy_api::envoy::extensions::filters::http::router::v3::Router;
use envoy_api::google::protobuf::Struct;
use envoy_api::{Message, any, unpack};

/// A virtual host with eight entries in each of its maps, inserted from a different start and in both directions.
fn virtual_host(turn: usize) -> route::VirtualHost {
    let mut order: Vec<usize> = (0..8).map(|i| (i + turn) % 8).collect();
    if turn % 2 == 1 {
        order.reverse();
    }
    let mut host = route::VirtualHost { name: "a.example.com".to_owned(), ..Default::default() };
    let mut metadata = Metadata::default();
    for i in order {
        host.typed_per_filter_config.insert(format!("envoy.filters.http.number_{i}"), any(&Router::default()));
        let fields = Struct { fields: [(format!("key-{i}"), "value".into())].into() };
        metadata.filter_metadata.insert(format!("io.sesame.{i}"), fields);
    }
    host.metadata = Some(metadata);
    host
}

#[test]
fn equal_messages_encode_to_equal_bytes() {
    let distinct: BTreeSet<Vec<u8>> = (0..100).map(|turn| virtual_host(turn).encode_to_vec()).collect();
    assert_eq!(distinct.len(), 1, "100 equal virtual hosts gave {} different encodings", distinct.len());
}

#[test]
fn decoding_and_encoding_again_changes_nothing() {
    let bytes = virtual_host(3).encode_to_vec();
    assert_eq!(route::VirtualHost::decode(bytes.as_slice()).unwrap().encode_to_vec(), bytes);
}

#[test]
fn clones_of_an_any_share_its_bytes() {
    let packed = any(&virtual_host(0));
    assert_eq!(packed.clone().value.as_ptr(), packed.value.as_ptr());
    assert_eq!(packed.type_url, "type.googleapis.com/envoy.config.route.v3.VirtualHost");
}

#[test]
fn unpacking_as_another_type_says_which_it_was() {
    let error = unpack::<Router>(&any(&virtual_host(0))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a message of type type.googleapis.com/envoy.extensions.filters.http.router.v3.Router, \
         found type.googleapis.com/envoy.config.route.v3.VirtualHost"
    );
}
