//! A status that counts others, over some seconds: they come by the thousand, and the API server takes a while for each write.

use super::*;
use model::status::{Scope, StatusFacts, StatusLayout, StatusValue};
use std::collections::VecDeque;

/// How many routes come, and how often one does.
const ROUTES: u32 = 1_000;
const EVERY: Duration = Duration::from_millis(5);
/// How long a write takes, and how many are in flight at once.
const LATENCY: Duration = Duration::from_millis(400);
const IN_FLIGHT: usize = 8;
/// How often the Gateway is written.
const INTERVAL: Duration = Duration::from_secs(1);

const ROUTE: StatusKind = StatusKind {
    layout: StatusLayout { fields: &["attachedRoutes"], ..StatusLayout::EMPTY },
    facts: translated,
    acknowledgement: Acknowledgement::Ignored,
    interval: Duration::ZERO,
};
const GATEWAY: StatusKind = StatusKind { interval: INTERVAL, ..ROUTE };

fn translated(input: &StatusInput<'_>) -> StatusFacts {
    input.translated.cloned().unwrap_or_default()
}

fn kinds_of_gateway_api(kind: Kind) -> Option<&'static StatusKind> {
    if kind == kind::GATEWAY { Some(&GATEWAY) } else { (kind == kind::HTTP_ROUTE).then_some(&ROUTE) }
}

fn attached(routes: u32) -> Translated {
    let values = vec![("attachedRoutes", StatusValue::Integer(routes.into()))];
    Some(Arc::new(StatusFacts { object: Scope { values, ..Scope::default() }, lists: Vec::new() }))
}

fn object(key: &ObjectRef, version: u64, status: &Value) -> Object {
    let metadata = json!({ "namespace": &*key.namespace, "name": &*key.name, "uid": &*key.name, "generation": 1,
        "resourceVersion": version.to_string() });
    let object = json!({ "metadata": metadata, "status": status });
    kinds::decode_json(key.kind, object.to_string().as_bytes()).unwrap().object
}

#[test]
fn a_thousand_routes_are_counted_within_a_second_of_the_last_and_the_count_is_written_once_a_second() {
    let mut world = World::with(ADDRESS.parse().unwrap(), kinds_of_gateway_api);
    world.statuses.synced(world.now);
    let gateway = ObjectRef::new(kind::GATEWAY, "shop", "web");
    world.observe(&object(&gateway, 1, &json!({})));
    world.statuses.claim(&gateway, Some(Default::default()), world.now);
    let (begun, last) = (world.now, world.now + EVERY * (ROUTES - 1));
    let (mut created, mut version) = (0, 1);
    let mut in_flight: VecDeque<(Instant, Write)> = VecDeque::new();
    // When each count was sent.
    let mut counts: Vec<(Duration, u32)> = Vec::new();
    while world.now < last + 3 * INTERVAL {
        if created < ROUTES && world.now >= begun + EVERY * created {
            created += 1;
            let route = ObjectRef::new(kind::HTTP_ROUTE, "shop", format!("r{created}"));
            world.observe(&object(&route, 1, &json!({})));
            world.statuses.claim(&route, Some(Default::default()), world.now);
            world.statuses.translate(&route, attached(0), world.now);
            world.statuses.translate(&gateway, attached(created), world.now);
        }
        while in_flight.front().is_some_and(|(answered, _)| *answered <= world.now) {
            let (_, write) = in_flight.pop_front().unwrap();
            version += 1;
            let Change::Apply(status) = &write.change else { panic!("{write:?}") };
            let written = object(&write.key, version, status);
            world.statuses.done(write, Outcome::Written(written), world.now);
        }
        while in_flight.len() < IN_FLIGHT
            && let Some(write) = world.next()
        {
            if write.key == gateway {
                counts.push((world.now - begun, created));
            }
            in_flight.push_back((world.now + LATENCY, write));
        }
        world.wait(Duration::from_millis(1));
    }
    // When a write is due, the others may all be in flight: the first of them makes room for it.
    let (sent, count) = *counts.last().unwrap();
    assert_eq!(count, ROUTES, "{counts:?}");
    assert!(sent <= (last - begun) + INTERVAL + LATENCY, "{counts:?}");
    let gaps = counts.windows(2).map(|pair| pair[1].0 - pair[0].0);
    assert!(gaps.clone().all(|gap| (INTERVAL..=INTERVAL + LATENCY).contains(&gap)), "{counts:?}");
}
