//! Tracing: which listeners and fleets have it, and whose edits change them.

use super::*;
use envoy_api::envoy::{
    config::listener::v3::{Listener, filter::ConfigType},
    extensions::filters::network::http_connection_manager::v3::{HttpConnectionManager, http_connection_manager},
};
use kinds::Object;
use model::listener::Tracing;
use pipeline::extensions::ExtensionName;
use prost::Message;
use serde_json::{Value, json};
use std::sync::Arc;
use testbed::cases::object;
use xds::Kind;

fn tracing() -> Option<(ExtensionName, Arc<Tracing>)> {
    let extension = ExtensionName { namespace: "default".into(), name: "otel".into() };
    Some((extension, Arc::new(Tracing::default())))
}

fn extension(group: &str, name: &str, spec: &Value) -> Object {
    object(&json!({ "apiVersion": format!("{group}/v1alpha1"), "kind": "ExtensionService",
        "metadata": { "namespace": "default", "name": name }, "spec": spec }))
}

/// The tracing of each connection manager of the listeners that a fleet is told, by the name of the listener.
fn traced(output: &mut Output, fleet: &FleetId) -> BTreeMap<String, Vec<Option<http_connection_manager::Tracing>>> {
    let upserts = output.take_fleet(fleet).xds.upserts;
    let listeners = upserts.iter().filter(|resource| resource.kind == Kind::Listener);
    listeners
        .map(|resource| {
            let listener = Listener::decode(resource.body.clone()).unwrap();
            let chains = listener.filter_chains.iter().chain(&listener.default_filter_chain);
            let filters = chains.flat_map(|chain| &chain.filters);
            let managers = filters.filter_map(|filter| match &filter.config_type {
                Some(ConfigType::TypedConfig(any)) if any.type_url.ends_with(".HttpConnectionManager") => {
                    Some(HttpConnectionManager::decode(any.value.clone()).unwrap().tracing)
                }
                _ => None,
            });
            (resource.name.to_string(), managers.collect())
        })
        .collect()
}

/// Every listener that takes HTTP traces, in every fleet; Envoy's own pages do not.
#[test]
fn all_http_of_all_fleets_is_traced() {
    let ca = Ca::new("tracing");
    let mut pipeline = pipeline();
    let settings = Settings { tracing: tracing(), ..world::settings(Packing::Scoped) };
    pipeline.set_settings(&settings);
    let certificate = secret(&ca, "cert", "a.example.com");
    pipeline.put(&certificate.key(), Some(certificate));
    let tls = ingress_with("tls", "a.example.com", "/", "web", &json!({}), &[("a.example.com", "cert")]);
    pipeline.put(&tls.key(), Some(tls));
    let fleet = named(1);
    let own = FleetSettings { http: None, https: None, stats: Some(Bind::any(8002)), ..settings.fleet() };
    pipeline.set_fleet(&fleet, Some(own));
    let claims = Claims::new("gateway", fleet.clone());
    let claims = claims.listener("http", 80, Http, "*").route("http", "a.example.com", "web");
    claims.put(&mut pipeline);
    let found = extension(
        "projectsesame.io",
        "otel",
        &json!({ "protocol": "h2c", "services": [{ "name": "web", "port": 80 }] }),
    );
    pipeline.put(&found.key(), Some(found));
    let mut output = pipeline.settle();
    let clusters = |changes: &xds::Changes| {
        let clusters = changes.upserts.iter().filter(|resource| resource.kind == Kind::Cluster);
        clusters.map(|resource| resource.name.to_string()).filter(|name| name.contains("otel")).collect::<BTreeSet<_>>()
    };
    assert_eq!(clusters(&output.xds).len(), 1);
    assert_eq!(clusters(&output.fleets[&fleet].xds), clusters(&output.xds), "each fleet has the cluster");
    for (fleet, http) in [(FleetId::Shared, &["ingress_http", "ingress_https"][..]), (fleet, &["tcp-80"])] {
        let listeners = traced(&mut output, &fleet);
        for (name, managers) in listeners {
            let is_traced = managers.iter().all(Option::is_some);
            assert_eq!(is_traced && !managers.is_empty(), http.contains(&&*name), "{fleet} {name} {managers:?}");
        }
    }
    assert_eq!(pipeline.tracing_problem(), None);
    pipeline.self_check().unwrap();
}

/// No edit of a tenant changes a listener, or who gets spans. An extension of another name or namespace is nobody's collector.
#[test]
fn tenants_do_not_change_tracing() {
    let mut pipeline = pipeline();
    let settings = Settings { tracing: tracing(), ..world::settings(Packing::Scoped) };
    pipeline.set_settings(&settings);
    pipeline.settle();
    let why = pipeline.tracing_problem().unwrap().why.clone();
    assert!(why.contains("default/otel does not exist"), "{why}");
    let services = json!([{ "name": "web", "port": 80 }]);
    let (good, bad) =
        (json!({ "protocol": "h2c", "services": services }), json!({ "protocol": "h4", "services": services }));
    let other = extension("projectcontour.io", "other", &good);
    let route = ingress("tenant", "a.example.com", "/", "web");
    for edit in [other, route] {
        pipeline.put(&edit.key(), Some(edit));
        assert_eq!(traced(&mut pipeline.settle(), &FleetId::Shared), BTreeMap::new());
        assert!(pipeline.tracing_problem().is_some());
    }
    // It comes, breaks and goes: listeners stay as they are.
    for (spec, is_good) in [(&good, true), (&bad, false), (&good, true)] {
        let own = extension("projectcontour.io", "otel", spec);
        pipeline.put(&own.key(), Some(own));
        let mut output = pipeline.settle();
        assert_eq!(traced(&mut output, &FleetId::Shared), BTreeMap::new());
        assert_eq!(pipeline.tracing_problem().is_none(), is_good, "{spec}");
        pipeline.self_check().unwrap();
    }
    // Where nothing is traced, nothing is missing.
    pipeline.set_settings(&Settings { tracing: None, ..settings });
    let listeners = traced(&mut pipeline.settle(), &FleetId::Shared);
    assert!(listeners["ingress_http"] == [None] && pipeline.tracing_problem().is_none(), "{listeners:?}");
}
