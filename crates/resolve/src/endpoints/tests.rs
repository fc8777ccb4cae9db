//! Which endpoints are used, from slices as the cluster writes them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use crate::Settings;
use serde_json::{Value, json};
use std::sync::Arc;

fn web() -> Service {
    let object = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "ports": [{ "name": "http", "port": 80 }] },
    });
    let decoded = kinds::decode_json(kinds::Kind::Service, object.to_string().as_bytes()).unwrap();
    Service::read(decoded.object.get::<kinds::Service>().unwrap(), &Settings::default())
}

fn slice(name: &str, family: &str, endpoints: Value) -> Arc<EndpointSlice> {
    let object = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "name": name, "namespace": "shop", "labels": { "kubernetes.io/service-name": "web" } },
        "addressType": family, "endpoints": endpoints, "ports": [{ "name": "http", "port": 8080 }, { "name": "other", "port": 1 }],
    });
    let decoded = kinds::decode_json(kinds::Kind::EndpointSlice, object.to_string().as_bytes()).unwrap();
    decoded.object.get::<EndpointSlice>().unwrap().clone()
}

fn used(slices: &[Arc<EndpointSlice>]) -> Vec<String> {
    let endpoints = endpoints(&web(), 80, None, slices.iter().map(|slice| &**slice));
    endpoints.list.iter().map(|e| format!("{}:{}{}", e.address, e.port, e.zone)).collect()
}

fn pod(address: &str, ready: bool, serving: bool, terminating: bool) -> Value {
    json!({ "addresses": [address], "conditions": { "ready": ready, "serving": serving, "terminating": terminating } })
}

#[test]
fn several_slices_are_one_set() {
    let a = slice("a", "IPv4", json!([{ "addresses": ["10.0.0.2"] }, { "addresses": ["10.0.0.1"], "zone": "z" }]));
    let b = slice("b", "IPv4", json!([{ "addresses": ["10.0.0.3"] }, { "addresses": ["10.0.0.2"] }]));
    assert_eq!(used(&[b.clone(), a.clone()]), ["10.0.0.1:8080z", "10.0.0.2:8080", "10.0.0.3:8080"]);
    assert_eq!(used(&[a, b]), ["10.0.0.1:8080z", "10.0.0.2:8080", "10.0.0.3:8080"]);
}

#[test]
fn what_still_serves_is_used_when_nothing_else_is_ready() {
    let ending = pod("10.0.0.1", false, true, true);
    let away = pod("10.0.0.2", false, false, true);
    let starting = pod("10.0.0.3", false, true, false);
    let ready = pod("10.0.0.4", true, true, false);
    assert_eq!(used(&[slice("a", "IPv4", json!([ending, away, starting, ready]))]), ["10.0.0.4:8080"]);
    assert_eq!(used(&[slice("a", "IPv4", json!([ending, away, starting]))]), ["10.0.0.1:8080"]);
    assert!(used(&[slice("a", "IPv4", json!([away, starting]))]).is_empty());
}

#[test]
fn two_families_are_one_backend() {
    let four = slice("a", "IPv4", json!([{ "addresses": ["10.0.0.1"] }]));
    let six = slice("b", "IPv6", json!([{ "addresses": ["fd00::1"] }]));
    assert_eq!(used(&[six.clone(), four]), ["10.0.0.1:8080"]);
    assert_eq!(used(&[six]), ["fd00::1:8080"]);
}

#[test]
fn one_bad_endpoint_does_not_spoil_the_others() {
    let slices = [slice(
        "a",
        "IPv4",
        json!([{ "addresses": "x" }, { "addresses": ["nonsense"] }, { "addresses": ["10.0.0.1"] }]),
    )];
    assert_eq!(used(&slices), ["10.0.0.1:8080"]);
}
