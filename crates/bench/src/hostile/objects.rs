//! Attacks by objects that unfold into more than they are.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::ground::{Ground, SERVICE, host, object, place, proxy, proxy_edit, route};

/// Between two edits of an object: the API server is everybody's, and what it takes for these is not measured.
const REST: Duration = Duration::from_millis(250);
/// How much JSON an API server takes for one object, with some room.
const REQUEST: usize = 2_800_000;
/// How long the value of a header is that makes routes large.
const VALUE: usize = 2000;

/// 700 includes of a child with 700 routes; the child is edited.
pub async fn large_root(ground: &Ground) -> Result<()> {
    let routes = ground.side(700);
    let child = |round: usize| {
        let first = route(&format!("/edited-{round}"));
        json!({ "routes": (1..routes).map(|n| route(&format!("/r{n}"))).chain([first]).collect::<Vec<_>>() })
    };
    unfold(ground, ground.side(700), child).await
}

/// Routes that carry two kilobytes each and are included so often that they are more than 1 GiB.
pub async fn over_limit(ground: &Ground) -> Result<()> {
    let (routes, value) = (ground.side(600), "x".repeat(VALUE));
    let child = |round: usize| {
        let large = |n: usize| {
            let mut route = route(&format!("/r{n}-{round}"));
            route["responseHeadersPolicy"] = json!({ "set": [{ "name": "x-large", "value": value }] });
            route
        };
        json!({ "routes": (0..routes).map(large).collect::<Vec<_>>() })
    };
    unfold(ground, ground.side(950), child).await
}

/// A root that includes a child so often; the child is edited for ever.
async fn unfold(ground: &Ground, includes: usize, child: impl Fn(usize) -> Value) -> Result<()> {
    ground.writer.create(&proxy("child", child(0))).await?;
    let include = |n: usize| json!({ "name": "child", "conditions": [{ "prefix": format!("/i{n}") }] });
    let includes: Vec<Value> = (0..includes).map(include).collect();
    let root = json!({ "virtualhost": { "fqdn": host(0) }, "includes": includes });
    ground.writer.create(&proxy("root", root)).await?;
    ground.in_place();
    for round in 1.. {
        sleep(REST).await;
        ground.writer.edit(&proxy_edit("child", child(round))).await?;
    }
    Ok(())
}

/// 1,000 hosts with as many paths as the API server takes, which is less than 1,000 each.
pub async fn wide_ingress(ground: &Ground) -> Result<()> {
    const INGRESSES: &str = "/apis/networking.k8s.io/v1";
    let hosts = ground.count(1000);
    let path = |n: usize, round: usize| {
        let service = json!({ "name": SERVICE, "port": { "number": 80 } });
        json!({ "path": format!("/p{n}-{round}"), "pathType": "Prefix", "backend": { "service": service } })
    };
    let paths = ground.count(1000).min(REQUEST / hosts / (path(1000, 1000).to_string().len() + 1)).max(1);
    let spec = |round: usize| {
        let rule = |n: usize| {
            let paths: Vec<Value> = (0..paths).map(|p| path(p, if n == 0 && p == 0 { round } else { 0 })).collect();
            json!({ "host": host(n), "http": { "paths": paths } })
        };
        json!({ "spec": { "rules": (0..hosts).map(rule).collect::<Vec<_>>() } })
    };
    ground.writer.create(&object(INGRESSES, "ingresses", spec(0), "wide")).await?;
    ground.note("size", format!("{hosts} hosts × {paths} paths"));
    ground.in_place();
    for round in 1.. {
        sleep(REST).await;
        ground.writer.edit(&(place(INGRESSES, "ingresses", "wide"), spec(round))).await?;
    }
    Ok(())
}
