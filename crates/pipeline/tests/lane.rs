//! What comes out in the middle of a batch is settled at its end: whoever uses an endpoint set then has its last form, and nobody
//! else has it, however the batch was interrupted.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "other tests use more of it")]
#[path = "packing/claims.rs"]
mod claims;

use claims::Claims;
use engine::Progress;
use kinds::{Object, ObjectRef};
use model::{FleetId, PortProtocol};
use pipeline::{FleetSettings, Output, Pipeline, Settings};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};
use testbed::cases::object;
use xds::Kind;

/// The endpoint sets that each fleet has been given.
#[derive(Debug, Default, PartialEq)]
struct Given(BTreeMap<(FleetId, String), Vec<u8>>);

impl Given {
    fn take(&mut self, mut output: Output) {
        let named: Vec<FleetId> = output.fleets.keys().cloned().collect();
        for fleet in std::iter::once(FleetId::Shared).chain(named) {
            let changes = output.take_fleet(&fleet).xds;
            for (kind, name) in changes.removes {
                if kind == Kind::Endpoints {
                    self.0.remove(&(fleet.clone(), name.to_string()));
                }
            }
            for resource in changes.upserts.into_iter().filter(|resource| resource.kind == Kind::Endpoints) {
                self.0.insert((fleet.clone(), resource.name.to_string()), resource.body.to_vec());
            }
        }
    }
}

fn put(pipeline: &mut Pipeline, value: &Value) {
    let object: Object = object(value);
    pipeline.put(&object.key(), Some(object));
}

fn service() -> Value {
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": "default", "name": "web" },
        "spec": { "ports": [{ "port": 80 }] } })
}

fn endpoints(address: &str) -> Value {
    json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "namespace": "default", "name": "web-1", "labels": { "kubernetes.io/service-name": "web" } },
        "addressType": "IPv4", "ports": [{ "port": 8080 }],
        "endpoints": [{ "addresses": [address], "conditions": { "ready": true } }] })
}

fn ingress(service: &str) -> Value {
    json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": { "namespace": "default", "name": "shop" },
        "spec": { "rules": [{ "host": "shop.example.com", "http": { "paths": [{ "path": "/", "pathType": "Prefix",
            "backend": { "service": { "name": service, "port": { "number": 80 } } } }] } }] } })
}

fn key(value: &Value) -> ObjectRef {
    object(value).key()
}

fn team() -> FleetId {
    FleetId::named("team", "gateway")
}

fn claim() -> Claims {
    Claims::new("claim", team()).listener("web", 80, PortProtocol::Http, "*").route("web", "*", "web")
}

/// Interrupts a batch after so many rows; gives what came out.
fn rows(pipeline: &mut Pipeline, rows: usize, given: &mut Given) {
    for _ in 0..rows {
        let mut output = Output::default();
        if pipeline.step_for(Duration::ZERO, &mut output) == Progress::Settled {
            pipeline.finish(&mut output);
        }
        given.take(output);
    }
}

/// A start, then edits with interruptions of many lengths between them, must end as a build of the end from nothing.
fn everywhere(start: impl Fn(&mut Pipeline), edits: &[&dyn Fn(&mut Pipeline)], end: impl Fn(&mut Pipeline)) {
    let begun = |with: &dyn Fn(&mut Pipeline)| {
        let mut pipeline = Pipeline::new(&Settings::default());
        pipeline.set_fleet(&team(), Some(FleetSettings::default()));
        put(&mut pipeline, &service());
        with(&mut pipeline);
        let mut given = Given::default();
        given.take(pipeline.settle());
        (pipeline, given)
    };
    let (_, expected) = begun(&end);
    for (first, others) in (0..20).flat_map(|first| [(first, 1), (first, 3), (first, first)]) {
        let (mut pipeline, mut given) = begun(&start);
        for (at, edit) in edits.iter().enumerate() {
            edit(&mut pipeline);
            rows(&mut pipeline, if at == 0 { first } else { others }, &mut given);
        }
        given.take(pipeline.settle());
        assert_eq!(given, expected, "interrupted after {first} rows, then after {others}");
    }
}

#[test]
fn endpoints_that_change_while_nobody_uses_them_reach_who_uses_them_at_the_end() {
    everywhere(
        |pipeline| {
            put(pipeline, &endpoints("192.0.2.1"));
            put(pipeline, &ingress("web"));
        },
        &[
            &|pipeline| put(pipeline, &ingress("other")),
            &|pipeline| put(pipeline, &endpoints("192.0.2.2")),
            &|pipeline| put(pipeline, &ingress("web")),
        ],
        |pipeline| {
            put(pipeline, &endpoints("192.0.2.2"));
            put(pipeline, &ingress("web"));
        },
    );
}

#[test]
fn endpoints_that_came_in_the_middle_do_not_stay_with_a_fleet_that_no_longer_uses_them() {
    everywhere(
        |pipeline| {
            put(pipeline, &endpoints("192.0.2.1"));
            claim().put(pipeline);
        },
        &[
            &|pipeline| put(pipeline, &ingress("web")),
            &|pipeline| put(pipeline, &endpoints("192.0.2.2")),
            &|pipeline| pipeline.put(&key(&ingress("web")), None),
        ],
        |pipeline| {
            put(pipeline, &endpoints("192.0.2.2"));
            claim().put(pipeline);
        },
    );
}

#[test]
fn endpoints_that_change_while_a_fleet_comes_and_goes_end_with_the_others() {
    everywhere(
        |pipeline| {
            put(pipeline, &endpoints("192.0.2.1"));
            put(pipeline, &ingress("web"));
        },
        &[
            &|pipeline| claim().put(pipeline),
            &|pipeline| put(pipeline, &endpoints("192.0.2.2")),
            &|pipeline| claim().remove(pipeline),
            &|pipeline| put(pipeline, &endpoints("192.0.2.3")),
        ],
        |pipeline| {
            put(pipeline, &endpoints("192.0.2.3"));
            put(pipeline, &ingress("web"));
        },
    );
}
