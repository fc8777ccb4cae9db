//! Objects of some megabytes in a watch: others do not wait for them, and each keeps the order of its own events.

use kinds::kind;

use crate::fake::{Answer, Fake, event, page, service, watch};
use crate::mirror::{Mirror, options};

/// A Service that takes a while to decode.
fn large(name: &str, version: u64) -> String {
    let ports: Vec<String> = (0..60_000).map(|port| format!(r#"{{"name": "port-{port}", "port": {port}}}"#)).collect();
    let meta = format!(r#"{{"name": "{name}", "namespace": "n", "resourceVersion": "{version}"}}"#);
    format!(r#"{{"metadata": {meta}, "spec": {{"ports": [{}]}}}}"#, ports.join(","))
}

/// A mirror of Services, the way to say something in its watch, and the server that it watches.
async fn watching() -> (Mirror, tokio::sync::mpsc::UnboundedSender<String>, Fake) {
    let (say, answer) = watch();
    let answer = parking_lot::Mutex::new(Some(answer));
    let fake = Fake::start(move |url| match url.contains("watch=") {
        true => answer.lock().take().unwrap_or(Answer::Nothing),
        false => page(1, "", &[]),
    })
    .await;
    let mut mirror = Mirror::start(fake.client(), options(&[kind::SERVICE]));
    mirror.synced().await;
    (mirror, say, fake)
}

/// The names of all changes in the order in which they were told.
fn reported(mirror: &Mirror) -> Vec<&str> {
    mirror.told.iter().map(|key| &*key.name).collect()
}

/// What there is, with its versions.
fn versions(mirror: &Mirror) -> Vec<(&str, u64)> {
    mirror.objects.iter().map(|(key, object)| (&*key.name, object.meta().resource_version)).collect()
}

#[tokio::test]
async fn nobody_waits_for_a_large_object() {
    let (mut mirror, say, _fake) = watching().await;
    // In one piece, so that nothing can come between them.
    let lines = [event("ADDED", &large("large", 2)), event("ADDED", &service("small", 3))].join("\n");
    say.send(lines).unwrap();
    mirror.until("both", |mirror| mirror.objects.len() == 2).await;
    assert_eq!(reported(&mirror), ["small", "large"]);
}

#[tokio::test]
async fn the_events_of_a_large_object_keep_their_order() {
    let (mut mirror, say, _fake) = watching().await;
    let events = [
        event("ADDED", &large("a", 2)),
        event("MODIFIED", &service("a", 3)),
        event("ADDED", &large("b", 4)),
        event("DELETED", &large("b", 5)),
        event("ADDED", &large("c", 6)),
        event("MODIFIED", &large("c", 7)),
        event("ADDED", &service("last", 8)),
    ];
    say.send(events.join("\n")).unwrap();
    // The watch ends while the last of them is decoded.
    drop(say);
    mirror.until("all of them", |mirror| versions(mirror) == [("a", 3), ("c", 7), ("last", 8)]).await;
}

#[tokio::test]
async fn nobody_waits_for_an_object_that_is_written_again_and_again() {
    let (mut mirror, say, fake) = watching().await;
    let mut events = vec![event("ADDED", &large("large", 2))];
    events.extend((3..12).map(|version| event("MODIFIED", &large("large", version))));
    events.push(event("ADDED", &service("small", 12)));
    say.send(events.join("\n")).unwrap();
    mirror.until("the newest", |mirror| versions(mirror) == [("large", 11), ("small", 12)]).await;
    // The one that was being decoded when the others came, and the newest of these; both may be told at once.
    let told = reported(&mirror).join(" ");
    assert!(["small large large", "small large"].contains(&&*told), "{told}");
    // The next watch begins where this one ends, and not where the last object was decoded.
    drop(say);
    let next = || fake.asked("watch=").len() > 1;
    while !next() {
        mirror.listen(std::time::Duration::from_millis(10)).await;
    }
    let asked = fake.asked("watch=");
    assert!(asked[1].contains("resourceVersion=12"), "{asked:?}");
}

#[tokio::test]
async fn what_waits_for_a_large_object_is_the_newest_whatever_it_is() {
    let (mut mirror, say, _fake) = watching().await;
    let events = [
        event("ADDED", &large("gone", 2)),
        event("MODIFIED", &large("gone", 3)),
        event("DELETED", &large("gone", 4)),
        event("ADDED", &large("back", 5)),
        event("DELETED", &large("back", 6)),
        event("ADDED", &service("back", 7)),
        event("ADDED", &service("small", 8)),
    ];
    say.send(events.join("\n")).unwrap();
    mirror.until("the newest of each", |mirror| versions(mirror) == [("back", 7), ("small", 8)]).await;
    assert_eq!(reported(&mirror)[0], "small");
}
