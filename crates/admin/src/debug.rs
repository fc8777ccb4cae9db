//! The debug pages: what there is, what was last done, who has what. For loopback: they show configuration.
//!
//! Every page is bounded. What could be long is cut off and says how long it is, or is sent as it is made.

mod config_dump;
mod fleets;
mod log;
mod query;
mod redact;
mod verdicts;

use crate::board::{BatchView, Board};
use axum::{
    Json, Router,
    extract::State,
    response::{Html, Redirect},
    routing::get,
};
use serde::Serialize;
use std::{collections::VecDeque, sync::Arc};

pub use log::LogFilter;

/// What the pages show.
#[derive(Clone)]
pub struct Views {
    /// What the control loop noted.
    pub board: Board,
    /// What proxies were told, and what they have.
    pub server: xds::Server,
    /// What is logged, where that can be changed.
    pub log: Option<LogFilter>,
}

/// Every page: its path and what it is for.
const PAGES: [(&str, &str); 6] = [
    ("/debug/tables", "every table of the pipeline: rows, keys, reads, how often it was computed"),
    ("/debug/batches", "the last batches: how long they took, and how many keys were computed in each table"),
    ("/debug/fleets", "every fleet: what it was sent, its clients and what each has; ?fleet=shared&node=ID"),
    ("/debug/verdicts", "what is said about objects; ?kind=Ingress&namespace=shop&name=web&code=SES3001&limit=1000"),
    ("/debug/config_dump", "every resource that proxies are sent, without keys; ?fleet=shared&type=rds&name=TEXT"),
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
        .route("/debug/fleets", get(fleets::show))
        .route("/debug/verdicts", get(verdicts::show))
        .route("/debug/config_dump", get(config_dump::show))
        .route("/debug/log", get(log::show).put(log::change).post(log::change))
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
    held: usize,
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
        held: table.held,
        computed: table.computed,
        unchanged: table.unchanged,
        panics: table.panics,
    };
    Json(tables.iter().map(view).collect())
}

async fn batches(State(views): State<Arc<Views>>) -> Json<Arc<VecDeque<Arc<BatchView>>>> {
    Json(views.board.0.batches.load_full())
}
