//! An attack by status: 2,000 objects of which no status can be written at first, because every write conflicts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use http::Method;
use serde_json::json;
use testbed::apiserver::Fate;
use tokio::time::sleep;

use super::Options;
use super::attack::Rule;
use super::attacker::{Attacker, NAMESPACE, host, proxy, proxy_edit, route, scaled};

/// How many conflicts there are, and on how many objects.
const CONFLICTS: usize = 2000;
/// Between two edits.
const REST: Duration = Duration::from_millis(20);

/// The first 2,000 writes of the attacker's status conflict.
pub fn faults(options: &Options) -> Rule {
    let left = AtomicUsize::new(scaled(CONFLICTS, options.scale));
    let proxies = format!("/namespaces/{NAMESPACE}/httpproxies/");
    Box::new(move |method, path| {
        let is_status = method == Method::PATCH && path.contains(&proxies) && path.contains("/status");
        let take = |left: usize| left.checked_sub(1);
        match is_status && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok() {
            true => Fate::Refuse(409),
            false => Fate::Pass,
        }
    })
}

/// Makes the objects, and edits one after the other.
pub async fn conflicts(attacker: &Attacker) -> Result<()> {
    let count = attacker.count(CONFLICTS);
    let spec =
        |n: usize, round: usize| json!({ "virtualhost": { "fqdn": host(n) }, "routes": [route(&format!("/{round}"))] });
    attacker.create_all((0..count).map(|n| proxy(&format!("conflict-{n}"), spec(n, 0)))).await?;
    attacker.in_place();
    for round in 1.. {
        sleep(REST).await;
        attacker.writer.edit(&proxy_edit(&format!("conflict-{}", round % count), spec(round % count, round))).await?;
    }
    Ok(())
}
