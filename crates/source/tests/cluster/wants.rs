//! Secrets: watched by name, fetched when they are referred to, and never otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kinds::{Kind, ObjectKey};
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use testbed::ApiServer;

use crate::fake::{Answer, Fake, event, page, status, watch};
use crate::mirror::{Mirror, PATIENCE, options};

fn secret(name: &str, value: &str) -> Secret {
    let data = BTreeMap::from([("tls.crt".to_owned(), value.to_owned())]);
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    Secret { metadata, string_data: Some(data), ..Secret::default() }
}

fn content(mirror: &Mirror, key: &ObjectKey) -> Option<String> {
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
    let mut mirror = Mirror::start(client, options(&[Kind::Secret]));
    mirror.synced().await;
    let key = |name: &str| ObjectKey::new(Kind::Secret, &*namespace, name);
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
    let asked = testbed::eventually("the audit log", PATIENCE, look).await.unwrap();
    let read: Vec<_> = asked.iter().filter(|(verb, _)| verb == "get").map(|(_, name)| name.as_str()).collect();
    assert!(read.iter().all(|name| ["s-3", "later"].contains(name)), "{asked:?}");
    println!("asked about Secrets: {asked:?}");
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
    let key = ObjectKey::new(Kind::Secret, "n", "a");
    let mut mirror = Mirror::start(fake.client(), options(&[Kind::Secret]));
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
