//! `/debug/log`: what is logged, changed while the program runs.

use super::Views;
use axum::{extract::State, http::StatusCode};
use std::{fmt, sync::Arc};
use tracing::info;

/// Changes what is logged; says why it cannot.
pub type SetFilter = dyn Fn(&str) -> Result<(), String> + Send + Sync;

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

type Answer = Result<String, (StatusCode, String)>;

fn filter(views: &Views) -> Result<&LogFilter, (StatusCode, String)> {
    views.log.as_ref().ok_or_else(|| (StatusCode::NOT_FOUND, "what is logged cannot be changed here\n".to_owned()))
}

pub(super) async fn show(State(views): State<Arc<Views>>) -> Answer {
    Ok(format!("{}\n", (filter(&views)?.get)()))
}

pub(super) async fn change(State(views): State<Arc<Views>>, body: String) -> Answer {
    let filter = filter(&views)?;
    (filter.set)(body.trim()).map_err(|why| (StatusCode::BAD_REQUEST, format!("{why}\n")))?;
    info!(filter = (filter.get)(), "what is logged was changed");
    Ok(format!("{}\n", (filter.get)()))
}
