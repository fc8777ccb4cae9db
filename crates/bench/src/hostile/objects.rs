//! Attacks by objects that unfold into more than they are.

use std::time::Duration;

use anyhow::Result;
use model::Code;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::attacker::{Attacker, PROXIES, SERVICE, api_path, host, object, proxy, proxy_edit, route};

/// Between two edits of an object: the API server is everybody's, and what it takes for these is not measured.
const REST: Duration = Duration::from_millis(250);
/// How much JSON an API server takes for one object, with some room.
const REQUEST: usize = 2_800_000;
/// How long the value of a header is that makes routes large.
const VALUE: usize = 2000;
/// What all scopes may have together where a root is to be too large: less than the 8 MiB that a root is cut at, and more than some
/// thousand hosts of the others have.
pub const TABLE_BYTES: usize = 4 << 20;

/// 700 includes of a child with 700 routes; the child is edited.
pub async fn large_root(attacker: &Attacker) -> Result<()> {
    let routes = attacker.side(700);
    let child = |round: usize| {
        let first = route(&format!("/edited-{round}"));
        json!({ "routes": (1..routes).map(|n| route(&format!("/r{n}"))).chain([first]).collect::<Vec<_>>() })
    };
    unfold(attacker, attacker.side(700), child).await
}

/// Routes that carry two kilobytes each and are included so often that they are more than [`TABLE_BYTES`].
pub async fn over_limit(attacker: &Attacker) -> Result<()> {
    let (routes, value) = (attacker.side(600), "x".repeat(VALUE));
    let child = |round: usize| {
        let large = |n: usize| {
            let mut route = route(&format!("/r{n}-{round}"));
            route["responseHeadersPolicy"] = json!({ "set": [{ "name": "x-large", "value": value }] });
            route
        };
        json!({ "routes": (0..routes).map(large).collect::<Vec<_>>() })
    };
    tokio::try_join!(unfold(attacker, attacker.side(950), child), too_large(attacker)).map(drop)
}

/// Notes whether the root says that it is too large.
async fn too_large(attacker: &Attacker) -> Result<()> {
    let (path, code) = (api_path(PROXIES, "httpproxies", "root"), Code::ResourceTooLarge);
    attacker.note("status", format!("the root does not say {code}"));
    loop {
        sleep(REST).await;
        if attacker.since().is_some()
            && attacker.writer.get(&path).await?["status"].to_string().contains(&code.to_string())
        {
            attacker.note("status", format!("the root says {code}"));
            return Ok(());
        }
    }
}

/// A root that includes a child so often; the child is edited for ever.
async fn unfold(attacker: &Attacker, includes: usize, child: impl Fn(usize) -> Value) -> Result<()> {
    attacker.writer.create(&proxy("child", child(0))).await?;
    let include = |n: usize| json!({ "name": "child", "conditions": [{ "prefix": format!("/i{n}") }] });
    let includes: Vec<Value> = (0..includes).map(include).collect();
    let root = json!({ "virtualhost": { "fqdn": host(0) }, "includes": includes });
    attacker.writer.create(&proxy("root", root)).await?;
    attacker.in_place();
    for round in 1.. {
        sleep(REST).await;
        attacker.writer.edit(&proxy_edit("child", child(round))).await?;
    }
    Ok(())
}

/// 1,000 hosts with as many paths as the API server takes, which is less than 1,000 each.
pub async fn wide_ingress(attacker: &Attacker) -> Result<()> {
    const INGRESSES: &str = "/apis/networking.k8s.io/v1";
    let hosts = attacker.count(1000);
    let path = |n: usize, round: usize| {
        let service = json!({ "name": SERVICE, "port": { "number": 80 } });
        json!({ "path": format!("/p{n}-{round}"), "pathType": "Prefix", "backend": { "service": service } })
    };
    let paths = attacker.count(1000).min(REQUEST / hosts / (path(1000, 1000).to_string().len() + 1)).max(1);
    let spec = |round: usize| {
        let rule = |n: usize| {
            let paths: Vec<Value> = (0..paths).map(|p| path(p, if n == 0 && p == 0 { round } else { 0 })).collect();
            json!({ "host": host(n), "http": { "paths": paths } })
        };
        json!({ "spec": { "rules": (0..hosts).map(rule).collect::<Vec<_>>() } })
    };
    attacker.writer.create(&object(INGRESSES, "ingresses", spec(0), "wide")).await?;
    attacker.note("size", format!("{hosts} hosts × {paths} paths"));
    attacker.in_place();
    for round in 1.. {
        sleep(REST).await;
        attacker.writer.edit(&(api_path(INGRESSES, "ingresses", "wide"), spec(round))).await?;
    }
    Ok(())
}
