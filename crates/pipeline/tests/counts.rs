//! How little is done: an edit costs what depends on it, however many objects there are.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use pipeline::{Pipeline, Settings, settings::Packing};
use serde_json::json;
use std::collections::BTreeMap;
use testbed::cases::object;

const MANY: usize = 10_000;

fn ingress(number: usize, path: &str) -> kinds::Object {
    let backend = json!({ "service": { "name": format!("web-{number}"), "port": { "number": 80 } } });
    let paths = json!([{ "path": path, "pathType": "Prefix", "backend": backend }]);
    object(&json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": format!("web-{number}") },
        "spec": { "rules": [{ "host": format!("web-{number}.example.com"), "http": { "paths": paths } }] },
    }))
}

fn service(number: usize) -> kinds::Object {
    object(&json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": format!("web-{number}") },
        "spec": { "ports": [{ "port": 80 }] },
    }))
}

fn slice(number: usize, address: &str) -> kinds::Object {
    object(&json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": format!("web-{number}"), "labels": { "kubernetes.io/service-name": format!("web-{number}") } },
        "ports": [{ "port": 8080 }], "endpoints": [{ "addresses": [address] }],
    }))
}

/// A pipeline with many Ingresses, and what each table has computed so far.
struct Bed {
    pipeline: Pipeline,
    before: BTreeMap<&'static str, u64>,
}

impl Bed {
    fn new(packing: Packing) -> Self {
        let mut pipeline = Pipeline::new(&Settings { packing, ..Settings::default() });
        for number in 0..MANY {
            for object in [ingress(number, "/"), service(number), slice(number, "192.0.2.1")] {
                pipeline.put(&object.key(), Some(object));
            }
        }
        pipeline.settle();
        let before = computed(&pipeline);
        Self { pipeline, before }
    }

    /// Puts an object; gives what came out, and how often each table computed a row because of it.
    fn put(&mut self, object: kinds::Object) -> (pipeline::Output, BTreeMap<&'static str, u64>) {
        self.pipeline.put(&object.key(), Some(object));
        let output = self.pipeline.settle();
        let after = computed(&self.pipeline);
        let difference = after.iter().map(|(name, count)| (*name, count - self.before[name])).filter(|(_, n)| *n > 0);
        let difference = difference.collect();
        self.before = after;
        (output, difference)
    }
}

fn computed(pipeline: &Pipeline) -> BTreeMap<&'static str, u64> {
    pipeline.engine().counters().iter().map(|table| (table.name, table.computed)).collect()
}

#[test]
fn an_edit_costs_what_depends_on_it_among_ten_thousand() {
    for packing in [Packing::Plain, Packing::Scoped] {
        let mut bed = Bed::new(packing);
        one_route_costs_a_handful(&mut bed);
        an_endpoint_wakes_only_endpoints(&mut bed);
        a_service_that_nobody_uses_costs_nothing_further(&mut bed);
    }
}

fn one_route_costs_a_handful(bed: &mut Bed) {
    let (output, computed) = bed.put(ingress(4711, "/other"));
    let total: u64 = computed.values().sum();
    assert!(total <= 12, "{total} rows were computed: {computed:?}");
    assert_eq!(output.xds.upserts.len(), 1, "{:?}", output.xds.upserts);
    assert!(output.object_resources.len() <= 1, "{:?}", output.object_resources);
    // What says the same is no edit at all.
    let (output, computed) = bed.put(ingress(4711, "/other"));
    assert!(computed.values().sum::<u64>() <= 1 && output.xds.upserts.is_empty(), "{computed:?}");
}

fn an_endpoint_wakes_only_endpoints(bed: &mut Bed) {
    let (output, computed) = bed.put(slice(4711, "192.0.2.2"));
    let tables: Vec<&str> = computed.keys().copied().collect();
    assert_eq!(tables, ["endpoint resources", "endpoint sets", "endpointslices"], "{computed:?}");
    assert!(computed.values().all(|&count| count == 1), "{computed:?}");
    let told: Vec<_> = output.xds.upserts.iter().map(|resource| (resource.kind, &*resource.name)).collect();
    assert_eq!(told, [(xds::Kind::Endpoints, "default/web-4711/80")]);
    assert!(output.verdicts.is_empty() && output.xds.removes.is_empty());
}

fn a_service_that_nobody_uses_costs_nothing_further(bed: &mut Bed) {
    let (output, computed) = bed.put(service(MANY));
    assert!(computed.values().sum::<u64>() <= 2, "{computed:?}");
    assert!(output.xds.upserts.is_empty() && output.verdicts.is_empty());
}
