//! Tracing by a ContourConfiguration: spans arrive at a real collector, and a collector that is missing is told of. And traces of
//! the controller's own batches.

use std::time::Duration;

use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use testbed::{Backend, Client, Net, OtelCollector, eventually};

use crate::bed::{Bed, TIMEOUT, app};

/// Envoy sends spans every five seconds.
const FLUSH: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn spans_follow_the_configuration_and_a_missing_collector_is_a_warning() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let collector = OtelCollector::start().await.unwrap();
    let namespace = bed.api.namespace("tracing").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let reference = json!({ "namespace": namespace, "name": "otel" });
    let object = json!({
        "apiVersion": "projectcontour.io/v1alpha1", "kind": "ContourConfiguration",
        "metadata": { "name": "sesame", "namespace": namespace },
        "spec": { "tracing": { "extensionService": reference, "serviceName": "first" } },
    });
    bed.api.apply(&object.to_string()).await.unwrap();
    let kind = GroupVersionKind::gvk("projectcontour.io", "v1alpha1", "ContourConfiguration");
    let resource = ApiResource::from_gvk_with_plural(&kind, "contourconfigurations");
    let objects: Api<DynamicObject> = Api::namespaced_with(bed.api.client().unwrap(), &namespace, &resource);
    let warnings = async |wish: &dyn Fn(&str) -> bool| {
        let look = async || {
            let object = objects.get("sesame").await.map_err(|error| error.to_string())?;
            let condition = object.data["status"]["conditions"][0].clone();
            let warnings = condition["warnings"].to_string();
            let is_valid = condition["status"] == "True";
            if is_valid && wish(&warnings) { Ok(()) } else { Err(condition.to_string()) }
        };
        eventually("the condition", TIMEOUT, look).await.unwrap();
    };
    let flags = [("contour-config-name", "sesame"), ("namespace", namespace.as_str())];
    let address = Net::here().unwrap().address();
    let replica = bed.replica_at("sesame-0", address, &flags).await.ready().await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    bed.answers("web.example.com", 200).await;
    let missing = format!("ExtensionService {namespace}/otel does not exist");
    warnings(&|text| text.contains("SES5190: spec.tracing.extensionService") && text.contains(&missing)).await;
    replica.process.expect_line("SES5190: spans are not sent", TIMEOUT).await.unwrap();

    // The collector comes.
    let metadata = json!({ "name": "otel", "namespace": namespace });
    let collector_objects = [
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": { "ports": [{ "port": 4317 }] } }),
        json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": { "name": "otel", "namespace": namespace, "labels": { "kubernetes.io/service-name": "otel" } },
            "addressType": "IPv4", "ports": [{ "port": collector.address().port() }],
            "endpoints": [{ "addresses": [collector.address().ip().to_string()] }] }),
        json!({ "apiVersion": "projectcontour.io/v1alpha1", "kind": "ExtensionService", "metadata": metadata,
            "spec": { "protocol": "h2c", "services": [{ "name": "otel", "port": 4317 }] } }),
    ];
    for object in collector_objects {
        bed.api.apply(&object.to_string()).await.unwrap();
    }
    warnings(&|text| text == "null").await;
    let traced = async |service: &str| {
        let look = async || {
            let answer = Client::new(bed.http()).host("web.example.com").get("/").await;
            let status = answer.map_err(|failure| failure.to_string())?.status;
            let spans = collector.spans().map_err(|error| error.to_string())?;
            let has_span = spans.iter().any(|span| span.service == service);
            if status == 200 && has_span { Ok(()) } else { Err(format!("{status}, {} spans", spans.len())) }
        };
        eventually(format!("spans of {service}"), FLUSH, look).await.unwrap();
    };
    traced("first").await;
    let rename = json!({ "spec": { "tracing": { "serviceName": "second" } } });
    objects.patch("sesame", &PatchParams::default(), &Patch::Merge(rename)).await.unwrap();
    traced("second").await;
    let off = json!({ "spec": { "tracing": Value::Null } });
    objects.patch("sesame", &PatchParams::default(), &Patch::Merge(off)).await.unwrap();
    warnings(&|text| text == "null").await;
    bed.answers("web.example.com", 200).await;
    assert_eq!(replica.metric("sesame_xds_nacks_total", "").await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_are_traced_from_decoding_to_acknowledgement() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let collector = OtelCollector::start().await.unwrap();
    let namespace = bed.api.namespace("traces").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let url = format!("http://{}", collector.address());
    let flags = [("otlp-traces", url.as_str())];
    let address = Net::here().unwrap().address();
    let replica = bed.replica_at("sesame-0", address, &flags).await.ready().await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    bed.answers("web.example.com", 200).await;
    bed.api.apply(&app(&namespace, "new", &backend)).await.unwrap();
    bed.answers("new.example.com", 200).await;
    let whole = async || {
        let spans = collector.spans().map_err(|error| error.to_string())?;
        let stages = |trace: &str| -> Vec<&str> {
            spans.iter().filter(|span| span.trace == trace).map(|span| span.name.as_str()).collect()
        };
        let all = ["batch", "decode", "compute", "publish", "acknowledge"];
        let is_whole = |trace: &str| all.iter().all(|name| stages(trace).contains(name));
        let found = spans.iter().find(|span| span.name == "batch" && is_whole(&span.trace)).cloned();
        found.ok_or_else(|| format!("{spans:?}"))
    };
    let batch = eventually("a whole trace", FLUSH, whole).await.unwrap();
    assert_eq!((&*batch.service, &*batch.parent), ("sesame", ""));
    assert_eq!(batch.attributes["sesame.published"], "true", "{batch:?}");
    assert_eq!(batch.attributes["sesame.fleets"], "shared", "{batch:?}");
    let spans = collector.spans().unwrap();
    let acknowledged = spans.iter().find(|span| span.trace == batch.trace && span.name == "acknowledge").unwrap();
    assert_eq!(acknowledged.attributes["sesame.complete"], "true", "{acknowledged:?}");
    assert!(!acknowledged.parent.is_empty());

    // A collector that is gone costs nothing but a line.
    collector.process().kill().await.unwrap();
    bed.api.apply(&app(&namespace, "later", &backend)).await.unwrap();
    bed.answers("later.example.com", 200).await;
    replica.process.expect_line("traces of batches cannot be sent to http://", TIMEOUT).await.unwrap();
}
