//! Envoys of two minor versions on one controller: both are served, and what protects does so on both.

use testbed::{Backend, Client, Envoy, Load};

use crate::bed::{Bed, app, service};

/// How many loads there are, each over a connection of its own: the kernel spreads connections over both Envoys.
const LOADS: usize = 8;
/// How many hosts are added under load.
const EDITS: usize = 10;

/// A host that nobody who connects from here may reach.
fn closed(namespace: &str, backend: &Backend) -> String {
    let proxy = serde_json::json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
        "metadata": { "name": "closed", "namespace": namespace },
        "spec": {
            "virtualhost": { "fqdn": "closed.example.com", "ipAllowPolicy": [{ "source": "Peer", "cidr": "192.0.2.0/24" }] },
            "routes": [{ "services": [{ "name": "closed", "port": 80 }] }],
        } });
    format!("{proxy}\n---\n{}", service(namespace, "closed", backend))
}

/// How many requests an Envoy has answered with 200.
async fn answered(envoy: &Envoy) -> u64 {
    envoy.stat("http.ingress_http.downstream_rq_2xx").await.unwrap().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn envoys_of_two_minor_versions_are_served_and_protected_by_one_controller() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("skew").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    bed.api.apply(&closed(&namespace, &backend)).await.unwrap();
    let replica = bed.replica("sesame-0").await.ready().await;
    let newer = bed.envoy(replica.xds()).await;
    let config = Envoy::config().part("envoy-previous").name("envoy-previous");
    let older = bed.envoy_as(config, replica.xds(), &[]).await;
    for envoy in [&newer, &older] {
        envoy.ready().await.unwrap();
    }
    replica.in_step(2).await;
    let (_, fleets) = replica.debug_page("/debug/fleets").await;
    for part in ["envoy", "envoy-previous"] {
        let version = parts::version(part).unwrap();
        assert!(fleets.contains(version), "no Envoy {version} in {fleets}");
    }

    let web = Client::new(bed.http()).host("web.example.com");
    let plan = || Load::of(web.get("/")).per_second(5);
    let loads: Vec<Load> = (0..LOADS).map(|_| plan().start()).collect();
    for number in 0..EDITS {
        let name = format!("new-{number}");
        bed.api.apply(&app(&namespace, &name, &backend)).await.unwrap();
        bed.answers(&format!("{name}.example.com"), 200).await;
        for load in &loads {
            load.answered(2).await;
        }
    }
    replica.in_step(2).await;
    for load in loads {
        load.stop().await.assert_nothing_lost();
    }
    let shares = (answered(&newer).await, answered(&older).await);
    println!("requests answered by the newer and the older Envoy: {shares:?}");
    assert!(shares.0 > 0 && shares.1 > 0, "one of them was asked nothing: {shares:?}");
    assert_eq!(replica.metric("sesame_xds_nacks_total", "").await, 0.0);

    // Each of them alone has every edit, and keeps out whom it should.
    newer.stop().await.unwrap();
    for number in 0..EDITS {
        assert_eq!(bed.status_of(&format!("new-{number}.example.com"), "/").await, 200);
    }
    assert_eq!(bed.status_of("closed.example.com", "/").await, 403);
    older.stop().await.unwrap();
    let newer = bed.envoy(replica.xds()).await;
    newer.ready().await.unwrap();
    assert_eq!(bed.status_of(&format!("new-{}.example.com", EDITS - 1), "/").await, 200);
    assert_eq!(bed.status_of("closed.example.com", "/").await, 403);
}
