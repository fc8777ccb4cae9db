//! Secrets: watched by name, fetched when they are referred to, and never otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kinds::{ObjectRef, kind};
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use testbed::ApiServer;

use crate::fake::{Answer, Fake, event, page, status, watch};
use crate::mirror::{Mirror, TIMEOUT, hasty, options};
use source::cluster::{Options, Timing};

fn secret(name: &str, value: &str) -> Secret {
    let data = BTreeMap::from([("tls.crt".to_owned(), value.to_owned())]);
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    Secret { metadata, string_data: Some(data), ..Secret::default() }
}

fn content(mirror: &Mirror, key: &ObjectRef) -> Option<String> {
    let secret = mirror.objects.get(key)?.get::<kinds::Secret>()?;
    Some(String::from_utf8(secret.get("tls.crt").ok()??.to_vec()).unwrap())
}

/// What the API server was asked about Secrets, by who it was not: verb and name.
async fn audited(path: &std::path::Path, namespace: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let ours = lines.filter(|line| {
        line["objectRef"]["resource"] == "secrets"
            && line["impersonatedUser"]["username"] == "sesame"
            && (line["objectRef"]["namespace"] == namespace || line["objectRef"]["namespace"].is_null())
    });
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    ours.map(|line| (text(&line["verb"]), text(&line["objectRef"]["name"]))).collect()
}

#[tokio::test]
async fn only_what_is_referred_to_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (policy, log) = (folder.path().join("policy.yaml"), folder.path().join("audit.log"));
    let rules = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived, ResponseStarted]\n\
                 rules: [{level: Metadata, resources: [{group: '', resources: [secrets]}]}]\n";
    std::fs::write(&policy, rules).unwrap();
    let api = ApiServer::config()
        .flag("audit-policy-file", policy.display().to_string())
        .flag("audit-log-path", log.display().to_string())
        .start()
        .await
        .unwrap();
    let namespace = api.namespace("wants").await.unwrap();
    let secrets = Api::<Secret>::namespaced(api.client().unwrap(), &namespace);
    for number in 0..20 {
        secrets.create(&PostParams::default(), &secret(&format!("s-{number}"), "one")).await.unwrap();
    }
    let client = api.client_as("sesame", &["system:masters"]).unwrap();
    let mut mirror = Mirror::start(client, options(&[kind::SECRET]));
    mirror.synced().await;
    let key = |name: &str| ObjectRef::new(kind::SECRET, &*namespace, name);
    mirror.wants.want(key("s-3"));
    mirror.until("the Secret", |mirror| content(mirror, &key("s-3")).as_deref() == Some("one")).await;
    // One that is not there is answered, and told as soon as it is.
    mirror.told.clear();
    mirror.wants.want(key("later"));
    mirror.until("the answer", |mirror| mirror.told == [key("later")]).await;
    secrets.create(&PostParams::default(), &secret("later", "new")).await.unwrap();
    mirror.until("the new one", |mirror| content(mirror, &key("later")).as_deref() == Some("new")).await;
    // A renewal, and changes of others.
    let renewed = Patch::Merge(serde_json::json!({ "stringData": { "tls.crt": "two" } }));
    secrets.patch("s-4", &PatchParams::default(), &renewed).await.unwrap();
    secrets.patch("s-3", &PatchParams::default(), &renewed).await.unwrap();
    mirror.until("the renewal", |mirror| content(mirror, &key("s-3")).as_deref() == Some("two")).await;
    secrets.delete("later", &DeleteParams::default()).await.unwrap();
    mirror.until("it to be gone", |mirror| !mirror.objects.contains_key(&key("later"))).await;
    // No longer wanted: its changes are nobody's business.
    mirror.wants.forget(&key("s-3"));
    let renewed = Patch::Merge(serde_json::json!({ "stringData": { "tls.crt": "three" } }));
    secrets.patch("s-3", &PatchParams::default(), &renewed).await.unwrap();
    assert_eq!(mirror.listen(Duration::from_millis(300)).await, 0);
    // Wanted again.
    mirror.wants.want(key("s-3"));
    mirror.until("the third", |mirror| content(mirror, &key("s-3")).as_deref() == Some("three")).await;

    let look = async || {
        let asked = audited(&log, &namespace).await;
        let gets = asked.iter().filter(|(verb, name)| verb == "get" && name == "s-3").count();
        if gets >= 3 { Ok(asked) } else { Err(format!("{asked:?}")) }
    };
    let asked = testbed::eventually("the audit log", TIMEOUT, look).await.unwrap();
    let read: Vec<_> = asked.iter().filter(|(verb, _)| verb == "get").map(|(_, name)| name.as_str()).collect();
    assert!(read.iter().all(|name| ["s-3", "later"].contains(name)), "{asked:?}");
    println!("asked about Secrets: {asked:?}");
}

/// Every kind that the table marks as fetched is read in the same way.
#[tokio::test]
async fn a_config_map_is_read_when_it_is_referred_to() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("maps").await.unwrap();
    let maps = Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(api.client().unwrap(), &namespace);
    for name in ["a", "b"] {
        let map = serde_json::json!({ "metadata": { "name": name }, "data": { "ca.crt": "one" } });
        maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    }
    let mut mirror = Mirror::start(api.client().unwrap(), options(&[kind::CONFIG_MAP]));
    mirror.synced().await;
    assert_eq!(mirror.of(kind::CONFIG_MAP, &namespace), [].into());
    let key = ObjectRef::new(kind::CONFIG_MAP, &*namespace, "a");
    let held = |mirror: &Mirror| {
        let map = mirror.objects.get(&key)?.get::<kinds::ConfigMap>()?;
        Some(map.data.get("ca.crt").ok()??.to_string())
    };
    mirror.wants.want(key.clone());
    mirror.until("the ConfigMap", |mirror| held(mirror).as_deref() == Some("one")).await;
    let renewed = Patch::Merge(serde_json::json!({ "data": { "ca.crt": "two" } }));
    maps.patch("a", &PatchParams::default(), &renewed).await.unwrap();
    mirror.until("the change", |mirror| held(mirror).as_deref() == Some("two")).await;
    assert_eq!(mirror.of(kind::CONFIG_MAP, &namespace), ["a"].into());
}

#[tokio::test]
async fn a_refusal_is_an_answer_and_takes_nothing_away() {
    let stage = Arc::new(AtomicUsize::new(0));
    let (say, answer) = watch();
    let answer = parking_lot::Mutex::new(Some(answer));
    let now = stage.clone();
    let fake = Fake::start(move |url| match url {
        "/readyz" => Answer::Text(200, "ok".to_owned()),
        url if url.contains("watch=") => answer.lock().take().unwrap_or(Answer::Cut),
        url if url.contains("/secrets/a") => match now.load(Ordering::SeqCst) {
            1 => Answer::Text(
                200,
                r#"{"metadata": {"name": "a", "namespace": "n"}, "data": {"tls.crt": "b25l"}}"#.into(),
            ),
            3 => status(404, "not found"),
            _ => status(500, "etcd is unwell"),
        },
        _ => page(7, "", &[]),
    })
    .await;
    let key = ObjectRef::new(kind::SECRET, "n", "a");
    let mut mirror = Mirror::start(fake.client(), options(&[kind::SECRET]));
    mirror.synced().await;
    mirror.wants.want(key.clone());
    mirror.until("the answer", |mirror| mirror.told == [key.clone()]).await;
    assert!(mirror.complaints().contains("etcd is unwell"), "{}", mirror.complaints());
    stage.store(1, Ordering::SeqCst);
    mirror.until("the Secret", |mirror| content(mirror, &key).as_deref() == Some("one")).await;
    assert!(mirror.problems.is_empty());
    let head =
        |version: u64| format!(r#"{{"metadata": {{"name": "a", "namespace": "n", "resourceVersion": "{version}"}}}}"#);
    stage.store(2, Ordering::SeqCst);
    say.send(event("ADDED", &head(9))).unwrap();
    mirror.until("the complaint", |mirror| !mirror.problems.is_empty()).await;
    assert!(mirror.objects.contains_key(&key), "what was read before stays in force");
    stage.store(3, Ordering::SeqCst);
    say.send(event("DELETED", &head(10))).unwrap();
    mirror.until("it to be gone", |mirror| mirror.objects.is_empty() && mirror.problems.is_empty()).await;
}

/// The watch is silent, so nobody but the fetch can find that the server is back; and it is forbidden.
#[tokio::test]
async fn a_fetch_that_is_forbidden_ends_an_outage() {
    let fake = server(|_| status(403, "secrets is forbidden")).await;
    let mut mirror = Mirror::start(fake.client(), options(&[kind::SECRET]));
    mirror.synced().await;
    fake.down(true);
    mirror.wants.want(key("n", "a"));
    mirror.until("the outage", |mirror| mirror.complaints().contains("cannot be reached")).await;
    fake.down(false);
    mirror.until("the end of the outage", |mirror| !mirror.complaints().contains("cannot be reached")).await;
    mirror.until("the refusal", |mirror| mirror.complaints().contains("secrets is forbidden")).await;
}

fn key(namespace: &str, name: &str) -> ObjectRef {
    ObjectRef::new(kind::SECRET, namespace, name)
}

/// A server that is ready, watches in silence, and answers about Secrets as it is told.
async fn server(secret: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Fake {
    let watches = parking_lot::Mutex::new(Vec::new());
    Fake::start(move |url| match url {
        "/readyz" => Answer::Text(200, "ok".to_owned()),
        url if url.contains("watch=") => {
            let (sender, answer) = watch();
            watches.lock().push(sender);
            answer
        }
        url if url.contains("/secrets/") => secret(url),
        _ => page(7, "", &[]),
    })
    .await
}

fn content_of(url: &str) -> Answer {
    let (path, name) = url.rsplit_once('/').unwrap();
    let namespace = path.split('/').nth(4).unwrap();
    let metadata = format!(r#"{{"name": "{name}", "namespace": "{namespace}"}}"#);
    Answer::Text(200, format!(r#"{{"metadata": {metadata}, "data": {{"tls.crt": "b25l"}}}}"#))
}

#[tokio::test]
async fn three_thousand_requests_of_one_namespace_that_hang_hold_up_nobody_and_are_answered_in_the_end() {
    let fake = server(|url| match url.contains("/namespaces/hostile/") {
        true => Answer::Nothing,
        false => content_of(url),
    })
    .await;
    let mut mirror = Mirror::start(fake.client(), options(&[kind::SECRET]));
    mirror.synced().await;
    for number in 0..3000 {
        mirror.wants.want(key("hostile", &format!("s-{number}")));
    }
    for number in 0..20 {
        let mine = key("mine", &format!("s-{number}"));
        mirror.wants.want(mine.clone());
        mirror.until("another's Secret", |mirror| content(mirror, &mine).as_deref() == Some("one")).await;
    }
    assert!(fake.asked("/namespaces/hostile/").len() <= 16, "some of each namespace at once");
    // Each is answered, though most of them were never asked for: they would have to wait for minutes.
    let reported = |mirror: &Mirror| mirror.told.iter().filter(|key| &*key.namespace == "hostile").count();
    mirror.until("the answers", |mirror| reported(mirror) == 3000).await;
    assert!(mirror.complaints().contains("no answer within"), "of those that were asked for");
    assert!(mirror.complaints().contains("nothing of its namespace is answered"), "of those that were not");
    assert!(fake.asked("/namespaces/hostile/").len() < 300);
}

#[tokio::test]
async fn a_refused_name_is_asked_for_less_and_less_and_no_more_when_nobody_wants_it() {
    let fake = server(|url| match url.contains("/forbidden") {
        true => status(403, "secrets is forbidden"),
        false => status(400, "that is no name"),
    })
    .await;
    let timing =
        Timing { shortest_pause: Duration::from_millis(50), refused_pause: Duration::from_secs(300), ..hasty() };
    let mut mirror = Mirror::start(fake.client(), Options { timing, ..options(&[kind::SECRET]) });
    mirror.synced().await;
    let keys = [key("n", "forbidden"), key("n", "odd")];
    for key in &keys {
        mirror.wants.want(key.clone());
    }
    mirror.until("both answers", |mirror| mirror.told.len() == 2).await;
    assert!(mirror.complaints().contains("forbidden") && mirror.complaints().contains("that is no name"));
    let asked = |name: &str| fake.asked(&format!("/secrets/{name}")).len();
    let look = async || (asked("forbidden") >= 4 && asked("odd") >= 4).then_some(()).ok_or("not yet");
    testbed::eventually("both to be asked for again", TIMEOUT, look).await.unwrap();
    assert_eq!(mirror.told.len(), 2, "what was said is not said again");
    for key in &keys {
        mirror.wants.forget(key);
    }
    // What is wanted after them is asked for after they were forgotten; the pause of either would be over before its own is.
    let after = key("n", "after");
    mirror.wants.want(after.clone());
    mirror.until("the last answer", |mirror| mirror.told.contains(&after)).await;
    let before = (asked("forbidden"), asked("odd"));
    let look = async || (asked("after") >= 6).then_some(()).ok_or("not yet");
    testbed::eventually("the last to be asked for often", TIMEOUT, look).await.unwrap();
    assert_eq!((asked("forbidden"), asked("odd")), before, "they were asked for after they were forgotten");
}

#[tokio::test]
async fn a_busy_server_is_asked_no_sooner_than_it_wants_and_the_answer_does_not_wait_for_it() {
    let is_busy = Arc::new(AtomicUsize::new(1));
    let now = is_busy.clone();
    let fake = server(move |url| match now.load(Ordering::SeqCst) {
        1 => Answer::Busy(3600),
        _ => content_of(url),
    })
    .await;
    let timing = Timing { refused_pause: Duration::from_secs(3600), ..hasty() };
    let mut mirror = Mirror::start(fake.client(), Options { timing, ..options(&[kind::SECRET]) });
    mirror.synced().await;
    mirror.wants.want(key("n", "a"));
    mirror.until("the answer", |mirror| mirror.told == [key("n", "a")]).await;
    assert!(mirror.complaints().contains("busy"), "{}", mirror.complaints());
    assert_eq!(fake.asked("/secrets/a").len(), 1, "it was asked again too soon");
    // Another is not its concern, and who wants it anew need not wait.
    is_busy.store(0, Ordering::SeqCst);
    mirror.wants.want(key("n", "b"));
    mirror.until("another", |mirror| content(mirror, &key("n", "b")).is_some()).await;
    mirror.wants.forget(&key("n", "a"));
    mirror.wants.want(key("n", "a"));
    mirror.until("the first", |mirror| content(mirror, &key("n", "a")).is_some()).await;
}

#[tokio::test]
async fn while_the_server_is_away_nothing_is_answered_and_then_everything_is() {
    let fake = server(content_of).await;
    let hour = Duration::from_secs(3600);
    let timing = Timing { longest_pause: hour, shortest_pause: hour, ..hasty() };
    let mut mirror = Mirror::start(fake.client(), Options { timing, ..options(&[kind::SECRET]) });
    mirror.synced().await;
    fake.down(true);
    for number in 0..20 {
        mirror.wants.want(key("n", &format!("s-{number}")));
    }
    let look = async || {
        (fake.asked("/secrets/").len() >= 8 && fake.asked("/readyz").len() >= 8).then_some(()).ok_or("not yet")
    };
    testbed::eventually("the server to be asked in vain", TIMEOUT, look).await.unwrap();
    // Longer than the deadline.
    assert_eq!(mirror.listen(2 * timing.fetch).await, 0, "{}", mirror.complaints());
    assert!(mirror.complaints().contains("cannot be reached"));
    fake.down(false);
    mirror.wants.want(key("other", "s"));
    mirror.until("all answers", |mirror| mirror.told.len() == 21 && mirror.problems.is_empty()).await;
}
