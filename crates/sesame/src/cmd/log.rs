//! `sesame log LEVEL`: what running controllers log, shown or changed.

use std::process::ExitCode;

use anyhow::Result;
use futures::future::join_all;
use http::Method;
use serde::Serialize;

use crate::operate::controllers::{Controller, ControllerFlags};
use crate::operate::print::OutputFlags;
use crate::operate::table::Table;
use crate::operate::{Outcome, exit};

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Show or change what running controllers log
///
/// Changes all replicas at once, until they restart or the level is changed again.
///
/// Exit code: 0 if every replica has the level, 1 if some replicas do not, 2 if no replica could be reached.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Level: off, error, warn, info, debug or trace; also per module, such as `info,xds=debug`. Without it, the levels are shown
    #[arg(value_name = "LEVEL", value_parser = filter)]
    level: Option<String>,
    #[command(flatten)]
    controllers: ControllerFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// What one replica logs.
#[derive(Serialize)]
struct Row {
    replica: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Shows or changes it.
pub async fn run(args: Args) -> ExitCode {
    exit(print(&args).await)
}

async fn print(args: &Args) -> Result<Outcome> {
    let controllers = args.controllers.find().await?;
    let asking = controllers.iter().map(|controller| ask(controller, args.level.as_deref()));
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for (controller, answer) in controllers.iter().zip(join_all(asking).await) {
        let (level, error) = match answer {
            Ok(level) => (Some(level), None),
            Err(error) => {
                let words = format!("{error:#}");
                failed.push(error);
                (None, Some(words))
            }
        };
        rows.push(Row { replica: controller.name.clone(), level, error });
    }
    if failed.len() == rows.len() {
        return failed.into_iter().next().map_or(Ok(Outcome::Fine), Err);
    }
    args.output.print(&rows, || text(&rows))?;
    Ok(Outcome::of(!failed.is_empty()))
}

async fn ask(controller: &Controller, level: Option<&str>) -> Result<String> {
    let (method, body) = match level {
        Some(level) => (Method::PUT, level.to_owned()),
        None => (Method::GET, String::new()),
    };
    let page = controller.ask(method, "/debug/log", body).await?.bytes().await?;
    Ok(String::from_utf8_lossy(&page).trim().to_owned())
}

fn text(rows: &[Row]) -> String {
    let mut table = Table::new(["REPLICA", "LEVEL"]);
    for row in rows {
        table.row([row.replica.clone(), row.level.clone().or_else(|| row.error.clone()).unwrap_or_default()]);
    }
    table.text()
}

/// A word that is no level would be taken for a module, and everything else be off: it is refused here.
fn filter(text: &str) -> Result<String, String> {
    for part in text.split(',').map(str::trim) {
        let level = part.rsplit_once('=').map_or(part, |(_, level)| level);
        if !LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level)) {
            return Err(format!("`{level}` is no level: use {}, or MODULE=LEVEL", LEVELS.join(", ")));
        }
    }
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::filter;

    #[test]
    fn a_misspelt_level_is_refused() {
        assert_eq!(filter("debug").as_deref(), Ok("debug"));
        assert_eq!(filter("info,xds=debug").as_deref(), Ok("info,xds=debug"));
        for wrong in ["inof", "info,xds", "xds=very", ""] {
            assert!(filter(wrong).is_err(), "{wrong}");
        }
    }
}
