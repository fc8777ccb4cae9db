//! Gateways and routes on a real API server: served, told, and what others wrote on them left alone.

use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use testbed::{Backend, Net, eventually};

use crate::bed::{ADDRESS, Bed, PATIENCE, service};

fn api(bed: &Bed, namespace: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let resource = GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", kind);
    let resource = ApiResource::from_gvk_with_plural(&resource, plural);
    Api::namespaced_with(bed.api.client().unwrap(), namespace, &resource)
}

fn gateway(namespace: &str, listeners: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: web, namespace: {namespace}}}\n\
         spec: {{gatewayClassName: sesame, listeners: [{listeners}]}}\n"
    )
}

/// Whether each of these conditions holds for a generation.
fn holds(scope: &Value, generation: i64, kinds: &[&str]) -> Result<(), String> {
    let conditions = scope["conditions"].as_array().cloned().unwrap_or_default();
    let is_true = |kind: &&str| {
        conditions
            .iter()
            .any(|one| one["type"] == **kind && one["status"] == "True" && one["observedGeneration"] == generation)
    };
    if kinds.iter().all(is_true) { Ok(()) } else { Err(scope.to_string()) }
}

fn foreign(kind: &str) -> Value {
    json!({ "type": kind, "status": "True", "reason": "Tested", "message": "by another", "observedGeneration": 0,
        "lastTransitionTime": "2026-01-01T00:00:00Z" })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_and_its_route_are_served_and_told_and_foreign_conditions_stay() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("gateway").await.unwrap();
    bed.api.apply(&service(&namespace, "web", &backend)).await.unwrap();
    let address = Net::here().unwrap().address();
    let replica = bed.replica_at("sesame-0", address, &[("disable-fleets", "")]).await.ready().await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    // The kinds come while it runs.
    let deploy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/gateway-api");
    let crds = parts::folder("gateway-api-crds").unwrap().join("standard");
    bed.api.install([crds, deploy.into()]).await.unwrap();
    let http = "{name: http, protocol: HTTP, port: 80}";
    bed.api.apply(&gateway(&namespace, http)).await.unwrap();
    let route = format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: web, namespace: {namespace}}}\n\
         spec: {{parentRefs: [{{name: web}}], hostnames: [web.example.com], rules: [{{backendRefs: [{{name: web, port: 80}}]}}]}}\n"
    );
    bed.api.apply(&route).await.unwrap();
    bed.answers("web.example.com", 200).await;

    let gateways = api(&bed, &namespace, "Gateway", "gateways");
    let told = async |generation: i64, routes: i64| {
        let status = gateways.get("web").await.unwrap().data["status"].clone();
        holds(&status, generation, &["Accepted", "Programmed"])?;
        let listener = &status["listeners"][0];
        holds(listener, generation, &["Accepted", "Programmed", "ResolvedRefs"])?;
        let address = json!([{ "type": "IPAddress", "value": ADDRESS }]);
        let right = listener["attachedRoutes"] == routes && status["addresses"] == address;
        if right { Ok(()) } else { Err(status.to_string()) }
    };
    eventually("the Gateway to be told", PATIENCE, async || told(1, 1).await).await.unwrap();
    let routes = api(&bed, &namespace, "HTTPRoute", "httproutes");
    let route = async || {
        let status = routes.get("web").await.unwrap().data["status"].clone();
        let parent = &status["parents"][0];
        match parent["controllerName"] == "projectsesame.io/gateway-controller" {
            true => holds(parent, 1, &["Accepted", "ResolvedRefs"]),
            false => Err(status.to_string()),
        }
    };
    eventually("the route to be told", PATIENCE, route).await.unwrap();

    // Another controller has something to say about the Gateway and about its listener.
    let mut status = gateways.get("web").await.unwrap().data["status"].clone();
    status["conditions"].as_array_mut().unwrap().push(foreign("example.com/Gateway"));
    status["listeners"][0]["conditions"].as_array_mut().unwrap().push(foreign("example.com/Listener"));
    let others = PatchParams { field_manager: Some("another".to_owned()), ..PatchParams::default() };
    gateways.patch_status("web", &others, &Patch::Merge(json!({ "status": status }))).await.unwrap();
    let more = format!("{http}, {{name: more, protocol: HTTP, port: 81, hostname: more.example.com}}");
    bed.api.apply(&gateway(&namespace, &more)).await.unwrap();
    eventually("its next generation to be told", PATIENCE, async || told(2, 1).await).await.unwrap();
    let status = gateways.get("web").await.unwrap().data["status"].clone();
    assert_eq!(status["listeners"].as_array().unwrap().len(), 2);
    let has = |scope: &Value, kind: &str| scope["conditions"].as_array().unwrap().contains(&foreign(kind));
    assert!(has(&status, "example.com/Gateway") && has(&status["listeners"][0], "example.com/Listener"), "{status}");

    routes.delete("web", &Default::default()).await.unwrap();
    eventually("nothing to be attached", PATIENCE, async || told(2, 0).await).await.unwrap();
    bed.answers("web.example.com", 404).await;
}
