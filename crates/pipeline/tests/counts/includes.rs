//! What a root HTTPProxy costs with the children that it includes and their routes.

use super::{Bed, service, slice};
use kinds::Object;
use pipeline::{hosts::VirtualHosts, settings::Packing};
use serde_json::{Value, json};
use testbed::cases::object;

fn proxy(name: &str, spec: &Value) -> Object {
    object(&json!({
        "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": name }, "spec": spec,
    }))
}

/// A root that includes so many children, with so many routes each.
fn tree(children: usize, routes: usize) -> Bed {
    let include =
        |child| json!({ "name": format!("child-{child}"), "conditions": [{ "prefix": format!("/child-{child}") }] });
    let includes: Vec<Value> = (0..children).map(include).collect();
    let root = proxy("root", &json!({ "virtualhost": { "fqdn": "root.example.com" }, "includes": includes }));
    let services = json!([{ "name": "web-0", "port": 80 }]);
    let route =
        |route| json!({ "conditions": [{ "prefix": format!("/route-{route}") }], "services": services.clone() });
    let spec = json!({ "routes": (0..routes).map(route).collect::<Vec<_>>() });
    let children = (0..children).map(|child| proxy(&format!("child-{child}"), &spec));
    Bed::of(Packing::Scoped, [service(0), slice(0, "192.0.2.1"), root].into_iter().chain(children))
}

/// The rows, and the records of what they read.
fn size(bed: &Bed) -> (usize, usize) {
    let counters = bed.pipeline.engine().counters();
    (counters.iter().map(|table| table.rows).sum(), counters.iter().map(|table| table.reads).sum())
}

fn served_routes(bed: &Bed) -> usize {
    bed.pipeline.engine().rows::<VirtualHosts>().map(|(_, host)| host.host.routes.len()).sum()
}

#[test]
fn a_root_of_many_includes_and_routes_costs_what_it_has_and_not_its_square() {
    let (few, many) = (tree(30, 20), tree(300, 20));
    assert_eq!((served_routes(&few), served_routes(&many)), (30 * 20, 300 * 20));
    let ((few_rows, few_reads), (many_rows, many_reads)) = (size(&few), size(&many));
    assert!(
        many_rows <= 10 * few_rows && many_reads <= 10 * few_reads,
        "{few_rows} {many_rows} {few_reads} {many_reads}"
    );
    // Routes are in the row of their root, and in that of its host, alone.
    let longer = tree(30, 200);
    assert_eq!((served_routes(&longer), size(&longer)), (30 * 200, (few_rows, few_reads)));
}
