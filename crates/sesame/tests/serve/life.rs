//! The ordinary life of a server: objects come, change and go; the server itself is killed, moved and rolled out.

use std::time::Instant;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::api::networking::v1::Ingress;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use testbed::certs::Ca;
use testbed::{Backend, Client, Net, Wire, eventually};

use crate::bed::{Bed, TIMEOUT, app, service};

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_served_over_http_and_https_with_a_secret_that_is_read_on_reference() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("life").await.unwrap();
    let replica = bed.replica("sesame-0").await.ready().await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    bed.answers("web.example.com", 200).await;

    let ca = Ca::new("life");
    let handshake = async || {
        let client = Client::new(bed.https()).host("web.example.com").https().sni("web.example.com").trust(&ca);
        client.get("/").await.map(|answer| answer.status.as_u16())
    };
    assert!(handshake().await.is_err(), "nobody asked for TLS");
    let ingresses = Api::<Ingress>::namespaced(bed.api.client().unwrap(), &namespace);
    let tls = json!({ "spec": { "tls": [{ "hosts": ["web.example.com"], "secretName": "cert" }] } });
    ingresses.patch("web", &PatchParams::default(), &Patch::Merge(tls)).await.unwrap();
    // In the clear it is served on without a Secret.
    let secrets = Api::<Secret>::namespaced(bed.api.client().unwrap(), &namespace);
    let leaf = ca.leaf("web.example.com").make();
    let secret = json!({
        "metadata": { "name": "cert" }, "type": "kubernetes.io/tls",
        "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() },
    });
    let secret = serde_json::from_value(secret).unwrap();
    secrets.create(&kube::api::PostParams::default(), &secret).await.unwrap();
    let served = async || match handshake().await {
        Ok(200) => Ok(()),
        other => Err(format!("{other:?}")),
    };
    eventually("TLS to be served", TIMEOUT, served).await.unwrap();
    secrets.delete("cert", &DeleteParams::default()).await.unwrap();
    let closed = async || match handshake().await {
        Ok(status) => Err(status),
        Err(_) => Ok(()),
    };
    eventually("TLS to be closed without its Secret", TIMEOUT, closed).await.unwrap();
}

/// Whoever looks for the host finds what is wrong with it, whether it is served in plaintext meanwhile or not at all.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_host_says_that_its_secret_is_missing() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("missing").await.unwrap();
    let ingress = app(&namespace, "web", &backend)
        .replace("spec:\n  rules:", "spec:\n  tls: [{hosts: [web.example.com], secretName: none}]\n  rules:");
    let proxy = format!(
        "apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {{name: pay, namespace: {namespace}}}\n\
         spec: {{virtualhost: {{fqdn: pay.example.com, tls: {{secretName: none}}}}, routes: [{{services: [{{name: web, port: 80}}]}}]}}\n"
    );
    bed.api.apply(&ingress).await.unwrap();
    bed.api.apply(&proxy).await.unwrap();
    let replica = bed.replica("sesame-0").await.ready().await;
    let debug = Client::new((replica.address, 6060).into());
    for host in ["web.example.com", "pay.example.com"] {
        let look = async || {
            let page = debug.get(&format!("/debug/host?name={host}")).await.map_err(|failure| failure.to_string())?;
            let page: serde_json::Value = serde_json::from_slice(&page.body).map_err(|error| error.to_string())?;
            let verdicts = page["verdicts"].as_array().cloned().unwrap_or_default();
            match verdicts.iter().any(|verdict| verdict["code"] == "SES3101") {
                true => Ok(()),
                false => Err(page.to_string()),
            }
        };
        replica.process.expect_ok(&format!("SES3101 on the page of {host}"), TIMEOUT, look).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_and_restarted_it_sends_nothing_again_and_nothing_is_lost() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("kill").await.unwrap();
    for number in 0..50 {
        bed.api.apply(&app(&namespace, &format!("h{number}"), &backend)).await.unwrap();
    }
    let first = bed.replica("sesame-0").await.ready().await;
    let envoy = bed.envoy(first.xds()).await;
    envoy.ready().await.unwrap();
    first.in_step(1).await;
    assert!(first.sent().await > 0.0);
    let load = bed.load("h7.example.com");
    load.answered(100).await;
    first.process.kill().await.unwrap();
    let back = Instant::now();
    let second = bed.replica_at("sesame-0", first.address, &[]).await.ready().await;
    second.in_step(1).await;
    println!("in step {:?} after it was killed", back.elapsed());
    load.answered(100).await;
    assert_eq!(second.sent().await, 0.0, "what Envoy had was sent again");
    // And the new one is listened to.
    bed.api.apply(&app(&namespace, "new", &backend)).await.unwrap();
    bed.answers("new.example.com", 200).await;
    // SIGTERM ends it well.
    assert!(second.process.stop(TIMEOUT).await.unwrap().success(), "{}", second.process.log().tail());
    load.answered(100).await;
    load.stop().await.assert_nothing_lost();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envoy_moves_from_one_replica_to_the_other_for_nothing() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("move").await.unwrap();
    for number in 0..20 {
        bed.api.apply(&app(&namespace, &format!("h{number}"), &backend)).await.unwrap();
    }
    let (one, two) = (bed.replica("sesame-0").await.ready().await, bed.replica("sesame-1").await.ready().await);
    let wire = Wire::new(Net::here().unwrap().socket(8001), one.xds()).await.unwrap();
    let envoy = bed.envoy(wire.address()).await;
    envoy.ready().await.unwrap();
    one.in_step(1).await;
    let load = bed.load("h3.example.com");
    load.answered(100).await;
    wire.lead_to(two.xds());
    two.in_step(1).await;
    assert_eq!(two.sent().await, 0.0, "what Envoy had was sent again");
    // Now the first is killed, the lease holder; the second must take over all of it.
    one.process.kill().await.unwrap();
    two.expect_metric("sesame_leader", "", |leader| leader == 1.0).await;
    bed.api.apply(&app(&namespace, "late", &backend)).await.unwrap();
    bed.answers("late.example.com", 200).await;
    let ingresses = Api::<Ingress>::namespaced(bed.api.client().unwrap(), &namespace);
    let told = async || match crate::status::addresses(&ingresses, "late").await.as_slice() {
        [ip] if ip == "192.0.2.7" => Ok(()),
        other => Err(format!("{other:?}")),
    };
    eventually("the new leader to write", TIMEOUT, told).await.unwrap();
    load.stop().await.assert_nothing_lost();
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_come_one_by_one_and_a_namespace_goes_and_nothing_is_lost() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let kept = bed.api.namespace("kept").await.unwrap();
    let gone = bed.api.namespace("gone").await.unwrap();
    bed.api.apply(&app(&kept, "steady", &backend)).await.unwrap();
    bed.api.apply(&service(&gone, "web", &backend)).await.unwrap();
    let replica = bed.replica("sesame-0").await.ready().await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    let load = bed.load("steady.example.com");
    let ingresses = Api::<Ingress>::namespaced(bed.api.client().unwrap(), &gone);
    let mut worst = std::time::Duration::ZERO;
    for number in 0..1000 {
        let host = format!("n{number}.example.com");
        let path = json!({ "path": "/", "pathType": "Prefix", "backend": { "service": { "name": "web", "port": { "number": 80 } } } });
        let ingress = json!({ "metadata": { "name": format!("n{number}") }, "spec": { "rules": [{ "host": host, "http": { "paths": [path] } }] } });
        let begun = Instant::now();
        ingresses.create(&kube::api::PostParams::default(), &serde_json::from_value(ingress).unwrap()).await.unwrap();
        // It answers 404, then 200, and nothing else.
        loop {
            match Client::new(bed.http()).host(&host).get("/").await.unwrap().status.as_u16() {
                200 => break,
                404 if begun.elapsed() < TIMEOUT => {}
                other => panic!("{host} answered {other} after {:?}", begun.elapsed()),
            }
        }
        worst = worst.max(begun.elapsed());
    }
    println!("the slowest of 1,000 was served after {worst:?}");
    // The bed has no controller that would empty a namespace; what it would do is this.
    ingresses.delete_collection(&DeleteParams::default(), &kube::api::ListParams::default()).await.unwrap();
    Api::<Namespace>::all(bed.api.client().unwrap()).delete(&gone, &DeleteParams::default()).await.unwrap();
    bed.answers("n999.example.com", 404).await;
    bed.answers("n0.example.com", 404).await;
    load.stop().await.assert_nothing_lost();
}
