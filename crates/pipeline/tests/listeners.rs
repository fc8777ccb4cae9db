//! Fleets, ports and listeners as rows: who has a port, what belongs to which fleet, and what a change of settings reaches.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "packing/claims.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod claims;
#[path = "listeners/extensions.rs"]
mod extensions;
#[path = "listeners/fleets.rs"]
mod fleets;
#[path = "listeners/ports.rs"]
mod ports;
#[path = "listeners/streams.rs"]
mod streams;
#[path = "listeners/tracing.rs"]
mod tracing;
#[path = "packing/world.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod world;

use claims::{Claims, cluster, host};
use model::{
    FleetId, ListenerId, ObjectRef, PortId,
    PortProtocol::{self, Http, Tcp, Tls, Udp},
};
use pipeline::{
    FleetSettings, Output, Pipeline, Settings,
    hosts::{Chains, Placements},
    ports::{ActiveListeners, Ports},
    settings::{Bind, Certificates, Packing},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    time::Duration,
};
use testbed::certs::Ca;
use world::{ingress, ingress_with, secret, service};

fn named(number: usize) -> FleetId {
    FleetId::named("team", &format!("gateway-{number}"))
}

fn pipeline() -> Pipeline {
    pipeline_with(Certificates::default())
}

fn pipeline_with(certificates: Certificates) -> Pipeline {
    let mut pipeline = Pipeline::new(&Settings { certificates, ..world::settings(Packing::Scoped) });
    for name in ["web", "other"] {
        let object = service(name, Ipv4Addr::LOCALHOST);
        pipeline.put(&object.key(), Some(object));
    }
    pipeline
}

/// The names of what a fleet is told, and of what it loses.
fn reported(output: &mut Output, fleet: &FleetId) -> (BTreeSet<String>, BTreeSet<String>) {
    let changes = output.take_fleet(fleet).xds;
    let set = changes.upserts.iter().map(|resource| format!("{} {}", resource.kind, resource.name));
    let gone = changes.removes.iter().map(|(kind, name)| format!("{kind} {name}"));
    (set.collect(), gone.collect())
}

fn verdicts(output: &Output, name: &str) -> Vec<String> {
    let object = ObjectRef::new(kinds::kind::CONFIG_MAP, "default", name);
    let found = output.verdicts.iter().find(|(of, _)| *of == object).and_then(|(_, list)| list.clone());
    found.iter().flat_map(|list| list.iter()).map(|verdict| format!("{} {}", verdict.code, verdict.message)).collect()
}
