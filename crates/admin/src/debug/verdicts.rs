//! `/debug/verdicts`: everything that is said about objects.

use super::{Query, Views};
use axum::{Json, extract::State, http::Uri};
use model::Verdict;
use serde::Serialize;
use std::sync::Arc;

/// How many are shown.
const MOST: usize = 1_000;

#[derive(Serialize)]
pub(super) struct Page {
    /// How many objects there is a verdict table row for, with or without verdicts.
    objects: usize,
    /// How many verdicts fit what was asked for.
    count: usize,
    /// The first of them.
    verdicts: Vec<View>,
}

#[derive(Serialize)]
pub(super) struct View {
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: Arc<str>,
    name: Arc<str>,
    field: String,
    severity: &'static str,
    code: String,
    message: Box<str>,
    help: &'static str,
}

pub(super) async fn show(State(views): State<Arc<Views>>, uri: Uri) -> Json<Page> {
    let query = Query::from(&uri);
    let all = views.board.0.verdicts.load_full();
    let limit = query.limit(MOST);
    let mut page = Page { objects: all.len(), count: 0, verdicts: Vec::new() };
    let objects = all.iter().filter(|(object, _)| {
        query.fits("kind", object.kind.label())
            && query.fits("namespace", &object.namespace)
            && query.fits("name", &object.name)
    });
    for verdict in objects.flat_map(|(_, verdicts)| verdicts.iter()) {
        if query.fits("code", &verdict.code.to_string()) {
            page.count += 1;
            if page.verdicts.len() < limit {
                page.verdicts.push(view(verdict));
            }
        }
    }
    Json(page)
}

pub(super) fn view(verdict: &Verdict) -> View {
    let object = &verdict.origin.object;
    View {
        kind: object.kind.label(),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
        field: verdict.origin.field.to_string(),
        severity: verdict.severity().word(),
        code: verdict.code.to_string(),
        message: verdict.message.clone(),
        help: verdict.code.help(),
    }
}
