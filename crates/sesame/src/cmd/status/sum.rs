//! What all replicas say, added up: one document, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde::{Deserialize, Serialize};

/// A proxy that is behind for so many seconds is stuck.
const STUCK: u64 = 10;

/// `/debug/status` of one replica.
#[derive(Clone, Debug, Deserialize)]
pub struct Page {
    version: String,
    started: u64,
    leader: bool,
    ready: bool,
    waiting: Vec<String>,
    verdicts: BTreeMap<String, i64>,
    fleets: Vec<OfFleet>,
    proxies: Vec<OfProxy>,
}

#[derive(Clone, Debug, Deserialize)]
struct OfFleet {
    fleet: String,
    version: String,
    resources: usize,
    proxies: usize,
    in_step: usize,
    behind: usize,
    rejected: usize,
}

#[derive(Clone, Debug, Deserialize)]
struct OfProxy {
    fleet: String,
    node: String,
    envoy: String,
    state: String,
    seconds: u64,
    detail: String,
}

/// Everything.
#[derive(Debug, Serialize)]
pub struct Status {
    /// Every replica, by name.
    pub replicas: Vec<Replica>,
    /// Every fleet, over all replicas.
    pub fleets: Vec<Fleet>,
    /// Proxies that are not in step, or all that were asked for.
    pub proxies: Vec<Proxy>,
    /// What is wrong.
    pub findings: Vec<String>,
}

/// One replica.
#[derive(Debug, Serialize)]
pub struct Replica {
    /// The name of its pod, or its address.
    pub name: String,
    /// `ready`, `waiting` or `unknown`.
    pub state: &'static str,
    /// Whether it writes status.
    pub leader: bool,
    /// The version of its program.
    pub version: String,
    /// For how many seconds it has run.
    pub age: u64,
    /// How many proxies are connected to it.
    pub proxies: usize,
    /// How many verdicts there are of each severity.
    pub verdicts: BTreeMap<String, i64>,
    /// What it waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// Why it could not be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One fleet.
#[derive(Debug, Default, Serialize)]
pub struct Fleet {
    /// Its name.
    pub fleet: String,
    /// How many resources it is sent.
    pub resources: usize,
    /// How many proxies it has.
    pub proxies: usize,
    /// How many of them have everything.
    pub in_step: usize,
    /// How many have not acknowledged something.
    pub behind: usize,
    /// How many reject something.
    pub rejected: usize,
}

/// One proxy.
#[derive(Debug, Serialize)]
pub struct Proxy {
    /// Its fleet.
    pub fleet: String,
    /// The id of its node.
    pub node: String,
    /// The version of its program.
    pub envoy: String,
    /// The replica that it is connected to.
    pub replica: String,
    /// `in_step`, `behind` or `rejected`.
    pub state: String,
    /// For how long it has been behind, or since when it rejects something.
    pub seconds: u64,
    /// What it waits for, or what it rejects.
    pub detail: String,
}

/// Adds up what replicas say.
///
/// # Errors
/// Why the first one could not be asked, if none could.
pub fn sum(pages: Vec<(String, Result<Page>)>) -> Result<Status> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (mut status, mut versions, mut failure) =
        (Status { replicas: vec![], fleets: vec![], proxies: vec![], findings: vec![] }, BTreeMap::new(), None);
    let mut fleets: BTreeMap<String, Fleet> = BTreeMap::new();
    for (name, page) in pages {
        let page = match page {
            Ok(page) => page,
            Err(error) => {
                let why = format!("{error:#}");
                status.findings.push(format!("replica {name} cannot be queried: {why}"));
                status.replicas.push(unknown(name, why));
                failure.get_or_insert(error);
                continue;
            }
        };
        if !page.ready {
            status.findings.push(format!("replica {name} is not ready: it waits for {}", page.waiting.join(", ")));
        }
        for of in &page.fleets {
            let all = fleets.entry(of.fleet.clone()).or_default();
            all.fleet.clone_from(&of.fleet);
            all.resources = all.resources.max(of.resources);
            all.proxies += of.proxies;
            all.in_step += of.in_step;
            all.behind += of.behind;
            all.rejected += of.rejected;
            if page.ready {
                let known: &mut BTreeSet<String> = versions.entry(of.fleet.clone()).or_default();
                known.insert(of.version.clone());
            }
        }
        for proxy in page.proxies {
            status.findings.extend(finding(&proxy));
            let OfProxy { fleet, node, envoy, state, seconds, detail } = proxy;
            status.proxies.push(Proxy { fleet, node, envoy, replica: name.clone(), state, seconds, detail });
        }
        status.replicas.push(Replica {
            name,
            state: if page.ready { "ready" } else { "waiting" },
            leader: page.leader,
            version: page.version,
            age: now.saturating_sub(page.started),
            proxies: page.fleets.iter().map(|fleet| fleet.proxies).sum(),
            verdicts: page.verdicts,
            waiting: page.waiting,
            error: None,
        });
    }
    if let Some(error) = failure.filter(|_| status.replicas.iter().all(|replica| replica.error.is_some())) {
        return Err(error);
    }
    match status.replicas.iter().filter(|replica| replica.leader).count() {
        1 => {}
        0 if status.replicas.iter().any(|replica| replica.error.is_some()) => {
            status.findings.push("no replica that answers is the leader".to_owned());
        }
        0 => status.findings.push("no replica is the leader: status is not written".to_owned()),
        leaders => status.findings.push(format!("{leaders} replicas take themselves for the leader")),
    }
    for (fleet, known) in versions.iter().filter(|(_, known)| known.len() > 1) {
        let many = known.len();
        status.findings.push(format!("replicas publish {many} different configurations to fleet {fleet}; ask again: after an edit this takes milliseconds"));
    }
    status.fleets = fleets.into_values().collect();
    Ok(status)
}

fn unknown(name: String, error: String) -> Replica {
    Replica {
        name,
        state: "unknown",
        leader: false,
        version: String::new(),
        age: 0,
        proxies: 0,
        verdicts: BTreeMap::new(),
        waiting: Vec::new(),
        error: Some(error),
    }
}

fn finding(proxy: &OfProxy) -> Option<String> {
    let OfProxy { fleet, node, state, seconds, detail, .. } = proxy;
    match state.as_str() {
        "rejected" => Some(format!("proxy {node} of fleet {fleet} rejects {detail}")),
        "behind" if *seconds >= STUCK => {
            Some(format!("proxy {node} of fleet {fleet} is behind for {seconds} s: {detail}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use serde_json::json;

    fn page(leader: bool, version: &str, state: &str, seconds: u64) -> Page {
        let fleet = json!({ "fleet": "shared", "version": version, "resources": 3, "proxies": 1, "in_step": 0, "behind": 1, "rejected": 0 });
        let proxy = json!({ "fleet": "shared", "node": "envoy-1", "envoy": "1.40.0", "state": state, "seconds": seconds, "detail": "1 cds" });
        serde_json::from_value(json!({
            "version": "0.1.0", "started": 0, "leader": leader, "ready": true, "waiting": [], "verdicts": { "error": 2 },
            "fleets": [fleet], "proxies": [proxy],
        }))
        .unwrap()
    }

    #[test]
    fn replicas_that_agree_with_one_leader_are_fine() {
        let pages = vec![
            ("a".to_owned(), Ok(page(true, "1", "behind", 9))),
            ("b".to_owned(), Ok(page(false, "1", "in_step", 0))),
        ];
        let status = sum(pages).unwrap();
        assert_eq!(status.findings, [""; 0]);
        assert_eq!((status.fleets[0].proxies, status.fleets[0].resources, status.replicas.len()), (2, 3, 2));
    }

    #[test]
    fn what_is_wrong_is_said_once_each() {
        let failed = || Err(anyhow::anyhow!("refused"));
        let pages = vec![
            ("a".to_owned(), Ok(page(true, "1", "behind", 10))),
            ("b".to_owned(), Ok(page(true, "2", "rejected", 1))),
            ("c".to_owned(), failed()),
        ];
        let findings = sum(pages).unwrap().findings;
        let expected = [
            "proxy envoy-1 of fleet shared is behind for 10 s: 1 cds",
            "proxy envoy-1 of fleet shared rejects 1 cds",
            "replica c cannot be queried: refused",
            "2 replicas take themselves for the leader",
        ];
        assert_eq!(findings[..4], expected);
        assert!(findings[4].starts_with("replicas publish 2 different configurations"), "{findings:?}");
        assert!(sum(vec![("c".to_owned(), failed())]).is_err(), "nobody could be asked");
        let nobody_leads = sum(vec![("a".to_owned(), Ok(page(false, "1", "in_step", 0)))]).unwrap();
        assert_eq!(nobody_leads.findings, ["no replica is the leader: status is not written"]);
    }
}
