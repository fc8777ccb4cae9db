#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use kinds::Kind;
use model::{Code, ObjectRef};

fn key() -> ObjectKey {
    ObjectKey::new(Kind::Service, "shop", "web")
}

fn verdict(code: Code, message: &str) -> Verdict {
    Verdict::new(code, ObjectRef::new("Service", "shop", "web").at(""), message)
}

fn said(messages: &[&str]) -> Said {
    Some(Arc::new(messages.iter().map(|message| verdict(Code::NoEndpoints, message)).collect()))
}

/// Tells everything that waits; gives what was told.
fn tell(all: &mut Announcements, now: Instant) -> Vec<(String, bool)> {
    let mut told = Vec::new();
    while let Some(it) = all.next(now, |_| None) {
        told.push((it.verdict.message.to_string(), it.is_new));
        all.done(&it, Announced::Said("u".to_owned()), now);
    }
    told
}

fn new(message: &str) -> (String, bool) {
    (message.to_owned(), true)
}

#[test]
fn each_verdict_is_told_once_and_again_when_it_comes_back() {
    let (mut all, now) = (Announcements::default(), Instant::now());
    all.translated(&key(), said(&["a", "b"]), true, now);
    assert_eq!(tell(&mut all, now), [new("a"), new("b")]);
    all.translated(&key(), said(&["a", "b", "c"]), true, now);
    assert_eq!(tell(&mut all, now), [new("c")]);
    all.translated(&key(), said(&["a"]), true, now);
    all.translated(&key(), said(&["a", "b"]), true, now);
    assert_eq!(tell(&mut all, now), [new("b")]);
    all.translated(&key(), said(&[]), true, now);
    assert!(all.entries.is_empty() && all.next_at().is_none());
}

#[test]
fn what_stands_is_told_again_when_it_was_forgotten() {
    let (mut all, now) = (Announcements::default(), Instant::now());
    all.translated(&key(), said(&["a"]), false, now);
    assert_eq!(tell(&mut all, now), [("a".to_owned(), false)]);
    let hour = now + Duration::from_secs(3_600);
    assert!(tell(&mut all, hour).is_empty());
    assert_eq!(tell(&mut all, hour + Duration::from_secs(60)), [("a".to_owned(), false)]);
}

#[test]
fn of_many_the_gravest_are_told() {
    let (mut all, now) = (Announcements::default(), Instant::now());
    let mut verdicts: Vec<Verdict> = (0..40).map(|n| verdict(Code::NoEndpoints, &format!("{n:02}"))).collect();
    verdicts.push(verdict(Code::ExternalNameOff, "grave"));
    all.translated(&key(), Some(Arc::new(verdicts)), true, now);
    let it = all.next(now, |_| None).unwrap();
    assert_eq!(it.more, 31);
    all.done(&it, Announced::Said("u".to_owned()), now);
    let told = tell(&mut all, now);
    assert_eq!(told.len(), TOLD - 1);
    assert!(it.verdict.message.contains("grave") || told.contains(&new("grave")));
}

#[test]
fn another_object_of_the_name_is_told_of_anew() {
    let (mut all, now) = (Announcements::default(), Instant::now());
    all.translated(&key(), said(&["a"]), false, now);
    all.read(&key(), vec![verdict(Code::NotDecodable, "r")], false, now);
    assert_eq!(tell(&mut all, now).len(), 2);
    all.observe(&key(), Some("u".to_owned()), now);
    assert!(tell(&mut all, now).is_empty());
    all.observe(&key(), Some("v".to_owned()), now);
    assert_eq!(tell(&mut all, now).len(), 2);
    all.translated(&key(), None, true, now);
    all.read(&key(), Vec::new(), true, now);
    assert!(all.entries.is_empty());
}

#[test]
fn failures_wait() {
    let (mut all, now) = (Announcements::default(), Instant::now());
    all.translated(&key(), said(&["a"]), true, now);
    let it = all.next(now, |_| None).unwrap();
    assert!(all.next(now, |_| None).is_none());
    all.done(&it, Announced::Failed, now);
    assert!(all.next(now, |_| None).is_none());
    assert_eq!(tell(&mut all, now + RETRY.0), [new("a")]);
}
