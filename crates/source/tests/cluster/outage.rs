//! A real API server that is away, comes back, and has forgotten its history.

use std::time::{Duration, Instant};

use futures::FutureExt;
use k8s_openapi::api::core::v1::Service;
use kinds::{Kind, kind};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use testbed::{ApiServer, Net, Wire};

use crate::mirror::{Mirror, options};
use crate::real::{CRD, service};

const DELEGATION: Kind = kind::CONTOUR_TLS_CERTIFICATE_DELEGATION;

/// Forgets all history before now.
async fn compact(api: &ApiServer) {
    let etcd = (api.address().ip(), 2379).into();
    let client = testbed::Client::new(etcd);
    let revision = async {
        let answer = client.post("/v3/kv/range", r#"{"key": "AA=="}"#).await.unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        answer["header"]["revision"].as_str().unwrap().to_owned()
    };
    let body = format!(r#"{{"revision": "{}", "physical": true}}"#, revision.await);
    let answer = client.post("/v3/kv/compaction", body).await.unwrap();
    assert_eq!(answer.status, 200, "{:?}", answer.body);
}

/// A client with all rights at the other end of a wire.
fn over(wire: &Wire, api: &ApiServer) -> kube::Client {
    let text = std::fs::read_to_string(api.kubeconfig().unwrap()).unwrap();
    let mut kubeconfig: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cluster = &mut kubeconfig["clusters"][0]["cluster"];
    cluster["server"] = format!("https://{}", wire.address()).into();
    cluster["tls-server-name"] = "kubernetes".into();
    let kubeconfig: kube::config::Kubeconfig = serde_json::from_value(kubeconfig).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options);
    // It names no file and no program, so there is nothing to wait for.
    let mut config = config.now_or_never().unwrap().unwrap();
    config.default_retry = false;
    config.try_into().unwrap()
}

#[tokio::test]
async fn what_happened_meanwhile_is_told_once_and_nothing_else() {
    let api = ApiServer::start().await.unwrap();
    api.apply(CRD).await.unwrap();
    let namespace = api.namespace("outage").await.unwrap();
    let services = Api::<Service>::namespaced(api.client().unwrap(), &namespace);
    for name in ["kept", "edited", "deleted", "remade"] {
        services.create(&PostParams::default(), &service(name, 80)).await.unwrap();
    }
    let wire = Wire::new(Net::here().unwrap().socket(6443), api.address()).await.unwrap();
    let kinds = [kind::NAMESPACE, kind::INGRESS, kind::SERVICE, kind::ENDPOINT_SLICE, DELEGATION];
    let mut mirror = Mirror::start(over(&wire, &api), options(&kinds));
    mirror.synced().await;
    assert_eq!(mirror.of(kind::SERVICE, &namespace).len(), 4);
    let was = |mirror: &Mirror, name: &str| {
        let key = kinds::ObjectRef::new(kind::SERVICE, &*namespace, name);
        mirror.objects.get(&key).map(|object| object.meta().uid.clone())
    };
    let remade = was(&mirror, "remade");

    // Twice: first the watch can go on, then its history is gone.
    for is_forgotten in [false, true] {
        mirror.told.clear();
        wire.cut();
        mirror.until("the outage to be noticed", |mirror| mirror.complaints().contains("cannot be reached")).await;
        let port = if is_forgotten { 82 } else { 81 };
        let patch = serde_json::json!({ "spec": { "ports": [{ "port": port }] } });
        services.patch("edited", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        let (gone, new) = if is_forgotten { ("new", "newer") } else { ("deleted", "new") };
        services.delete(gone, &DeleteParams::default()).await.unwrap();
        services.delete("remade", &DeleteParams::default()).await.unwrap();
        services.create(&PostParams::default(), &service("remade", 80)).await.unwrap();
        services.create(&PostParams::default(), &service(new, 80)).await.unwrap();
        if is_forgotten {
            compact(&api).await;
            api.restart().await.unwrap();
        }
        wire.lead_to(api.address());
        let back = Instant::now();
        mirror.until("the new one", |mirror| mirror.of(kind::SERVICE, &namespace).contains(new)).await;
        mirror.until("the old one to be gone", |mirror| !mirror.of(kind::SERVICE, &namespace).contains(gone)).await;
        mirror.until("the complaint to be over", |mirror| mirror.problems.is_empty()).await;
        println!("caught up {:?} after the wire was mended (forgotten: {is_forgotten})", back.elapsed());
        assert!(back.elapsed() < Duration::from_secs(5));
        mirror.listen(Duration::from_millis(200)).await;
        let told: Vec<_> = mirror.told.iter().filter(|key| key.kind == kind::SERVICE).map(|key| &*key.name).collect();
        assert!(!told.contains(&"kept"), "{told:?}");
        let mut names: Vec<_> = told.clone();
        names.sort_unstable();
        names.dedup();
        let mut expected = ["edited", "remade", gone, new];
        expected.sort_unstable();
        assert_eq!(names, expected);
    }
    assert_ne!(was(&mirror, "remade"), remade);
}

/// A server that has just started knows neither its CRDs nor who may do what; it must not be believed about either.
#[tokio::test]
async fn a_server_that_starts_takes_nothing_away() {
    let api = ApiServer::start().await.unwrap();
    api.apply(CRD).await.unwrap();
    let namespace = api.namespace("start").await.unwrap();
    let delegation = format!(
        "apiVersion: projectcontour.io/v1\nkind: TLSCertificateDelegation\nmetadata: {{name: d, namespace: {namespace}}}\n\
         spec: {{delegations: [{{secretName: s, targetNamespaces: ['*']}}]}}"
    );
    api.apply(&delegation).await.unwrap();
    let mut old = Mirror::start(api.client().unwrap(), options(&[kind::SERVICE, DELEGATION]));
    old.synced().await;
    api.kill().await.unwrap();
    old.until("the outage to be noticed", |mirror| mirror.complaints().contains("cannot be reached")).await;
    let mut new = Mirror::start(api.client().unwrap(), options(&[kind::SERVICE, DELEGATION]));
    let (restarted, ()) = tokio::join!(api.restart(), new.synced());
    restarted.unwrap();
    assert_eq!(new.of(DELEGATION, &namespace).len(), 1, "the first list came too early");
    old.until("the outage to be over", |mirror| mirror.problems.is_empty()).await;
    old.listen(Duration::from_millis(500)).await;
    assert_eq!(old.of(DELEGATION, &namespace).len(), 1, "{:?}", old.told);
}
