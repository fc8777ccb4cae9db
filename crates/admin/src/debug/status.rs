//! `/debug/status`: this replica, its fleets, and the proxies that are not in step.
//!
//! In: acks, readiness, who leads. Out: counts of every fleet, and a line for each proxy that is behind or has rejected something;
//! `?proxies=all` for every proxy. `sesame status` adds up the pages of all replicas.

use super::{Query, Views};
use axum::{Json, extract::State, http::Uri};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use xds::{Fleet, FleetAcks, Kind, Rejection};

/// How many fleets and how many proxies are listed.
const MOST: usize = 5_000;

#[derive(Serialize)]
pub(super) struct Page {
    replica: Arc<str>,
    version: &'static str,
    revision: &'static str,
    /// When the process began, in seconds since the epoch.
    started: u64,
    leader: bool,
    ready: bool,
    /// What the replica waits for; nothing when ready.
    waiting: Vec<String>,
    /// What is logged.
    log: Option<String>,
    objects: BTreeMap<&'static str, usize>,
    verdicts: BTreeMap<&'static str, i64>,
    batches: u64,
    fleet_count: usize,
    /// The first of them.
    fleets: Vec<FleetStatus>,
    proxy_count: usize,
    /// Those that are not in step, or all: the first of them.
    proxies: Vec<ProxyStatus>,
}

#[derive(Serialize)]
struct FleetStatus {
    fleet: Fleet,
    /// How many batches this process has published to the fleet.
    generation: Option<u64>,
    /// Equal on every replica that publishes the same.
    version: String,
    resources: usize,
    proxies: usize,
    in_step: usize,
    behind: usize,
    rejected: usize,
}

/// How a proxy stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum ProxyState {
    InStep,
    Behind,
    Rejected,
}

#[derive(Serialize)]
struct ProxyStatus {
    fleet: Fleet,
    node: Arc<str>,
    envoy: Arc<str>,
    state: ProxyState,
    /// For how long it has been behind.
    seconds: u64,
    /// What it waits for, or what it rejected and why.
    detail: String,
}

pub(super) async fn show(State(views): State<Arc<Views>>, uri: Uri) -> Json<Page> {
    let query = Query::from(&uri);
    let is_shown = |state: ProxyState| state != ProxyState::InStep || query.get("proxies") == Some("all");
    let mut all = views.server.all_acks();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    let (mut fleets, mut proxies) = (Vec::new(), Vec::new());
    let fleet_count = all.len();
    for (fleet, acks) in all {
        let own = of_fleet(&fleet, &acks);
        let count = |state| own.iter().filter(|proxy| proxy.state == state).count();
        let snapshot = acks.snapshot();
        let tables = || snapshot.iter().flat_map(|snapshot| Kind::ALL.map(|kind| snapshot.table(kind)));
        let version = tables().fold(0_u64, |all, table| all.rotate_left(7) ^ table.version());
        fleets.push(FleetStatus {
            generation: snapshot.as_ref().map(|snapshot| snapshot.generation),
            version: format!("{version:016x}"),
            resources: tables().map(xds::Table::len).sum(),
            proxies: own.len(),
            in_step: count(ProxyState::InStep),
            behind: count(ProxyState::Behind),
            rejected: count(ProxyState::Rejected),
            fleet,
        });
        proxies.extend(own.into_iter().filter(|proxy| is_shown(proxy.state)));
    }
    fleets.truncate(MOST);
    let proxy_count = proxies.len();
    proxies.truncate(MOST);
    let shared = &views.board.0;
    let waiting = views.replica.readiness.pending();
    Json(Page {
        replica: views.replica.name.clone(),
        version: views.replica.build.version,
        revision: views.replica.build.revision,
        started: views.replica.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
        leader: (views.replica.is_leader)(),
        ready: waiting.is_empty(),
        waiting,
        log: views.log.as_ref().map(|filter| (filter.get)()),
        objects: shared.objects.load().iter().copied().filter(|(_, count)| *count > 0).collect(),
        verdicts: shared.severities.load().iter().map(|(severity, count)| (severity.word(), *count)).collect(),
        batches: shared.count.get(),
        fleet_count,
        fleets,
        proxy_count,
        proxies,
    })
}

/// How each proxy of a fleet stands. One that has a stream for each type is one proxy.
fn of_fleet(fleet: &Fleet, acks: &FleetAcks) -> Vec<ProxyStatus> {
    let mut proxies: BTreeMap<Arc<str>, ProxyStatus> = BTreeMap::new();
    for client in acks.clients() {
        let node = client.identity.node.clone();
        let proxy = proxies.entry(node.clone()).or_insert_with(|| ProxyStatus {
            fleet: fleet.clone(),
            node,
            envoy: client.identity.version.clone(),
            state: ProxyState::InStep,
            seconds: 0,
            detail: String::new(),
        });
        for behind in client.types.iter().filter(|of| !of.in_step) {
            let seconds = behind.behind.unwrap_or_default() / 1000;
            if proxy.state == ProxyState::InStep || seconds > proxy.seconds {
                let name = behind.pending.first().map(|name| format!(", first {name}")).unwrap_or_default();
                proxy.detail = format!("{} {} not acknowledged{name}", behind.pending_count, behind.kind);
                proxy.seconds = seconds;
            }
            proxy.state = ProxyState::Behind;
        }
    }
    let mut seen = BTreeSet::new();
    let mut rejections = acks.rejections();
    rejections
        .sort_by(|a, b| (&a.client.node, a.kind.label(), &a.name).cmp(&(&b.client.node, b.kind.label(), &b.name)));
    for rejection in rejections {
        let Some(proxy) = proxies.get_mut(&rejection.client.node) else { continue };
        proxy.state = ProxyState::Rejected;
        if seen.insert(rejection.client.node.clone()) {
            proxy.seconds = SystemTime::now().duration_since(rejection.at).unwrap_or_default().as_secs();
            proxy.detail = words(&rejection);
        }
    }
    proxies.into_values().collect()
}

fn words(rejection: &Rejection) -> String {
    let origin = rejection.origin.as_ref().map(|origin| format!(" of {origin}")).unwrap_or_default();
    format!("{} {}{origin}: {}", rejection.kind.label(), rejection.name, rejection.text)
}
