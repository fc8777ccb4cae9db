//! Emissary's test client: requests over HTTP, TLS, gRPC, gRPC-Web and WebSocket by libraries that are not ours.
//!
//! In: queries as its own test suite writes them, such as `{"url": "http://127.0.0.1/", "headers": {"Host": "a.example.com"}}`. Out:
//! what came of each, in their order: `status`, `headers`, `json` or `text`, `messages` of a WebSocket, or `error`.

use crate::process::Command;
use crate::report::debug_as_report;
use crate::start::StartError;
use crate::state::StateDir;
use serde_json::Value;

/// Makes all requests at once, and waits for their results.
pub async fn ask(queries: impl IntoIterator<Item = Value>) -> Result<Vec<Value>, Error> {
    let state = StateDir::new("kat-client")?;
    // It takes versions of TLS for granted; an empty one says nothing.
    let complete = |mut query: Value| {
        for field in ["minTLSv", "maxTLSv"] {
            if query[field].is_null() {
                query[field] = "".into();
            }
        }
        query
    };
    let queries: Value = queries.into_iter().map(complete).collect();
    let input = state.write("queries.json", queries.to_string())?;
    let output = state.path().join("results.json");
    let process = Command::new(parts::program("kat-client")?)
        .args(["-input".as_ref(), input.as_os_str(), "-output".as_ref(), output.as_os_str()])
        .start_in(&state)?;
    process.exited().await?;
    let text = std::fs::read(&output).map_err(|source| Error::Results { source, log: process.log().text() })?;
    let results: Vec<Value> = serde_json::from_slice(&text).map_err(Error::Json)?;
    Ok(results.into_iter().map(|mut query| query["result"].take()).collect())
}

/// The client is not available, or failed to run.
#[derive(thiserror::Error)]
pub enum Error {
    /// It did not run.
    #[error(transparent)]
    Start(StartError),
    /// It wrote no results.
    #[error("the results of the test client of Emissary, which says: {log}")]
    Results {
        /// Why not.
        source: std::io::Error,
        /// What it wrote on the way.
        log: String,
    },
    /// Its results are no JSON.
    #[error("the results of the test client of Emissary")]
    Json(#[source] serde_json::Error),
}
debug_as_report!(Error);

impl<E: Into<StartError>> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Start(error.into())
    }
}
