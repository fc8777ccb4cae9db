//! What the generated code writes is read; what nobody would write is refused, and nothing panics.

use envoy_api::Message;
use envoy_api::envoy::config::core::v3::Node;
use envoy_api::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use envoy_api::google::rpc;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;
use crate::resource::is_of_stand_in;

fn rejection(text: &str) -> Option<rpc::Status> {
    Some(rpc::Status { code: 3, message: text.to_owned(), ..Default::default() })
}

fn owned(names: &[Name]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

proptest! {
    #[test]
    fn a_delta_request_is_read_as_it_was_written(
        url in ".*",
        subscribe in vec(".*", 0..5),
        unsubscribe in vec(".*", 0..5),
        held in btree_map(".*", any::<u64>(), 0..5),
        nonce in any::<u64>(),
        error in ".*",
    ) {
        let versions = held.iter().map(|(name, version)| (name.clone(), format!("{version:016x}"))).collect();
        let message = DeltaDiscoveryRequest {
            node: Some(Node { id: "me".to_owned(), ..Default::default() }),
            type_url: url.clone(),
            resource_names_subscribe: subscribe.clone(),
            resource_names_unsubscribe: unsubscribe.clone(),
            initial_resource_versions: versions,
            response_nonce: format!("{nonce:x}"),
            error_detail: rejection(&error),
            ..Default::default()
        };
        let read = decode(Style::Delta, &message.encode_to_vec().into(), &Limits::default()).expect("a request");
        prop_assert_eq!(read.type_url, url);
        prop_assert_eq!(read.nonce, Some(nonce));
        prop_assert_eq!(read.error, Some(error));
        prop_assert_eq!(Node::decode(&read.node.expect("a node")[..]).expect("a node").id, "me");
        let Subscription::Delta { subscribe: plus, unsubscribe: minus, initial_versions: has } = read.subscription else { panic!("delta") };
        prop_assert_eq!((owned(&plus), owned(&minus)), (subscribe, unsubscribe));
        let has: Vec<(String, u64)> = has.iter().map(|(name, version)| (name.to_owned(), version)).collect();
        prop_assert_eq!(has, held.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_sotw_request_is_read_as_it_was_written(url in ".*", names in vec(".*", 0..5), version in any::<u64>()) {
        let message = DiscoveryRequest {
            version_info: format!("{version:016x}"),
            node: Some(Node::default()),
            type_url: url.clone(),
            resource_names: names.clone(),
            ..Default::default()
        };
        let read = decode(Style::Sotw, &message.encode_to_vec().into(), &Limits::default()).expect("a request");
        prop_assert_eq!((read.type_url, read.nonce, read.error), (url, None, None));
        let Subscription::Sotw { names: all, version: has } = read.subscription else { panic!("state of the world") };
        prop_assert_eq!((owned(&all), has), (names, Some(version)));
    }

    #[test]
    fn whatever_comes_nothing_panics(bytes in vec(any::<u8>(), 0..500), sotw in any::<bool>()) {
        let style = if sotw { Style::Sotw } else { Style::Delta };
        let _ = decode(style, &bytes.into(), &Limits::default());
    }

    /// Bytes that are almost a request: the lengths and tags of one, changed in places.
    #[test]
    fn whatever_is_changed_nothing_panics(places in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let message = DeltaDiscoveryRequest {
            node: Some(Node { id: "me".to_owned(), cluster: "us".to_owned(), ..Default::default() }),
            type_url: "type.googleapis.com/x".to_owned(),
            resource_names_subscribe: vec!["a".to_owned(), "b".to_owned()],
            initial_resource_versions: [("a".to_owned(), "1".to_owned())].into(),
            error_detail: rejection("no"),
            ..Default::default()
        };
        let mut bytes = message.encode_to_vec();
        for (place, byte) in places {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        let bytes = bytes.into();
        let _ = decode(Style::Delta, &bytes, &Limits::default());
        let _ = decode(Style::Sotw, &bytes, &Limits::default());
    }
}

#[test]
fn names_are_counted_before_they_are_kept() {
    let names = vec![String::new(); 11];
    let message = DeltaDiscoveryRequest { resource_names_subscribe: names, ..Default::default() };
    let limits = Limits { names: 10, ..Limits::default() };
    assert_eq!(decode(Style::Delta, &message.encode_to_vec().into(), &limits).err(), Some(Malformed::Names(10)));
}

#[test]
fn a_type_url_is_not_kept_however_long_it_is() {
    let type_url = "x".repeat(10 << 20);
    let delta = DeltaDiscoveryRequest { type_url: type_url.clone(), ..Default::default() };
    let sotw = DiscoveryRequest { type_url, ..Default::default() };
    for (style, bytes) in [(Style::Delta, delta.encode_to_vec()), (Style::Sotw, sotw.encode_to_vec())] {
        let refused = decode(style, &bytes.into(), &Limits::default()).err();
        assert_eq!(refused, Some(Malformed::TypeUrl(10 << 20)), "{style:?}");
    }
}

/// Not even one that is a number: nor is it taken for one of something that stands in.
#[test]
fn a_foreign_version_never_matches() {
    for foreign in ["v1-of-somebody", "7", "0000000000000007f"] {
        let message = DiscoveryRequest { version_info: foreign.to_owned(), ..Default::default() };
        let read = decode(Style::Sotw, &message.encode_to_vec().into(), &Limits::default()).expect("a request");
        let Subscription::Sotw { version: Some(version), .. } = read.subscription else { panic!("state of the world") };
        assert_eq!(version, u64::MAX - 1);
        assert!(!is_of_stand_in(version));
    }
}
