#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use kinds::Kind;
use model::{Code, ObjectRef};

fn announcement(message: &str) -> Announcement {
    let key = ObjectKey::new(Kind::Ingress, "shop", "web");
    let field = "spec.rules[0].http.paths[1].backend.service.port";
    let verdict = Verdict::new(Code::ServicePortNotFound, ObjectRef::new("Ingress", "shop", "web").at(field), message);
    Announcement { key, uid: None, verdict, more: 0, is_new: true }
}

fn made(it: &Announcement, uid: &str) -> Event {
    event(it, uid, "sesame-0", Timestamp::UNIX_EPOCH)
}

#[test]
fn an_event_says_what_is_wrong_where_and_what_to_do() {
    let event = made(&announcement("Service shop/cart has no port 8081"), "u");
    assert_eq!(
        event.note.unwrap(),
        "SES3002: spec.rules[0].http.paths[1].backend.service.port: Service shop/cart has no port 8081; \
         use a port number or name from the Service's spec.ports"
    );
    assert_eq!((event.reason.as_deref(), event.type_.as_deref()), (Some("SES3002"), Some("Warning")));
    let regarding = event.regarding.unwrap();
    assert_eq!(regarding.uid.as_deref(), Some("u"));
    assert_eq!(regarding.api_version.as_deref(), Some("networking.k8s.io/v1"));
}

#[test]
fn the_same_thing_has_the_same_name() {
    let name = |message: &str, uid: &str| made(&announcement(message), uid).metadata.name.unwrap();
    assert_eq!(name("a", "u"), name("a", "u"));
    assert_ne!(name("a", "u"), name("b", "u"));
    assert_ne!(name("a", "u"), name("a", "v"));
    let mut long = announcement("a");
    long.key.name = format!("{}-{}", "x".repeat(235), "y".repeat(17)).into();
    let name = made(&long, "u").metadata.name.unwrap();
    assert!(name.len() <= 253 && !name.contains("-."), "{name}");
}

#[test]
fn a_long_message_leaves_room_for_what_to_do() {
    let mut it = announcement(&"é".repeat(2_000));
    it.more = 5;
    let note = made(&it, "u").note.unwrap();
    assert!(
        note.len() <= NOTE && note.ends_with("…; use a port number or name from the Service's spec.ports (and 5 more)")
    );
}
