//! What is too large to be sent, among others that are not.

use serde_json::{Value, json};
use testbed::{Backend, eventually};

use crate::bed::{Bed, TIMEOUT, service};

/// An HTTPProxy for `name.example.com` with so many routes.
fn proxy(namespace: &str, name: &str, routes: usize) -> String {
    let route = |at: usize| {
        let conditions = if at == 0 { json!([{ "prefix": "/" }]) } else { json!([{ "exact": format!("/{at}") }]) };
        json!({ "conditions": conditions, "services": [{ "name": "web", "port": 80 }] })
    };
    let routes: Vec<Value> = (0..routes).map(route).collect();
    json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": name, "namespace": namespace },
        "spec": { "virtualhost": { "fqdn": format!("{name}.example.com") }, "routes": routes } })
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_withheld_and_told_and_everybody_else_is_served() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("size").await.unwrap();
    bed.api.apply(&service(&namespace, "web", &backend)).await.unwrap();
    for (name, routes) in [("one", 1), ("big", 400), ("two", 2)] {
        bed.api.apply(&proxy(&namespace, name, routes)).await.unwrap();
    }
    let address = testbed::Net::here().unwrap().address();
    // Ready although one is too large from the start: it is told, and the others can be served.
    let replica = bed.replica_at("sesame-0", address, &[("table-bytes", "60000")]).await.ready().await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    bed.answers("one.example.com", 200).await;
    bed.answers("two.example.com", 200).await;
    bed.answers("big.example.com", 503).await;
    let description = async |name: &str| bed.proxy_status(&namespace, name).await["description"].clone();
    let told = async || match description("big").await {
        Value::String(text) if text.starts_with("SES8004: ") => Ok(()),
        other => Err(other.to_string()),
    };
    eventually("the word that it is too large", TIMEOUT, told).await.unwrap();
    assert_eq!(description("one").await, "Valid HTTPProxy");

    // The next small edit is not the whole world: who comes later has all of it.
    bed.api.apply(&proxy(&namespace, "three", 1)).await.unwrap();
    bed.answers("three.example.com", 200).await;
    envoy.kill().await.unwrap();
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    for name in ["one", "two", "three"] {
        bed.answers(&format!("{name}.example.com"), 200).await;
    }
    bed.api.apply(&proxy(&namespace, "big", 3)).await.unwrap();
    bed.answers("big.example.com", 200).await;
    let mended = async || match description("big").await {
        Value::String(text) if text == "Valid HTTPProxy" => Ok(()),
        other => Err(other.to_string()),
    };
    eventually("the word that it is mended", TIMEOUT, mended).await.unwrap();
    envoy.kill().await.unwrap();
}

/// Where not even listeners can be sent there is nobody on whose object that could be said.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_cannot_send_its_listeners_is_not_ready_and_says_why() {
    let bed = Bed::start().await;
    let address = testbed::Net::here().unwrap().address();
    let replica = bed.replica_at("sesame-0", address, &[("table-bytes", "7000")]).await;
    let look = async || match replica.page("/readyz").await {
        Ok((503, text)) if text.contains("the first build (listener ingress_http is withheld") => Ok(()),
        other => Err(format!("{other:?}")),
    };
    replica.process.expect_ok("to say why it is not ready", TIMEOUT, look).await.unwrap();

    // Every batch finds it again; the log has it once.
    let namespace = bed.api.namespace("size").await.unwrap();
    for count in 1..=5 {
        bed.api.apply(&proxy(&namespace, &format!("p-{count}"), 1)).await.unwrap();
        let known = format!(r#"sesame_objects{{kind="HTTPProxy"}} {count}"#);
        let look = async || match replica.page("/metrics").await {
            Ok((200, text)) if text.contains(&known) => Ok(()),
            Ok((_, text)) => Err(text.lines().filter(|line| line.contains("sesame_objects")).collect::<String>()),
            Err(error) => Err(format!("{error:?}")),
        };
        replica.process.expect_ok("to have read the object", TIMEOUT, look).await.unwrap();
    }
    let log = replica.process.log().text();
    assert_eq!(log.matches("not ready: ").count(), 1, "{log}");
}
