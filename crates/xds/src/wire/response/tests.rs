//! What is spliced is what the generated code reads.

use envoy_api::Message as _;
use envoy_api::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse};

use super::*;
use crate::kind::Kind;
use crate::resource::{Entry, Resource};

fn response(style: Style, count: usize, removed: &[&str]) -> Response {
    let entry = |at: usize| {
        let resource = Resource::new(Kind::Route, format!("r{at:05}"), format!("body {at}").into_bytes());
        Arc::new(Entry::new(resource, 2 * at as u64 + 2))
    };
    Response {
        kind: Kind::Route,
        style,
        nonce: 0x2a,
        version: 7,
        upserts: (0..count).map(entry).collect(),
        removed: removed.iter().map(|name| Name::from(*name)).collect(),
    }
}

fn bytes(message: &Message) -> Vec<u8> {
    let all = [&message.head[..], &message.body[..]].concat();
    let (head, rest) = all.split_at(5);
    assert_eq!(head[0], 0, "not compressed");
    assert_eq!(u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize, rest.len());
    rest.to_vec()
}

#[test]
fn delta_is_read_back() {
    for count in [0, 1, 3000] {
        let cache = ResponseCache::new("me".to_owned());
        let (message, _) = cache.message(&response(Style::Delta, count, &["x", "y"]));
        let read = DeltaDiscoveryResponse::decode(&bytes(&message)[..]).expect("a response");
        assert_eq!((read.nonce.as_str(), read.type_url.as_str()), ("2a", Kind::Route.type_url()));
        assert_eq!(read.removed_resources, ["x", "y"]);
        assert_eq!(read.control_plane.expect("said").identifier, "me");
        assert_eq!(read.resources.len(), count);
        for (at, resource) in read.resources.iter().enumerate() {
            assert_eq!(
                (resource.name.as_str(), resource.version.as_str()),
                (format!("r{at:05}").as_str(), format!("{:016x}", 2 * at + 2).as_str())
            );
            let any = resource.resource.as_ref().expect("a body");
            assert_eq!(
                (any.type_url.as_str(), &any.value[..]),
                (Kind::Route.type_url(), format!("body {at}").as_bytes())
            );
        }
    }
}

#[test]
fn state_of_the_world_is_read_back_from_the_same_bytes() {
    let cache = ResponseCache::new("me".to_owned());
    let (message, _) = cache.message(&response(Style::Sotw, 2, &[]));
    let read = DiscoveryResponse::decode(&bytes(&message)[..]).expect("a response");
    assert_eq!((read.nonce.as_str(), read.version_info.as_str()), ("2a", "0000000000000007"));
    assert_eq!(&read.resources[1].value[..], b"body 1");
    assert_eq!(read.control_plane.expect("said").identifier, "me");
}

#[test]
fn the_same_is_encoded_once_and_shared_in_memory() {
    let cache = ResponseCache::new("me".to_owned());
    let (first, encoded) = cache.message(&response(Style::Delta, 3000, &[]));
    assert!(encoded);
    let (second, encoded) = cache.message(&Response { nonce: 1, ..response(Style::Delta, 3000, &[]) });
    assert!(!encoded);
    assert_eq!(first.body.as_ptr(), second.body.as_ptr());
    assert_ne!(first.head, second.head, "the nonce is its own");
    drop((first, second));
    let (_, encoded) = cache.message(&response(Style::Delta, 3000, &[]));
    assert!(encoded, "a large one is not kept for nobody");
    let small = || cache.message(&response(Style::Delta, 1, &[])).1;
    assert_eq!((small(), small()), (true, false), "a small one is");
}

#[test]
fn different_responses_are_told_apart() {
    let cache = ResponseCache::new("me".to_owned());
    let all = [
        response(Style::Delta, 2, &[]),
        response(Style::Delta, 1, &[]),
        response(Style::Sotw, 2, &[]),
        response(Style::Delta, 2, &["ab"]),
        response(Style::Delta, 2, &["a", "b"]),
        Response { version: 8, ..response(Style::Delta, 2, &[]) },
        Response { kind: Kind::Cluster, ..response(Style::Delta, 2, &[]) },
    ];
    assert!(all.iter().all(|response| cache.message(response).1));
}

/// A table is measured by what its entries say of themselves, so none of them may say too little.
#[test]
fn no_entry_takes_more_than_it_says() {
    for kind in Kind::ALL {
        for (name, body) in [("", 0), ("a", 127), ("a/long/name/indeed", 128), ("x", 1 << 21)] {
            let entry = Entry::new(Resource::new(kind, name, vec![0; body]), u64::MAX);
            for style in [Style::Delta, Style::Sotw] {
                let len = Layout::new(kind, style, &entry).len();
                assert!(len <= entry.bytes(), "{kind} {style:?}: {len} > {}", entry.bytes());
            }
        }
    }
}
