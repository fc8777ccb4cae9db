//! Gateways and routes on a real API server: served, told, and what others wrote on them left alone.

use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use rustix::process::Signal;
use serde_json::{Value, json};
use testbed::{Backend, Net, eventually};

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::bed::{ADDRESS, Bed, TIMEOUT, app, service};
use crate::status::addresses;

fn api(bed: &Bed, namespace: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let resource = GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", kind);
    let resource = ApiResource::from_gvk_with_plural(&resource, plural);
    Api::namespaced_with(bed.api.client().unwrap(), namespace, &resource)
}

/// Installs the kinds of Gateway API and our class.
async fn install(bed: &Bed) {
    let deploy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/gateway-api");
    let crds = parts::folder("gateway-api-crds").unwrap().join("standard");
    bed.api.install([crds, deploy.into()]).await.unwrap();
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
    install(&bed).await;
    let http = "{name: http, protocol: HTTP, port: 80}";
    bed.api.apply(&gateway(&namespace, http)).await.unwrap();
    let route = format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: web, namespace: {namespace}}}\n\
         spec: {{parentRefs: [{{name: web}}], hostnames: [web.example.com], rules: [{{backendRefs: [{{name: web, port: 80}}]}}]}}\n"
    );
    bed.api.apply(&route).await.unwrap();
    bed.answers("web.example.com", 200).await;

    let gateways = api(&bed, &namespace, "Gateway", "gateways");
    let reported = async |generation: i64, routes: i64| {
        let status = gateways.get("web").await.unwrap().data["status"].clone();
        holds(&status, generation, &["Accepted", "Programmed"])?;
        let listener = &status["listeners"][0];
        holds(listener, generation, &["Accepted", "Programmed", "ResolvedRefs"])?;
        let address = json!([{ "type": "IPAddress", "value": ADDRESS }]);
        let right = listener["attachedRoutes"] == routes && status["addresses"] == address;
        if right { Ok(()) } else { Err(status.to_string()) }
    };
    eventually("the Gateway to be told", TIMEOUT, async || reported(1, 1).await).await.unwrap();
    let routes = api(&bed, &namespace, "HTTPRoute", "httproutes");
    let route = async || {
        let status = routes.get("web").await.unwrap().data["status"].clone();
        let parent = &status["parents"][0];
        match parent["controllerName"] == "projectsesame.io/gateway-controller" {
            true => holds(parent, 1, &["Accepted", "ResolvedRefs"]),
            false => Err(status.to_string()),
        }
    };
    eventually("the route to be told", TIMEOUT, route).await.unwrap();

    // Another controller has something to say about the Gateway and about its listener.
    let mut status = gateways.get("web").await.unwrap().data["status"].clone();
    status["conditions"].as_array_mut().unwrap().push(foreign("example.com/Gateway"));
    status["listeners"][0]["conditions"].as_array_mut().unwrap().push(foreign("example.com/Listener"));
    let others = PatchParams { field_manager: Some("another".to_owned()), ..PatchParams::default() };
    gateways.patch_status("web", &others, &Patch::Merge(json!({ "status": status }))).await.unwrap();
    let more = format!("{http}, {{name: more, protocol: HTTP, port: 81, hostname: more.example.com}}");
    bed.api.apply(&gateway(&namespace, &more)).await.unwrap();
    eventually("its next generation to be told", TIMEOUT, async || reported(2, 1).await).await.unwrap();
    let status = gateways.get("web").await.unwrap().data["status"].clone();
    assert_eq!(status["listeners"].as_array().unwrap().len(), 2);
    let has = |scope: &Value, kind: &str| scope["conditions"].as_array().unwrap().contains(&foreign(kind));
    assert!(has(&status, "example.com/Gateway") && has(&status["listeners"][0], "example.com/Listener"), "{status}");

    routes.delete("web", &Default::default()).await.unwrap();
    eventually("nothing to be attached", TIMEOUT, async || reported(2, 0).await).await.unwrap();
    bed.answers("web.example.com", 404).await;

    // Without its class the Gateway is nobody's: what is left is what the other controller said of it. Entries of listeners were ours, and
    // go with all that was said in them.
    let class = GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", "GatewayClass");
    let class = ApiResource::from_gvk_with_plural(&class, "gatewayclasses");
    let classes = Api::<DynamicObject>::all_with(bed.api.client().unwrap(), &class);
    classes.delete("sesame", &Default::default()).await.unwrap();
    let says_ours = |scope: &Value| {
        scope["conditions"].as_array().into_iter().flatten().any(|condition| condition["observedGeneration"] == 2)
    };
    let withdrawn = async || {
        let status = gateways.get("web").await.unwrap().data["status"].clone();
        let listeners = status["listeners"].as_array().cloned().unwrap_or_default();
        let is_ours = says_ours(&status) || listeners.iter().any(says_ours) || status["addresses"].is_array();
        if is_ours { Err(status.to_string()) } else { Ok(status) }
    };
    let status = eventually("our conditions to be withdrawn", TIMEOUT, withdrawn).await.unwrap();
    assert!(has(&status, "example.com/Gateway"), "{status}");
}

/// An Envoy that is stopped acknowledges nothing. All resources of a wildcard host are shared with other hosts, so that their names say
/// nothing about an edit of the route: its status waits nevertheless.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_generation_of_a_route_is_told_when_proxies_have_acknowledged_it_or_two_seconds_later() {
    const LONGEST_WAIT: Duration = Duration::from_secs(2);
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("acknowledged").await.unwrap();
    bed.api.apply(&service(&namespace, "web", &backend)).await.unwrap();
    install(&bed).await;
    let address = Net::here().unwrap().address();
    let replica = bed.replica_at("sesame-0", address, &[("disable-fleets", "")]).await.ready().await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    bed.api.apply(&gateway(&namespace, "{name: http, protocol: HTTP, port: 80}")).await.unwrap();
    let route = |path: &str| {
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: web, namespace: {namespace}}}\nspec:\n  \
             parentRefs: [{{name: web}}]\n  hostnames: ['*.example.com']\n  rules: [{{matches: [{{path: {{value: {path}}}}}], \
             backendRefs: [{{name: web, port: 80}}]}}]\n"
        )
    };
    let routes = api(&bed, &namespace, "HTTPRoute", "httproutes");
    let reported = async |generation: i64| {
        let status = routes.get("web").await.unwrap().data["status"].clone();
        holds(&status["parents"][0], generation, &["Accepted", "ResolvedRefs"])
    };
    bed.api.apply(&route("/one")).await.unwrap();
    eventually("the route to be told", TIMEOUT, async || reported(1).await).await.unwrap();

    envoy.process().signal(Signal::STOP).unwrap();
    let edited = Instant::now();
    bed.api.apply(&route("/two")).await.unwrap();
    eventually("its second generation to be told", TIMEOUT, async || reported(2).await).await.unwrap();
    let waited = edited.elapsed();
    envoy.process().signal(Signal::CONT).unwrap();
    assert!(waited >= LONGEST_WAIT, "told after {waited:?}, and no proxy has it");

    bed.api.apply(&route("/three")).await.unwrap();
    eventually("its third generation to be told", TIMEOUT, async || reported(3).await).await.unwrap();
    assert_eq!(bed.status_of("x.example.com", "/three").await, 200, "what is told is served");
    assert_eq!(bed.status_of("x.example.com", "/one").await, 404);
}

/// How often the status of each object of Gateway API was written: by resource and name.
fn writes(bed: &Bed) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    for entry in bed.api.audit().unwrap() {
        let is_write = matches!(&*entry.verb, "patch" | "update") && entry.resource.ends_with("/status");
        if is_write && entry.group == "gateway.networking.k8s.io" {
            *counts.entry((entry.resource, entry.name)).or_default() += 1;
        }
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_routes_are_written_twice_at_most_their_gateway_once_a_second_and_a_restart_writes_nothing() {
    const ROUTES: usize = 1000;
    /// How many writes after the last route was created have the right count at the latest. A Gateway is written once a second: one may be
    /// under way, the next has all routes, and one more says that proxies have them.
    const COUNTED: usize = 3;
    let bed = Bed::audited().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("routes").await.unwrap();
    bed.api.apply(&service(&namespace, "web", &backend)).await.unwrap();
    install(&bed).await;
    let address = Net::here().unwrap().address();
    let flags = [("disable-fleets", "")];
    let first = bed.replica_at("sesame-0", address, &flags).await.ready().await;
    let envoy = bed.envoy(first.xds()).await;
    envoy.ready().await.unwrap();
    bed.api.apply(&gateway(&namespace, "{name: http, protocol: HTTP, port: 80}")).await.unwrap();
    let gateways = api(&bed, &namespace, "Gateway", "gateways");
    let counted = async |routes: usize| {
        let status = gateways.get("web").await.unwrap().data["status"].clone();
        let is_counted = status["listeners"][0]["attachedRoutes"] == routes;
        if is_counted { holds(&status, 1, &["Accepted", "Programmed"]) } else { Err(status.to_string()) }
    };
    eventually("the Gateway to be told", TIMEOUT, async || counted(0).await).await.unwrap();
    let of_gateway =
        || writes(&bed).get(&("gateways/status".to_owned(), "web".to_owned())).copied().unwrap_or_default();
    let (before, begun) = (of_gateway(), Instant::now());
    let yaml: String = (0..ROUTES)
        .map(|number| {
            format!(
                "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: r{number}, namespace: {namespace}}}\n\
                 spec: {{parentRefs: [{{name: web}}], hostnames: [r{number}.example.com], rules: [{{backendRefs: [{{name: web, port: 80}}]}}]}}\n"
            )
        })
        .collect();
    bed.api.apply(&yaml).await.unwrap();
    let (created, at_creation) = (Instant::now(), of_gateway());
    bed.answers(&format!("r{}.example.com", ROUTES - 1), 200).await;
    let served = created.elapsed();
    eventually("all to be counted", TIMEOUT, async || counted(ROUTES).await).await.unwrap();
    let counted = created.elapsed();
    println!("created in {:?}; the last is served after {served:?}, counted after {counted:?}", created - begun);
    let until_counted = of_gateway() - at_creation;
    assert!(until_counted <= COUNTED, "counted after {until_counted} writes");
    // What is counted is served, and no other host.
    for number in (0..ROUTES).step_by(20) {
        bed.answers(&format!("r{number}.example.com"), 200).await;
    }
    bed.answers(&format!("r{ROUTES}.example.com"), 404).await;
    first.expect_metric("sesame_status_behind", "", |behind| behind == 0.0).await;
    let (after, elapsed) = (of_gateway(), begun.elapsed());
    println!("{} writes to the Gateway in {elapsed:?}", after - before);
    // One may be due at the beginning of the first second.
    assert!(
        (after - before) as u64 <= elapsed.as_secs() + 1,
        "{} writes to the Gateway in {elapsed:?}",
        after - before
    );
    let settled = writes(&bed);
    let of_routes: Vec<_> = settled.iter().filter(|((resource, _), _)| resource == "httproutes/status").collect();
    println!("{} writes to the routes", of_routes.iter().map(|(_, count)| **count).sum::<usize>());
    assert_eq!(of_routes.len(), ROUTES);
    let often: Vec<_> = of_routes.iter().filter(|(_, count)| **count > 2).collect();
    assert!(often.is_empty(), "written more than twice: {often:?}");

    assert!(first.process.stop(TIMEOUT).await.unwrap().success());
    let second = bed.replica_at("sesame-0", address, &flags).await.ready().await;
    second.expect_metric("sesame_leader", "", |leader| leader == 1.0).await;
    second.in_step(1).await;
    // One more object, of another API, shows that the new leader has been through all of them.
    bed.api.apply(&app(&namespace, "last", &backend)).await.unwrap();
    let ingresses = Api::namespaced(bed.api.client().unwrap(), &namespace);
    eventually("the last to be told", TIMEOUT, async || match addresses(&ingresses, "last").await.len() {
        1 => Ok(()),
        other => Err(other),
    })
    .await
    .unwrap();
    second.expect_metric("sesame_status_behind", "", |behind| behind == 0.0).await;
    assert_eq!(writes(&bed), settled, "a restart writes nothing");
}
