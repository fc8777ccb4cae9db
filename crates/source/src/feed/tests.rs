//! What the listener hears, in which batches, and when sources wait.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::ChangeSource;
use kinds::{Object, kind};
use std::time::Duration;
use tokio::time::timeout;

fn object(name: &str) -> Object {
    let json = format!(r#"{{"metadata": {{"name": "{name}"}}}}"#);
    kinds::decode_json(kind::SERVICE, json.as_bytes()).unwrap().object
}

fn set(name: &str) -> Update {
    let object = object(name);
    let change = Change { key: object.key(), object: Some(object), source: ChangeSource::Cluster };
    Update { changes: vec![change], ..Update::default() }
}

fn gone(name: &str) -> Update {
    let change = Change { key: object(name).key(), object: None, source: ChangeSource::Cluster };
    Update { changes: vec![change], ..Update::default() }
}

async fn next(feed: &mut Feed) -> Batch {
    timeout(Duration::from_secs(10), feed.next()).await.expect("waited for a batch").expect("a source is left")
}

#[tokio::test]
async fn changes_gather_while_the_listener_is_busy_and_the_last_one_counts() {
    let (feeder, mut feed) = feed(CAPACITY);
    for update in [set("a"), set("b"), gone("a"), set("c"), gone("c"), set("c")] {
        feeder.send(update).await.unwrap();
    }
    let batch = next(&mut feed).await;
    let heard: Vec<_> = batch.changes.iter().map(|change| (&*change.key.name, change.object.is_some())).collect();
    assert_eq!(heard, [("a", false), ("b", true), ("c", true)]);
    assert!(!batch.synced);
}

#[tokio::test]
async fn a_waiting_listener_hears_at_once() {
    let (feeder, mut feed) = feed(CAPACITY);
    let listener = tokio::spawn(async move { next(&mut feed).await });
    tokio::task::yield_now().await;
    feeder.send(set("a")).await.unwrap();
    assert_eq!(listener.await.unwrap().changes.len(), 1);
}

#[tokio::test]
async fn a_source_that_runs_ahead_waits() {
    let (feeder, mut feed) = feed(2);
    feeder.send(set("a")).await.unwrap();
    feeder.send(set("b")).await.unwrap();
    let mut third = Box::pin(feeder.send(set("c")));
    assert!(futures::poll!(&mut third).is_pending());
    assert_eq!(next(&mut feed).await.changes.len(), 2);
    timeout(Duration::from_secs(10), third).await.expect("waited for room").unwrap();
    assert_eq!(next(&mut feed).await.changes.len(), 1);
}

#[tokio::test]
async fn synced_is_said_once_every_source_has_said_so() {
    let (mut one, mut feed) = feed(CAPACITY);
    let mut two = one.another();
    one.send(set("a")).await.unwrap();
    one.synced();
    one.synced();
    assert!(!next(&mut feed).await.synced);
    assert!(futures::poll!(Box::pin(feed.next())).is_pending());
    two.synced();
    let batch = next(&mut feed).await;
    assert!(batch.synced && batch.changes.is_empty());
    assert!(futures::poll!(Box::pin(feed.next())).is_pending());
    two.send(set("b")).await.unwrap();
    assert!(next(&mut feed).await.synced);
}

#[tokio::test]
async fn a_source_that_ends_early_leaves_the_whole_unsynced() {
    let (one, mut feed) = feed(CAPACITY);
    let mut two = one.another();
    drop(one);
    two.send(set("a")).await.unwrap();
    two.synced();
    assert!(!next(&mut feed).await.synced);
    drop(two);
    assert_eq!(feed.next().await, None);
}

#[tokio::test]
async fn problems_of_a_subject_replace_each_other() {
    let (feeder, mut feed) = feed(CAPACITY);
    let subject = Subject::Source("x".into());
    let problem = Problem::new(model::Code::NotYaml, "first");
    for problems in [vec![problem.clone(), problem], vec![]] {
        feeder.send(Update { problems: [(subject.clone(), problems)].into(), ..Update::default() }).await.unwrap();
    }
    assert_eq!(next(&mut feed).await.problems, BTreeMap::from([(subject, vec![])]));
}

#[tokio::test]
async fn sources_learn_that_nobody_listens() {
    let (feeder, feed) = feed(1);
    feeder.send(set("a")).await.unwrap();
    let mut stuck = Box::pin(feeder.send(set("b")));
    assert!(futures::poll!(&mut stuck).is_pending());
    drop(feed);
    assert_eq!(timeout(Duration::from_secs(10), stuck).await.expect("waited for the end"), Err(Closed));
    assert_eq!(feeder.send(set("c")).await, Err(Closed));
    timeout(Duration::from_secs(10), feeder.closed()).await.expect("waited for the end");
}

#[tokio::test]
async fn some_are_taken_before_the_others() {
    let (feeder, mut feed) = feed(3);
    for update in [set("a"), set("b"), set("c")] {
        feeder.send(update).await.unwrap();
    }
    let taken = feed.take_only(|key| &*key.name == "b");
    assert_eq!(taken.iter().map(|change| &*change.key.name).collect::<Vec<_>>(), ["b"]);
    assert_eq!(feed.take_only(|key| &*key.name == "b"), [], "it is not taken twice");
    // There is room again, and a later change still takes the place of an earlier one.
    feeder.send(gone("c")).await.unwrap();
    feeder.send(set("b")).await.unwrap();
    let batch = next(&mut feed).await;
    let heard: Vec<_> = batch.changes.iter().map(|change| (&*change.key.name, change.object.is_some())).collect();
    assert_eq!(heard, [("a", true), ("c", false), ("b", true)]);
}
