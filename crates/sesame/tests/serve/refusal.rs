//! What Envoy refuses: named, withheld within a second, said on the object; everybody else moves on, on every replica.

use std::time::Instant;

use k8s_openapi::api::core::v1::Event;
use k8s_openapi::api::networking::v1::Ingress;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use testbed::{Backend, Client, eventually};

use crate::bed::{Bed, Replica, TIMEOUT, app};

/// The path of which routes are made such that Envoy refuses them.
const SPOILED: &str = "/spoiled";

async fn set_path(bed: &Bed, namespace: &str, name: &str, path: &str) {
    let ingresses = Api::<Ingress>::namespaced(bed.api.client().unwrap(), namespace);
    let path = json!([{ "op": "replace", "path": "/spec/rules/0/http/paths/0/path", "value": path }]);
    let patch = Patch::Json::<()>(serde_json::from_value(path).unwrap());
    ingresses.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// Waits until each replica says of itself that something is withheld, or nothing is.
async fn withheld(replica: &Replica, expected: bool) {
    let look = async || {
        let debug = Client::new((replica.address, 6060).into());
        let answer = debug.get("/debug/verdicts?code=SES8001").await.map_err(|failure| failure.to_string())?;
        match answer.text().contains("SES8001") == expected {
            true => Ok(()),
            false => Err(answer.text()),
        }
    };
    replica.process.expect_ok("the verdict", TIMEOUT, look).await.unwrap();
}

async fn refuse_and_mend(replicas: &[&str]) {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("refused").await.unwrap();
    for name in ["bad", "good", "other"] {
        bed.api.apply(&app(&namespace, name, &backend)).await.unwrap();
    }
    let mut running = Vec::new();
    for name in replicas {
        let address = testbed::Net::here().unwrap().address();
        running.push(bed.replica_at(name, address, &[("spoil", SPOILED)]).await.ready().await);
    }
    let mut envoys = Vec::new();
    for replica in &running {
        let envoy = bed.envoy(replica.xds()).await;
        envoy.ready().await.unwrap();
        envoys.push(envoy);
    }
    bed.answers("bad.example.com", 200).await;
    let load = bed.load("other.example.com");
    load.answered(20).await;

    let begun = Instant::now();
    set_path(&bed, &namespace, "bad", SPOILED).await;
    for replica in &running {
        withheld(replica, true).await;
    }
    println!("withheld by {} after {:?}", running.len(), begun.elapsed());
    // Everybody else moves on, on all proxies.
    set_path(&bed, &namespace, "good", "/new").await;
    let moved = async || match Client::new(bed.http()).host("good.example.com").get("/").await.unwrap().status.as_u16()
    {
        404 => Ok(()),
        other => Err(other),
    };
    eventually("the other to be updated", TIMEOUT, moved).await.unwrap();
    let events = Api::<Event>::namespaced(bed.api.client().unwrap(), &namespace);
    let said = async || {
        let list = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let words: Vec<String> = list.items.into_iter().filter_map(|event| event.message).collect();
        if words.iter().any(|words| words.contains("SES8001")) { Ok(()) } else { Err(format!("{words:?}")) }
    };
    eventually("the event on the object", TIMEOUT, said).await.unwrap();

    let begun = Instant::now();
    set_path(&bed, &namespace, "bad", "/mended").await;
    let mended = async || {
        let answer = Client::new(bed.http()).host("bad.example.com").get("/mended").await.unwrap();
        if answer.status == 200 { Ok(()) } else { Err(answer.status) }
    };
    eventually("it to be mended", TIMEOUT, mended).await.unwrap();
    println!("healed after {:?}", begun.elapsed());
    for replica in &running {
        withheld(replica, false).await;
    }
    load.answered(20).await;
    load.stop().await.assert_nothing_lost();
    for replica in &running {
        logged_once(replica).await;
    }
}

/// One line for each fact: that the proxy connected, and each resource that it rejected.
async fn logged_once(replica: &Replica) {
    let log = replica.process.log().text();
    let lines = |words: &str| log.lines().filter(|line| line.contains(words)).collect::<Vec<_>>();
    assert_eq!(lines("proxy connected").len(), 1, "{log}");
    let rejected = replica.metric("sesame_xds_rejections_total", "").await;
    let refused: Vec<&str> = lines("SES8001").into_iter().filter(|line| line.contains(" WARN ")).collect();
    assert!(rejected >= 1.0 && refused.len() as f64 == rejected, "{rejected} rejections, {refused:#?}");
    for line in refused {
        for field in [" SES8001: ", " node=", " fleet=shared", " version=", " peer="] {
            assert!(line.contains(field), "no{field} in {line}");
        }
    }
    assert_eq!(lines(" node=").len() as f64, 1.0 + rejected, "other lines about the proxy: {log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_replica_withholds_what_is_refused() {
    refuse_and_mend(&["sesame-0"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_withhold_what_is_refused() {
    refuse_and_mend(&["sesame-0", "sesame-1"]).await;
}
