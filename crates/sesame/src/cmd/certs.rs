//! `sesame certs`: the certificates of xDS and of hosts, and when they expire.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::operate::controllers::ControllerFlags;
use crate::operate::print::OutputFlags;
use crate::operate::table::{Table, age};
use crate::operate::{Outcome, ask, exit};

/// Show certificates and when they expire
///
/// Those of the xDS server are read from the files of each replica; those of hosts are the ones that proxies are sent. No keys are read.
///
/// Exit code: 0 if all are valid for longer than --within, 1 if one is not, 2 if no replica could be reached.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A certificate that expires sooner than this is a finding
    #[arg(long, value_name = "DURATION", default_value = "168h", value_parser = super::serve::duration)]
    within: Duration,
    #[command(flatten)]
    controllers: ControllerFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// `/debug/certificates`.
#[derive(Debug, Deserialize)]
struct Page {
    xds: Vec<OfFile>,
    host_count: usize,
    hosts: Vec<OfHost>,
    #[serde(default)]
    missing: Vec<Missing>,
}

/// What is said about an object whose Secret cannot be used.
#[derive(Debug, Deserialize)]
struct Missing {
    kind: String,
    #[serde(default)]
    namespace: String,
    name: String,
    field: String,
    code: String,
    message: String,
}

#[derive(Debug, Deserialize)]
struct OfFile {
    certificate: String,
    file: String,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    issuer: String,
    not_after: Option<i64>,
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
struct OfHost {
    resources: Vec<String>,
    names: Vec<String>,
    issuer: String,
    not_after: i64,
}

/// One certificate.
#[derive(Debug, Serialize)]
struct Row {
    /// `xds ca`, `xds server` or `host`.
    of: String,
    /// The replica and file, the Secret or host, or the object and field whose Secret is missing.
    place: String,
    names: Vec<String>,
    issuer: String,
    /// In seconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_after: Option<i64>,
    /// `valid`, `soon`, `expired`, `unreadable` or `missing`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Prints the certificates.
pub async fn run(args: Args) -> ExitCode {
    exit(print(&args).await)
}

async fn print(args: &Args) -> Result<Outcome> {
    let controllers = args.controllers.find().await?;
    let pages = ask::answering::<Page>(&controllers, "/debug/certificates").await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (now, within) = (seconds(now), seconds(args.within));
    let (rows, rest) = rows(pages, now, within);
    args.output.print(&rows, || text(&rows, rest, now))?;
    Ok(Outcome::of(rows.iter().any(|row| row.state != "valid")))
}

fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

/// The files of every replica, then the hosts of the first one: all replicas publish the same. The second figure is how many hosts
/// are not listed.
fn rows(pages: Vec<(String, Page)>, now: i64, within: i64) -> (Vec<Row>, usize) {
    let state = |end: Option<i64>| match end {
        None => "unreadable",
        Some(end) if end <= now => "expired",
        Some(end) if end - now < within => "soon",
        Some(_) => "valid",
    };
    let (mut files, mut hosts, mut rest) = (Vec::new(), Vec::new(), 0);
    for (index, (replica, page)) in pages.into_iter().enumerate() {
        for OfFile { certificate, file, names, issuer, not_after, error } in page.xds {
            let (of, place) = (format!("xds {certificate}"), format!("{replica} {file}"));
            files.push(Row { of, place, names, issuer, not_after, state: state(not_after), error });
        }
        if index > 0 {
            continue;
        }
        hosts.extend(page.missing.into_iter().map(|Missing { kind, namespace, name, field, code, message }| Row {
            of: "host".to_owned(),
            place: format!("{kind} {namespace}/{name} {field}"),
            names: Vec::new(),
            issuer: String::new(),
            not_after: None,
            state: "missing",
            error: Some(format!("{code}: {message}")),
        }));
        rest = page.host_count - page.hosts.len();
        for OfHost { resources, names, issuer, not_after } in page.hosts {
            let (of, not_after) = ("host".to_owned(), Some(not_after));
            hosts.push(Row {
                of,
                place: resources.join(", "),
                names,
                issuer,
                not_after,
                state: state(not_after),
                error: None,
            });
        }
    }
    files.extend(hosts);
    (files, rest)
}

fn text(rows: &[Row], rest: usize, now: i64) -> String {
    let mut table = Table::new(["OF", "STATE", "LEFT", "NAMES", "PLACE", "ISSUER"]);
    for row in rows {
        let left = row.not_after.and_then(|end| u64::try_from(end - now).ok()).map(age);
        let names = row.error.clone().unwrap_or_else(|| row.names.join(","));
        table.row([
            row.of.clone(),
            row.state.to_owned(),
            left.unwrap_or_default(),
            names,
            row.place.clone(),
            row.issuer.clone(),
        ]);
    }
    let more = if rest > 0 { format!("… and {rest} more that expire later\n") } else { String::new() };
    if table.is_empty() {
        "there are no certificates: xDS has no TLS, and no host has any\n".to_owned()
    } else {
        table.text() + &more
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use serde_json::json;

    #[test]
    fn what_has_expired_or_soon_will_is_told_apart() {
        let host = |end: i64| json!({ "resources": ["shop/cert"], "names": ["a.example.com"], "issuer": "CN=ca", "not_after": end });
        let file = json!({ "certificate": "ca", "file": "/certs/ca.crt", "error": "no such file" });
        let missing = json!({
            "kind": "HTTPProxy", "namespace": "shop", "name": "web", "field": "spec.virtualhost.tls.secretName",
            "code": "SES3101", "message": "Secret shop/gone does not exist"
        });
        let page = json!({
            "xds": [file], "host_count": 4, "hosts": [host(100), host(150), host(300)], "missing": [missing]
        });
        let page = || serde_json::from_value::<Page>(page.clone()).unwrap();
        let (rows, rest) = rows(vec![("a".to_owned(), page()), ("b".to_owned(), page())], 100, 100);
        let states: Vec<&str> = rows.iter().map(|row| row.state).collect();
        let expected = ["unreadable", "unreadable", "missing", "expired", "soon", "valid"];
        assert_eq!(states, expected, "hosts are listed once");
        assert!(text(&rows, rest, 100).contains("SES3101: Secret shop/gone does not exist"));
        assert_eq!(rest, 1);
        assert!(text(&rows, rest, 100).contains("… and 1 more that expire later"));
    }
}
