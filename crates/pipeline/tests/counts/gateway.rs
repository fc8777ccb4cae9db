//! What a route, a certificate, a policy and a Gateway cost among many.

use super::{Bed, certificate, service, slice};
use model::{FleetId, FleetName, status::StatusValue};
use pipeline::{Pipeline, Settings, settings::Packing};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use testbed::cases::object;

fn route(number: usize, path: &str) -> kinds::Object {
    object(&written_route(number, path))
}

fn written_route(number: usize, path: &str) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": { "name": format!("web-{number}") },
        "spec": {
            "parentRefs": [{ "name": "web" }], "hostnames": [format!("web-{number}.example.com")],
            "rules": [{ "matches": [{ "path": { "value": path } }], "backendRefs": [{ "name": "web-0", "port": 80 }] }],
        },
    })
}

fn class() -> kinds::Object {
    object(&json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": { "name": "sesame" },
        "spec": { "controllerName": dialect_gateway::CONTROLLER },
    }))
}

/// The Gateway of all routes.
fn gateway(listeners: &Value) -> kinds::Object {
    object(&json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": { "name": "web" },
        "spec": { "gatewayClassName": "sesame", "listeners": listeners },
    }))
}

fn plaintext() -> Value {
    json!({ "name": "http", "protocol": "HTTP", "port": 80 })
}

/// A route as it comes back after its status was written.
fn with_status(number: usize, path: &str) -> kinds::Object {
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "reason": kind, "observedGeneration": 1 });
    let conditions = json!([condition("Accepted"), condition("ResolvedRefs")]);
    let parent =
        json!({ "parentRef": { "name": "web" }, "controllerName": "example.com/any", "conditions": conditions });
    let mut written = written_route(number, path);
    written["status"] = json!({ "parents": [parent] });
    object(&written)
}

/// A Gateway and many routes: neither a renewed certificate nor a grant wakes them, and a route wakes nothing of the Gateway but
/// the count in its status. What we write on a route ourselves wakes nobody.
#[test]
fn a_certificate_wakes_no_route_and_a_route_no_gateway() {
    const ROUTES: usize = 10_000;
    /// How many rows one of them costs.
    const A_HANDFUL: u64 = 40;
    let tls = json!({ "certificateRefs": [{ "name": "cert" }] });
    let https = json!({ "name": "https", "protocol": "HTTPS", "port": 443, "hostname": "*.example.com", "tls": tls });
    let gateway = gateway(&json!([plaintext(), https]));
    let grant = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "ReferenceGrant", "metadata": { "name": "any" },
        "spec": {
            "from": [{ "group": dialect_gateway::GROUP, "kind": "Gateway", "namespace": "other" }],
            "to": [{ "group": "", "kind": "Secret" }],
        },
    });
    for packing in [Packing::Plain, Packing::Scoped] {
        let objects = [class(), gateway.clone(), service(0), certificate()];
        let mut bed = Bed::of(packing, objects.into_iter().chain((0..ROUTES).map(|number| route(number, "/"))));
        let facts = bed.first.facts.iter().filter(|(object, _)| object.kind == kinds::kind::HTTP_ROUTE);
        let facts: BTreeSet<_> = facts.map(|(_, facts)| facts.as_ref().map(Arc::as_ptr)).collect();
        assert_eq!(facts.len(), 1, "what all routes say is kept once");
        let (output, computed) = bed.put(with_status(7, "/"));
        assert_eq!(computed, BTreeMap::from([("httproutes", 1)]), "the status of a route");
        assert!(output.facts.is_empty() && output.object_resources.is_empty() && output.verdicts.is_empty());
        let (output, computed) = bed.put(certificate());
        let of = |computed: &BTreeMap<&'static str, u64>, table: &str| computed.get(table).copied().unwrap_or_default();
        assert_eq!((of(&computed, "translations"), of(&computed, "listeners of gateways")), (1, 0), "{computed:?}");
        assert_eq!(output.xds.upserts.len(), 1, "the certificate alone is sent: {computed:?}");
        let (output, computed) = bed.put(object(&grant));
        assert_eq!((of(&computed, "translations"), output.xds.upserts.len()), (0, 0), "{computed:?}");
        let (_, computed) = bed.put(route(7, "/other"));
        assert_eq!((of(&computed, "translations"), of(&computed, "listeners of gateways")), (1, 0), "{computed:?}");
        assert_eq!(of(&computed, "status facts"), 1, "the Gateway counts what it counted: {computed:?}");
        assert!(computed.values().sum::<u64>() <= A_HANDFUL, "an edit: {computed:?}");
        let (output, computed) = bed.put(route(ROUTES, "/"));
        assert_eq!((of(&computed, "translations"), of(&computed, "status facts")), (1, 2), "{computed:?}");
        assert!(output.facts.iter().any(|(object, _)| object.kind == kinds::kind::GATEWAY), "one more is attached");
        assert!(computed.values().sum::<u64>() <= A_HANDFUL, "a new one: {computed:?}");
    }
}

/// One more route computes the same rows, from as many others, whether its Gateway has counted 100 routes or 10,000: none of them is
/// looked at again.
#[test]
fn a_route_costs_the_same_however_many_its_gateway_counts() {
    // The dependencies that each table has on record.
    let records = |bed: &Bed| -> Vec<(&'static str, i64)> {
        let counters = bed.pipeline.engine().counters();
        counters.iter().map(|table| (table.name, i64::try_from(table.reads).unwrap())).collect()
    };
    for packing in [Packing::Plain, Packing::Scoped] {
        let [few, many] = [100, 10_000].map(|routes| {
            let objects = [class(), gateway(&json!([plaintext()])), service(0)].into_iter();
            let mut bed = Bed::of(packing, objects.chain((0..routes).map(|number| route(number, "/"))));
            let before = records(&bed);
            let ((output, computed), read) = bed.reads(|bed| bed.put(route(routes, "/")));
            let of_gateway = output.facts.iter().find(|(object, _)| object.kind == kinds::kind::GATEWAY).unwrap();
            let listener = &of_gateway.1.as_ref().unwrap().lists[0].1[0].scope;
            let attached = StatusValue::Integer(i64::try_from(routes).unwrap() + 1);
            assert!(listener.values.contains(&("attachedRoutes", attached)), "{listener:?}");
            let added = records(&bed).into_iter().zip(before).map(|((name, now), (_, then))| (name, now - then));
            (computed, read, added.filter(|(_, added)| *added != 0).collect::<Vec<_>>())
        });
        assert_eq!(many, few, "{packing:?}: rows computed, reads from outside, dependencies recorded");
    }
}

/// A Gateway with many routes, a ListenerSet of it and TLSRoutes: a route depends on the listeners of its own parent, and none on
/// the contents of a certificate.
#[test]
fn a_listener_set_wakes_its_own_routes_and_a_certificate_no_tls_route() {
    const ROUTES: usize = 500;
    let of_api = |kind: &str, name: &str, spec: Value| {
        let metadata = json!({ "name": name });
        object(
            &json!({ "apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec }),
        )
    };
    let class = of_api("GatewayClass", "sesame", json!({ "controllerName": dialect_gateway::CONTROLLER }));
    let tls = json!({ "mode": "Terminate", "certificateRefs": [{ "name": "cert" }] });
    let listeners = json!([
        { "name": "http", "protocol": "HTTP", "port": 80 },
        { "name": "tls", "protocol": "TLS", "port": 8443, "hostname": "*.example.com", "tls": tls },
    ]);
    let allowed = json!({ "namespaces": { "from": "Same" } });
    let spec = json!({ "gatewayClassName": "sesame", "listeners": listeners, "allowedListeners": allowed });
    let set = |port: u16| {
        let listeners = json!([{ "name": "more", "protocol": "HTTP", "port": port }]);
        of_api("ListenerSet", "more", json!({ "parentRef": { "name": "web" }, "listeners": listeners }))
    };
    let backend = json!([{ "backendRefs": [{ "name": "web-0", "port": 80 }] }]);
    let of_set = json!({ "parentRefs": [{ "kind": "ListenerSet", "name": "more" }], "rules": backend });
    let tls_route = |number: usize| {
        let hostnames = json!([format!("tls-{number}.example.com")]);
        let spec = json!({ "parentRefs": [{ "name": "web" }], "hostnames": hostnames, "rules": backend });
        of_api("TLSRoute", &format!("tls-{number}"), spec)
    };
    let objects = [class, of_api("Gateway", "web", spec), set(81), service(0), certificate()];
    let objects = objects.into_iter().chain([of_api("HTTPRoute", "of-set", of_set)]);
    let objects = objects.chain((0..ROUTES).map(|number| route(number, "/"))).chain((0..ROUTES).map(tls_route));
    let mut bed = Bed::of(Packing::Scoped, objects);
    let of = |computed: &BTreeMap<&'static str, u64>, table: &str| computed.get(table).copied().unwrap_or_default();
    let (_, computed) = bed.put(set(82));
    assert_eq!(of(&computed, "translations"), 3, "the Gateway, the set and the route of the set: {computed:?}");
    let (output, computed) = bed.put(certificate());
    assert_eq!((of(&computed, "translations"), output.xds.upserts.len()), (1, 1), "the Gateway: {computed:?}");
}

fn tls_policy(number: usize, created: usize, hostname: &str) -> kinds::Object {
    let meta = json!({ "name": format!("p{number}"), "creationTimestamp": format!("20{created:02}-01-01T00:00:00Z") });
    object(&json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "BackendTLSPolicy", "metadata": meta,
        "spec": {
            "targetRefs": [{ "group": "", "kind": "Service", "name": "web-0" }],
            "validation": { "hostname": hostname, "wellKnownCACertificates": "System" },
        },
    }))
}

/// Many policies for one Service: one that is not in effect wakes neither the routes of the Service nor the other policies.
#[test]
fn a_tls_policy_that_is_not_in_effect_wakes_nobody() {
    const POLICIES: usize = 500;
    let objects = [class(), gateway(&json!([plaintext()])), service(0), tls_policy(0, 10, "first.example.com")];
    let objects = objects.into_iter().chain((1..POLICIES).map(|number| tls_policy(number, 20, "other.example.com")));
    let mut bed = Bed::of(Packing::Scoped, objects.chain((0..100).map(|number| route(number, "/"))));
    let of = |computed: &BTreeMap<&'static str, u64>, table: &str| computed.get(table).copied().unwrap_or_default();
    let (output, computed) = bed.put(tls_policy(7, 20, "changed.example.com"));
    assert_eq!((of(&computed, "translations"), of(&computed, "TLS policies in effect")), (1, 1), "{computed:?}");
    assert_eq!(output.xds.upserts.len(), 0, "{computed:?}");
    // The one in effect wakes its routes; the others are told nothing new.
    let (_, computed) = bed.put(tls_policy(0, 10, "changed.example.com"));
    assert_eq!(of(&computed, "translations"), 101, "{computed:?}");
}

/// 500 Gateways with proxies and routes of their own: an edit of one of them computes a handful of rows and reaches its own proxies.
#[test]
fn an_edit_of_one_gateway_among_five_hundred_reaches_its_own_fleet() {
    const GATEWAYS: usize = 500;
    let of_api = |kind: &str, name: String, spec: Value| {
        let meta = json!({ "name": name, "uid": format!("uid-{name}") });
        object(&json!({ "apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "metadata": meta, "spec": spec }))
    };
    let gateway = |number: usize, port: u16| {
        let listeners = json!([{ "name": "http", "protocol": "HTTP", "port": port }]);
        of_api("Gateway", format!("g{number}"), json!({ "gatewayClassName": "sesame", "listeners": listeners }))
    };
    let route = |number: usize, path: &str| {
        let rule =
            json!({ "matches": [{ "path": { "value": path } }], "backendRefs": [{ "name": "web-0", "port": 80 }] });
        let parents = json!([{ "name": format!("g{number}") }]);
        of_api("HTTPRoute", format!("r{number}"), json!({ "parentRefs": parents, "rules": [rule] }))
    };
    let mut settings = Settings::default();
    settings.gateway.own_fleets = true;
    let mut pipeline = Pipeline::new(&settings);
    let class = of_api("GatewayClass", "sesame".to_owned(), json!({ "controllerName": dialect_gateway::CONTROLLER }));
    let objects = (0..GATEWAYS).flat_map(|number| [gateway(number, 80), route(number, "/")]);
    for object in [class, service(0), slice(0, "192.0.2.1")].into_iter().chain(objects) {
        pipeline.put(&object.key(), Some(object));
    }
    pipeline.settle();
    let fleets = pipeline.gateway_fleets();
    assert_eq!(fleets.len(), GATEWAYS);
    for (_, fleet) in fleets {
        let id = FleetId::Named(fleet.unwrap().name.clone().into());
        pipeline.set_fleet(&id, Some(pipeline::FleetSettings::default()));
    }
    pipeline.settle();
    let own = FleetId::Named(FleetName::new("default", "g7").into());
    for (object, what) in [(route(7, "/other"), "its route"), (gateway(7, 81), "its listener")] {
        pipeline.put(&object.key(), Some(object));
        let output = pipeline.settle();
        assert_eq!(output.fleets.keys().collect::<Vec<_>>(), [&own], "{what}");
        assert!(output.xds.upserts.is_empty() && output.xds.removes.is_empty(), "{what}: the shared fleet has no part");
        let computed = pipeline.engine().last_batch().computed;
        assert!(computed <= 60, "{what}: {computed} rows");
    }
}
