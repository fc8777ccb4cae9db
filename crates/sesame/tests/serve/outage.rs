//! The API server is away, has forgotten its history, or is silent: proxies serve on, and nobody is told half a world.

use std::time::Duration;

use k8s_openapi::api::networking::v1::Ingress;
use kube::Api;
use kube::api::DeleteParams;
use testbed::{ApiServer, Backend, Client, eventually};

use crate::bed::{Bed, PATIENCE, app};

/// How long the API server is away.
const AWAY: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn for_a_minute_without_an_api_server_and_a_restart_in_it_nothing_is_lost() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("outage").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let first = bed.replica("sesame-0").await.ready().await;
    let envoy = bed.envoy(first.xds()).await;
    envoy.ready().await.unwrap();
    let load = bed.load("web.example.com");
    load.answered(100).await;
    bed.api.kill().await.unwrap();
    let back = tokio::time::Instant::now() + AWAY;
    load.answered(200).await;
    assert_eq!(first.page("/healthz").await.unwrap().0, 200, "alive is not tied to the API server");
    assert_eq!(first.page("/readyz").await.unwrap().0, 200, "what it knows it can serve");
    // Restarted in the middle, it knows nothing, and says nothing.
    first.process.kill().await.unwrap();
    let second = bed.replica_at("sesame-0", first.address, &[]).await;
    second.process.expect_port(second.xds(), PATIENCE).await.unwrap();
    envoy.expect_stat("control_plane.connected_state", PATIENCE, |state| state == 1).await.unwrap();
    let address = bed.api.address().to_string();
    let says_what_is_away = async || {
        let (status, why) = second.page("/readyz").await.unwrap();
        assert_eq!(status, 503);
        let is_named = why.starts_with("waiting for the first build (") && why.contains(&address);
        if is_named { Ok(()) } else { Err(why) }
    };
    eventually("a reason with the address of the API server", PATIENCE, says_what_is_away).await.unwrap();
    assert_eq!(second.page("/healthz").await.unwrap().0, 200);
    load.answered(200).await;
    assert_eq!(second.sent().await, 0.0, "it answered before it knew anything");
    tokio::time::sleep_until(back).await;
    bed.api.restart().await.unwrap();
    let second = second.ready().await;
    second.in_step(1).await;
    assert_eq!(second.sent().await, 0.0, "what Envoy had was sent again");
    bed.api.apply(&app(&namespace, "new", &backend)).await.unwrap();
    bed.answers("new.example.com", 200).await;
    load.stop().await.assert_nothing_lost();
}

/// Forgets all history before now.
async fn compact(api: &ApiServer) {
    let client = Client::new((api.address().ip(), 2379).into());
    let answer = client.post("/v3/kv/range", r#"{"key": "AA=="}"#).await.unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    let revision = answer["header"]["revision"].as_str().unwrap();
    let body = format!(r#"{{"revision": "{revision}", "physical": true}}"#);
    assert_eq!(client.post("/v3/kv/compaction", body).await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_is_cut_and_whose_history_is_gone_is_made_good() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("compacted").await.unwrap();
    for name in ["web", "old"] {
        bed.api.apply(&app(&namespace, name, &backend)).await.unwrap();
    }
    let replica = bed.replica("sesame-0").await.ready().await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    bed.answers("old.example.com", 200).await;
    let load = bed.load("web.example.com");
    load.answered(50).await;
    // While the watches of the replica cannot go on, an Ingress goes, another comes, and history is forgotten.
    replica.process.signal(rustix::process::Signal::STOP).unwrap();
    let ingresses = Api::<Ingress>::namespaced(bed.api.client().unwrap(), &namespace);
    ingresses.delete("old", &DeleteParams::default()).await.unwrap();
    bed.api.apply(&app(&namespace, "new", &backend)).await.unwrap();
    compact(&bed.api).await;
    bed.api.restart().await.unwrap();
    replica.process.signal(rustix::process::Signal::CONT).unwrap();
    bed.answers("new.example.com", 200).await;
    bed.answers("old.example.com", 404).await;
    load.stop().await.assert_nothing_lost();
}

/// Whoever is woken by it at night reads three lines, not thousands: the source, the lease and the status writer all try again.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_told_when_it_begins_and_when_it_ends_and_shown_by_a_metric() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("told").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let replica = bed.replica("sesame-0").await.ready().await;
    replica.expect_metric("sesame_leader", "", |leader| leader == 1.0).await;
    replica.expect_metric("sesame_apiserver_connected", "", |connected| connected == 1.0).await;
    for kind in ["Ingress", "HTTPProxy", "Service", "EndpointSlice", "Secret"] {
        let label = format!("kind=\"{kind}\"");
        let heard = replica.metric("sesame_source_last_event_timestamp_seconds", &label).await;
        assert!(heard > 1.7e9, "{kind}: {heard}");
    }
    bed.api.kill().await.unwrap();
    replica.expect_metric("sesame_apiserver_connected", "", |connected| connected == 0.0).await;
    // By then the lease has been tried for ten seconds, and is tried on.
    replica.expect_metric("sesame_leader", "", |leader| leader == 0.0).await;
    bed.api.restart().await.unwrap();
    replica.expect_metric("sesame_apiserver_connected", "", |connected| connected == 1.0).await;
    replica.expect_metric("sesame_leader", "", |leader| leader == 1.0).await;
    let log = replica.process.log().text();
    let lines = |text: &str| log.lines().filter(|line| line.contains(text)).collect::<Vec<_>>();
    let (begun, ended) = (lines("API server unreachable"), lines("API server reachable again"));
    assert_eq!((begun.len(), ended.len()), (1, 1), "{log}");
    let address = bed.api.address().to_string();
    assert!(begun[0].contains(&address) && ended[0].contains(&address), "{begun:?} {ended:?}");
    let about = log.lines().filter(|line| line.contains("WARN") && line.contains("leader lease")).count();
    assert_eq!(about, 0, "{log}");
}
