//! Replicas that follow one configuration: they agree within a second, and an Envoy that moves from one to another is sent nothing.

use std::time::{Duration, Instant};

use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::json;
use testbed::{Backend, Client, Envoy, Net, Wire, eventually};

use crate::bed::{Bed, Replica, TIMEOUT, app};

/// How long replicas may differ: in most of the ten changes a second, in each what a busy machine adds.
const AGREED: Duration = Duration::from_secs(1);
const BUSY: Duration = Duration::from_secs(9);

/// How many configurations a replica has applied.
async fn applied(replica: &Replica) -> f64 {
    replica.metric("sesame_configuration_changes_total", "applied").await
}

/// Two replicas with these flags, an Envoy of the first, and what leads it from one to the other.
async fn two(bed: &Bed, flags: &[(&str, &str)]) -> ([Replica; 2], Envoy, Wire) {
    let one = bed.replica_at("sesame-0", Net::here().unwrap().address(), flags).await.ready().await;
    let two = bed.replica_at("sesame-1", Net::here().unwrap().address(), flags).await.ready().await;
    let wire = Wire::new(Net::here().unwrap().socket(8001), one.xds()).await.unwrap();
    let envoy = bed.envoy(wire.address()).await;
    envoy.ready().await.unwrap();
    bed.answers("web.example.com", 200).await;
    ([one, two], envoy, wire)
}

/// Changes the configuration ten times, and moves the Envoy after each change.
async fn agree(bed: &Bed, replicas: &[Replica; 2], wire: &Wire, change: impl AsyncFn(usize)) {
    let mut times = Vec::new();
    for number in 1..=10_usize {
        change(number).await;
        // From when the first has it to when both have.
        let mut first = None;
        let both = async || {
            let have = [applied(&replicas[0]).await, applied(&replicas[1]).await];
            let count = have.iter().filter(|count| **count >= number as f64).count();
            if count > 0 && first.is_none() {
                first = Some(Instant::now());
            }
            if count == 2 { Ok(()) } else { Err(format!("{have:?}")) }
        };
        eventually(format!("both replicas to have configuration {number}"), TIMEOUT, both).await.unwrap();
        times.push(first.map(|first| first.elapsed()).unwrap_or_default());
        let header = async || match Client::new(bed.http()).host("web.example.com").get("/").await {
            Ok(answer) if answer.header("x-config") == Some(&*number.to_string()) => Ok(()),
            other => Err(format!("{other:?}")),
        };
        eventually(format!("Envoy to have configuration {number}"), TIMEOUT, header).await.unwrap();
        let (from, to) = (&replicas[(number + 1) % 2], &replicas[number % 2]);
        from.in_step(1).await;
        let before = to.sent().await;
        wire.lead_to(to.xds());
        to.in_step(1).await;
        assert_eq!(to.sent().await - before, 0.0, "what Envoy had of one replica was sent again by the other");
    }
    times.sort_unstable();
    let (median, slowest) = (times[times.len() / 2], times[times.len() - 1]);
    println!("both replicas had a configuration {median:?} after the first of them, {slowest:?} at most");
    assert!(median < AGREED && slowest < AGREED + BUSY, "{times:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_on_a_file_agree_and_an_envoy_moves_between_them() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("replicas").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let text = |number: usize| {
        format!(
            "timeouts: {{request-timeout: {}s}}\n\
             policy: {{applyToIngress: true, response-headers: {{set: {{x-config: '{number}'}}}}}}\n",
            20 + number
        )
    };
    let file = bed.file("sesame.yaml", &text(0));
    let (replicas, _envoy, wire) = two(&bed, &[("config-path", file.to_str().unwrap())]).await;
    agree(&bed, &replicas, &wire, async |number| std::fs::write(&file, text(number)).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_on_an_object_agree_and_an_envoy_moves_between_them() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("replicas").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let spec = |number: usize| {
        json!({
            "envoy": { "timeouts": { "requestTimeout": format!("{}s", 20 + number) } },
            "policy": { "applyToIngress": true, "responseHeaders": { "set": { "x-config": number.to_string() } } },
        })
    };
    let object = json!({
        "apiVersion": "projectsesame.io/v1alpha1", "kind": "ContourConfiguration",
        "metadata": { "name": "sesame", "namespace": namespace }, "spec": spec(0),
    });
    bed.api.apply(&object.to_string()).await.unwrap();
    let kind = GroupVersionKind::gvk("projectsesame.io", "v1alpha1", "ContourConfiguration");
    let resource = ApiResource::from_gvk_with_plural(&kind, "contourconfigurations");
    let objects: Api<DynamicObject> = Api::namespaced_with(bed.api.client().unwrap(), &namespace, &resource);
    let flags = [("sesame-config-name", "sesame"), ("namespace", namespace.as_str())];
    let (replicas, _envoy, wire) = two(&bed, &flags).await;
    let change = async |number| {
        let patch = Patch::Merge(json!({ "spec": spec(number) }));
        objects.patch("sesame", &PatchParams::default(), &patch).await.unwrap();
    };
    agree(&bed, &replicas, &wire, change).await;
}
