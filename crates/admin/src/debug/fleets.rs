//! `/debug/fleets`: what each fleet was sent, and what each of its clients has.

use super::{Query, Views};
use axum::{Json, extract::State, http::Uri};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};
use xds::{ClientView, Fleet, FleetAcks, Kind, RejectionCause};

/// How many clients of a fleet are shown, and how many rejections.
const MOST: usize = 200;
/// How long a client may take before it is called stuck.
const STUCK: Duration = Duration::from_secs(10);

#[derive(Serialize)]
pub(super) struct FleetView {
    fleet: Fleet,
    /// How many batches this process has published to the fleet.
    generation: Option<u64>,
    /// What is published, by type.
    resources: BTreeMap<&'static str, TypeView>,
    client_count: usize,
    /// The first of them.
    clients: Vec<ClientView>,
    /// Who has not had everything that it should for longer than ten seconds.
    stuck: Vec<StuckView>,
    rejection_count: usize,
    /// The first of them.
    rejections: Vec<RejectionView>,
}

#[derive(Serialize)]
struct TypeView {
    count: usize,
    /// Equal on every replica that publishes the same.
    version: String,
}

#[derive(Serialize)]
struct StuckView {
    node: Arc<str>,
    #[serde(rename = "type")]
    kind: &'static str,
    seconds: u64,
}

#[derive(Serialize)]
struct RejectionView {
    node: Arc<str>,
    envoy: Arc<str>,
    #[serde(rename = "type")]
    kind: &'static str,
    name: Arc<str>,
    version: String,
    cause: RejectionCause,
    text: Arc<str>,
    origin: Option<String>,
    /// How many seconds ago.
    age: u64,
}

pub(super) async fn show(State(views): State<Arc<Views>>, uri: Uri) -> Json<Vec<FleetView>> {
    let query = Query::from(&uri);
    let mut all = views.server.all_acks();
    all.retain(|(fleet, _)| query.fits("fleet", &fleet.to_string()));
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    Json(all.into_iter().map(|(fleet, acks)| view(fleet, &acks, &query)).collect())
}

fn view(fleet: Fleet, acks: &FleetAcks, query: &Query) -> FleetView {
    let snapshot = acks.snapshot();
    let tables = snapshot.iter().flat_map(|snapshot| Kind::ALL.map(|kind| (kind, snapshot.table(kind))));
    let resources = tables.filter(|(_, table)| !table.is_empty()).map(|(kind, table)| {
        (kind.label(), TypeView { count: table.len(), version: format!("{:016x}", table.version()) })
    });
    let mut clients = acks.clients();
    clients.retain(|client| query.fits("node", &client.identity.node));
    let client_count = clients.len();
    clients.truncate(query.limit(MOST));
    let now = Instant::now();
    let stuck = acks.stuck(STUCK).into_iter().take(MOST).map(|(client, kind, since)| StuckView {
        node: client.node.clone(),
        kind: kind.label(),
        seconds: now.saturating_duration_since(since).as_secs(),
    });
    let rejections = acks.rejections();
    FleetView {
        fleet,
        generation: snapshot.as_ref().map(|snapshot| snapshot.generation),
        resources: resources.collect(),
        client_count,
        clients,
        stuck: stuck.collect(),
        rejection_count: rejections.len(),
        rejections: rejections.iter().take(MOST).map(rejection).collect(),
    }
}

fn rejection(rejection: &xds::Rejection) -> RejectionView {
    RejectionView {
        node: rejection.client.node.clone(),
        envoy: rejection.client.version.clone(),
        kind: rejection.kind.label(),
        name: rejection.name.clone(),
        version: format!("{:016x}", rejection.version),
        cause: rejection.cause,
        text: rejection.text.clone(),
        origin: rejection.origin.as_ref().map(ToString::to_string),
        age: SystemTime::now().duration_since(rejection.at).unwrap_or_default().as_secs(),
    }
}
