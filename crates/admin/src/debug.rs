//! The debug pages: what there is, what was last done, who has what. For loopback: they show configuration.
//!
//! Every page is bounded. What could be long is cut off and says how long it is, or is sent as it is made. The small
//! pages stand here, and so does [`Query`], which the others share.

mod certificates;
mod config_dump;
mod fleets;
mod host;
mod page;
mod served;
mod status;
mod verdicts;

use crate::{
    board::{BatchView, Board},
    health::Readiness,
    metrics::BuildInfo,
};
use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    http::{StatusCode, Uri},
    response::{Html, Redirect},
    routing::get,
};
use serde::Serialize;
use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
    time::SystemTime,
};
use tracing::info;

/// What the pages show.
#[derive(Clone)]
pub struct Views {
    /// What the control loop noted.
    pub board: Board,
    /// What proxies were told, and what they have.
    pub server: xds::Server,
    /// What is logged, where that can be changed.
    pub log: Option<LogFilter>,
    /// Who answers.
    pub replica: Replica,
}

/// The process whose pages these are.
#[derive(Clone)]
pub struct Replica {
    /// Its name among replicas.
    pub name: Arc<str>,
    /// What it was built from.
    pub build: BuildInfo,
    /// When it began.
    pub started: SystemTime,
    /// Whether proxies may connect to it.
    pub readiness: Readiness,
    /// Whether it writes status now.
    pub is_leader: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Where the certificates of the xDS server are; none without TLS.
    pub xds_files: Option<xds::TlsFiles>,
}

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replica").field("name", &self.name).field("build", &self.build).finish_non_exhaustive()
    }
}

/// The longest filter of the log that is read.
const LONGEST_FILTER: usize = 4096;

/// Every page: its path and what it is for.
const PAGES: [(&str, &str); 10] = [
    ("/debug/status", "this replica, its fleets, and the proxies that are behind or reject something; ?proxies=all"),
    (
        "/debug/host?name=",
        "one host: the objects that serve it, verdicts on them and on others that name it, the proxies that have it; ?name=www.example.com",
    ),
    (
        "/debug/object?kind=",
        "one object: its hosts and routes, its verdicts, the proxies that have them; ?kind=HTTPProxy&amp;namespace=shop&amp;name=web (kind=HTTPProxy.projectsesame.io for that group)",
    ),
    ("/debug/tables", "every table of the pipeline: rows, keys, reads, how often it was computed"),
    ("/debug/batches", "the last batches: how long they took, and how many keys were computed in each table"),
    ("/debug/fleets", "every fleet: what it was sent, its clients and what each has; ?fleet=shared&node=ID"),
    ("/debug/verdicts", "verdicts on objects; ?kind=Ingress&namespace=shop&name=web&code=SES3001&limit=1000"),
    (
        "/debug/config_dump",
        "every resource that is sent to proxies, without keys; ?fleet=shared&amp;type=rds&amp;name=TEXT&amp;bodies=false",
    ),
    ("/debug/certificates", "the certificates of the xDS server and of hosts, without keys: names and expiry"),
    ("/debug/log", "what is logged; change it with: curl -X PUT -d info,xds=debug ADDRESS/debug/log"),
];

/// `/debug` and below.
pub fn debug(views: Views) -> Router {
    Router::new()
        .route("/", get(|| async { Redirect::temporary("/debug") }))
        .route("/debug", get(index))
        .route("/debug/", get(index))
        .route("/debug/tables", get(tables))
        .route("/debug/batches", get(batches))
        .route("/debug/host", get(host::host))
        .route("/debug/object", get(host::object))
        .route("/debug/fleets", get(fleets::show))
        .route("/debug/verdicts", get(verdicts::show))
        .route("/debug/config_dump", get(config_dump::show))
        .route("/debug/status", get(status::show))
        .route("/debug/certificates", get(certificates::show))
        .route("/debug/log", get(log).put(change_log).post(change_log).layer(DefaultBodyLimit::max(LONGEST_FILTER)))
        .with_state(Arc::new(views))
}

async fn index() -> Html<String> {
    let rows = PAGES.map(|(path, help)| format!("<tr><td><a href=\"{path}\">{path}</a></td><td>{help}</td></tr>\n"));
    Html(format!(
        "<!doctype html>\n<title>Sesame</title>\n<style>body {{ font-family: sans-serif }} td {{ padding: 4px 12px 4px 0 }}</style>\n<table>\n{}</table>\n",
        rows.concat()
    ))
}

/// One table, for people.
#[derive(Serialize)]
struct TableView {
    table: &'static str,
    rows: usize,
    keys: usize,
    index_keys: usize,
    reads: usize,
    failed: usize,
    computed: u64,
    unchanged: u64,
    panics: u64,
}

async fn tables(State(views): State<Arc<Views>>) -> Json<Vec<TableView>> {
    let tables = views.board.0.tables.load();
    let view = |table: &engine::TableCounters| TableView {
        table: table.name,
        rows: table.rows,
        keys: table.keys,
        index_keys: table.index_keys,
        reads: table.reads,
        failed: table.failed,
        computed: table.computed,
        unchanged: table.unchanged,
        panics: table.panics,
    };
    Json(tables.iter().map(view).collect())
}

async fn batches(State(views): State<Arc<Views>>) -> Json<Arc<VecDeque<Arc<BatchView>>>> {
    Json(views.board.0.batches.load_full())
}

/// What was asked for, by name; of a name that comes twice the last holds.
struct Query(BTreeMap<String, String>);

impl From<&Uri> for Query {
    fn from(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }
}

impl Query {
    /// The value of that name.
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The value of that name, unless it is empty.
    fn given(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// Whether a value is the one that was asked for, if one was.
    fn fits(&self, name: &str, value: &str) -> bool {
        self.get(name).is_none_or(|wanted| wanted == value)
    }

    /// How many are wanted, at most `most`.
    fn limit(&self, most: usize) -> usize {
        self.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(most).min(most)
    }
}

/// Changes what is logged; says why it cannot.
type SetFilter = dyn Fn(&str) -> Result<(), String> + Send + Sync;

/// What is logged. Two functions, so that whoever sets up the log keeps its types to itself.
#[derive(Clone)]
pub struct LogFilter {
    /// The filter as it is, as `info,xds=debug`.
    pub get: Arc<dyn Fn() -> String + Send + Sync>,
    /// Changes it; says why it cannot.
    pub set: Arc<SetFilter>,
}

impl fmt::Debug for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LogFilter").field(&(self.get)()).finish()
    }
}

type LogAnswer = Result<String, (StatusCode, String)>;

fn log_filter(views: &Views) -> Result<&LogFilter, (StatusCode, String)> {
    views.log.as_ref().ok_or_else(|| (StatusCode::NOT_FOUND, "what is logged cannot be changed here\n".to_owned()))
}

async fn log(State(views): State<Arc<Views>>) -> LogAnswer {
    Ok(format!("{}\n", (log_filter(&views)?.get)()))
}

async fn change_log(State(views): State<Arc<Views>>, body: String) -> LogAnswer {
    let filter = log_filter(&views)?;
    (filter.set)(body.trim()).map_err(|why| (StatusCode::BAD_REQUEST, format!("{why}\n")))?;
    info!(filter = (filter.get)(), "log level changed");
    Ok(format!("{}\n", (filter.get)()))
}
