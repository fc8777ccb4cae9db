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

/// A mirror of Services, and the way to say something in its watch.
async fn watching() -> (Mirror, tokio::sync::mpsc::UnboundedSender<String>) {
    let (say, answer) = watch();
    let answer = parking_lot::Mutex::new(Some(answer));
    let fake = Fake::start(move |url| match url.contains("watch=") {
        true => answer.lock().take().unwrap_or(Answer::Nothing),
        false => page(1, "", &[]),
    })
    .await;
    let mut mirror = Mirror::start(fake.client(), options(&[kind::SERVICE]));
    mirror.synced().await;
    (mirror, say)
}

#[tokio::test]
async fn nobody_waits_for_a_large_object() {
    let (mut mirror, say) = watching().await;
    // In one piece, so that nothing can come between them.
    let lines = [event("ADDED", &large("large", 2)), event("ADDED", &service("small", 3))].join("\n");
    say.send(lines).unwrap();
    mirror.until("both", |mirror| mirror.objects.len() == 2).await;
    let told: Vec<&str> = mirror.told.iter().map(|key| &*key.name).collect();
    assert_eq!(told, ["small", "large"]);
}

#[tokio::test]
async fn the_events_of_a_large_object_keep_their_order() {
    let (mut mirror, say) = watching().await;
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
    let versions = |mirror: &Mirror| -> Vec<(String, u64)> {
        mirror.objects.iter().map(|(key, object)| (key.name.to_string(), object.meta().resource_version)).collect()
    };
    let expected = [("a", 3), ("c", 7), ("last", 8)].map(|(name, version)| (name.to_owned(), version));
    mirror.until("all of them", |mirror| versions(mirror) == expected).await;
}
