//! What one route may unfold into.

use super::world::{World, backend, codes, listener, parents};
use crate::route::pieces::ROUTES;
use kinds::kind;
use model::Code;
use serde_json::{Value, json};

#[test]
fn a_parent_with_too_many_pieces_is_told_and_the_others_are_served() {
    let mut world = World::new();
    let listeners: Vec<Value> = (0..64).map(|at| listener(&format!("l{at}"), "HTTP", 1000 + at, json!({}))).collect();
    world.gateway("many", json!(listeners));
    let hostnames: Vec<String> = (0..16).map(|at| format!("h{at}.example.com")).collect();
    let matches: Vec<Value> = (0..64).map(|at| json!({ "path": { "value": format!("/{at}") } })).collect();
    let rules = json!([{ "matches": matches, "backendRefs": [backend("app", 80)] }]);
    let references = json!([{ "name": "web" }, { "name": "many" }, { "name": "many", "sectionName": "l3" }]);
    let spec = json!({ "parentRefs": references, "hostnames": hostnames, "rules": rules });
    let translation = world.route(kind::HTTP_ROUTE, spec);
    let accepted: Vec<String> = parents(&translation).into_iter().map(|conditions| conditions[0].clone()).collect();
    assert_eq!(accepted, ["Accepted=True Accepted", "Accepted=False UnsupportedValue", "Accepted=True Accepted"]);
    assert_eq!(translation.routes.len(), 2 * 16 * 64);
    assert!(translation.routes.len() <= ROUTES);
    assert_eq!(codes(&translation), [Code::GatewayRouteLimit]);
    assert_eq!(translation.attached.len(), 2);
}

#[test]
fn the_text_of_all_pieces_is_bounded() {
    let hostnames: Vec<String> = (0..16).map(|at| format!("h{at}.example.com")).collect();
    let long = "x".repeat(15_000);
    let headers: Vec<Value> = (0..40).map(|at| json!({ "name": format!("x-{at}"), "value": long })).collect();
    let filters = json!([{ "type": "RequestHeaderModifier", "requestHeaderModifier": { "set": headers } }]);
    let rules = json!([{ "filters": filters, "backendRefs": [backend("app", 80)] }]);
    let translation = World::new().route(kind::HTTP_ROUTE, json!({ "hostnames": hostnames, "rules": rules }));
    assert_eq!((translation.routes.len(), codes(&translation)), (0, vec![Code::GatewayRouteLimit]));
}

#[test]
fn more_parents_and_hostnames_than_the_api_takes_have_no_effect() {
    let references: Vec<Value> = (0..100).map(|at| json!({ "name": "web", "port": at })).collect();
    let rules = json!([{ "backendRefs": [backend("app", 80)] }]);
    let translation = World::new().route(kind::HTTP_ROUTE, json!({ "parentRefs": references, "rules": rules }));
    assert_eq!(parents(&translation).len(), 32);
    let hostnames: Vec<String> = (0..3000).map(|at| format!("h{at}.example.com")).collect();
    let rules = json!([{ "backendRefs": [backend("app", 80)] }]);
    let translation = World::new().route(kind::HTTP_ROUTE, json!({ "hostnames": hostnames, "rules": rules }));
    assert_eq!((translation.routes.len(), codes(&translation)), (1024, vec![Code::GatewayRouteLimit]));
}

#[test]
fn routes_of_hosts_with_equal_names_are_made_once() {
    let hostnames: Vec<String> = (0..16).map(|at| format!("h{at}.example.com")).collect();
    let rules = json!([{ "backendRefs": [backend("app", 80)] }]);
    let translation = World::new().route(kind::HTTP_ROUTE, json!({ "hostnames": hostnames, "rules": rules }));
    let first = &translation.routes[0].route;
    assert!(translation.routes.iter().all(|piece| std::sync::Arc::ptr_eq(&piece.route, first)));
}

#[test]
fn the_hosts_of_all_parents_are_bounded_before_they_are_made() {
    let mut world = World::new();
    let listeners: Vec<Value> = (0..64).map(|at| listener(&format!("l{at}"), "HTTP", 1000 + at, json!({}))).collect();
    world.gateway("many", json!(listeners));
    let hostnames: Vec<String> = (0..1024).map(|at| format!("h{at}.example.com")).collect();
    let rules = json!([{ "backendRefs": [backend("app", 80)] }]);
    let references = json!([{ "name": "many", "sectionName": "l3" }, { "name": "many" }]);
    let spec = json!({ "parentRefs": references, "hostnames": hostnames, "rules": rules });
    let translation = world.route(kind::HTTP_ROUTE, spec);
    let accepted: Vec<String> = parents(&translation).into_iter().map(|conditions| conditions[0].clone()).collect();
    assert_eq!(accepted, ["Accepted=True Accepted", "Accepted=False UnsupportedValue"]);
    assert_eq!(translation.routes.len(), 1024);
}
