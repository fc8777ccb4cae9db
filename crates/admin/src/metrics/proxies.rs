//! `sesame_proxies`: how the proxies of each fleet stand, counted when it is asked for.

use super::gauge;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet},
    registry::Registry,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};
use xds::{FleetAcks, Server};

/// How many fleets have series of their own; all others are one.
pub const MOST_FLEETS: usize = 14;
/// How long a proxy may take before it is called stuck.
const STUCK: Duration = Duration::from_secs(10);
const STATES: [&str; 4] = ["in_step", "behind", "stuck", "rejected"];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfFleet {
    fleet: String,
    state: &'static str,
}

#[derive(Debug)]
struct Proxies(Server);

/// Adds the proxies of a server to a registry.
pub fn register(server: &Server, registry: &mut Registry) {
    registry.register_collector(Box::new(Proxies(server.clone())));
}

impl Collector for Proxies {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut all = self.0.all_acks();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut counts: BTreeMap<String, [usize; 4]> = BTreeMap::new();
        for (index, (fleet, acks)) in all.iter().enumerate() {
            let name = if index < MOST_FLEETS { fleet.to_string() } else { "other".to_owned() };
            let sum = counts.entry(name).or_default();
            for (sum, count) in sum.iter_mut().zip(count(acks)) {
                *sum += count;
            }
        }
        let series = counts.iter().flat_map(|(fleet, counts)| {
            let of = |state| OfFleet { fleet: fleet.clone(), state };
            STATES.iter().zip(counts).map(move |(state, count)| (of(state), gauge(*count)))
        });
        let help = "Connected proxies, by fleet and state; stuck is behind for longer than ten seconds";
        super::family(&mut encoder, "sesame_proxies", help, series.collect::<Vec<_>>())
    }
}

/// How many are in each of the states. One that has a stream for each type is one proxy.
fn count(acks: &FleetAcks) -> [usize; 4] {
    let nodes: BTreeSet<Arc<str>> = acks.nodes().into_iter().collect();
    let rejected: BTreeSet<Arc<str>> =
        acks.rejections().iter().map(|it| it.client.node.clone()).filter(|node| nodes.contains(node)).collect();
    let mut since: BTreeMap<Arc<str>, Instant> = BTreeMap::new();
    for (client, _, at) in acks.stuck(Duration::ZERO) {
        let first = since.entry(client.node.clone()).or_insert(at);
        *first = at.min(*first);
    }
    since.retain(|node, _| nodes.contains(node) && !rejected.contains(node));
    let now = Instant::now();
    let stuck = since.values().filter(|at| now.saturating_duration_since(**at) >= STUCK).count();
    let behind = since.len() - stuck;
    [nodes.len() - rejected.len() - since.len(), behind, stuck, rejected.len()]
}
