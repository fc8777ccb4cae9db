//! The condition Programmed of an HTTPProxy.

use rustix::process::Signal;
use serde_json::{Value, json};
use testbed::certs::Ca;
use testbed::{Backend, eventually};

use crate::bed::{Bed, PATIENCE, app, service};

/// Whether a status says of that generation that it is valid, and this of proxies.
fn says(status: &Value, generation: i64, programmed: Option<&str>) -> Result<(), String> {
    let of = |name: &str| {
        let mut all = status["conditions"].as_array().into_iter().flatten();
        all.find(|condition| condition["type"] == name && condition["observedGeneration"] == generation)
    };
    let is_valid = of("Valid").is_some_and(|condition| condition["status"] == "True");
    let said = of("Programmed").and_then(|condition| condition["status"].as_str());
    if is_valid && said == programmed { Ok(()) } else { Err(status.to_string()) }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_httpproxy_is_programmed_once_proxies_have_it_and_stays_so_after_a_restart() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("programmed").await.unwrap();
    bed.api.apply(&service(&namespace, "web", &backend)).await.unwrap();
    let proxy = |path: &str| {
        format!(
            "apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {{name: web, namespace: {namespace}}}\nspec:\n  \
             virtualhost: {{fqdn: web.example.com}}\n  routes: [{{conditions: [{{prefix: {path}}}], services: [{{name: web, \
             port: 80}}]}}]\n"
        )
    };
    let first = bed.replica("sesame-0").await.ready().await;
    bed.api.apply(&proxy("/")).await.unwrap();
    let valid = async |generation: i64, programmed: Option<&str>| {
        says(&bed.proxy_status(&namespace, "web").await, generation, programmed)
    };
    // There is no proxy that could have it.
    eventually("the word that it is valid", PATIENCE, async || valid(1, None).await).await.unwrap();
    let envoy = bed.envoy(first.xds()).await;
    envoy.ready().await.unwrap();
    eventually("the word that proxies have it", PATIENCE, async || valid(1, Some("True")).await).await.unwrap();
    bed.api.apply(&proxy("/new")).await.unwrap();
    eventually("the same of its next form", PATIENCE, async || valid(2, Some("True")).await).await.unwrap();
    assert_eq!(bed.status_of("web.example.com", "/new").await, 200, "what is programmed is served");
    let before = bed.proxy_status(&namespace, "web").await;
    let messages: Vec<_> = before["conditions"].as_array().unwrap().iter().map(|one| &one["message"]).collect();
    assert!(messages.contains(&&"Accepted by the connected proxy.".into()), "{messages:?}");
    envoy.kill().await.unwrap();
    assert!(first.process.stop(PATIENCE).await.unwrap().success());
    let second = bed.replica("sesame-1").await.ready().await;
    second.expect_metric("sesame_leader", "", |leader| leader == 1.0).await;
    bed.api.apply(&app(&namespace, "last", &backend)).await.unwrap();
    second.expect_metric("sesame_status_writes_total", "Ingress", |writes| writes == 1.0).await;
    assert_eq!(bed.proxy_status(&namespace, "web").await, before, "a restart takes nothing back");
    assert_eq!(second.metric("sesame_status_writes_total", "HTTPProxy").await, 0.0, "nor does it write it again");
}

/// A listener is shared by all certificates, and a table by all wildcards: while they are asked about, others change them.
#[tokio::test(flavor = "multi_thread")]
async fn objects_that_share_resources_and_change_at_once_are_all_programmed() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("together").await.unwrap();
    bed.api.apply(&service(&namespace, "web", &backend)).await.unwrap();
    let replica = bed.replica("sesame-0").await.ready().await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    let ca = Ca::new("together");
    let hosts: Vec<String> = (0..40).map(|number| format!("{}h{number}.example.com", ["", "*."][number % 2])).collect();
    // While it stands still, each change comes over one that it has not answered.
    envoy.process().signal(Signal::STOP).unwrap();
    for (number, host) in hosts.iter().enumerate() {
        let name = format!("h{number}");
        let leaf = ca.leaf(host).make();
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": { "name": name, "namespace": namespace },
            "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() } });
        let proxy = json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
            "metadata": { "name": name, "namespace": namespace },
            "spec": { "virtualhost": { "fqdn": host, "tls": { "secretName": name } },
                "routes": [{ "services": [{ "name": "web", "port": 80 }] }] } });
        bed.api.apply(&format!("{secret}\n---\n{proxy}\n")).await.unwrap();
    }
    envoy.process().signal(Signal::CONT).unwrap();
    for number in 0..hosts.len() {
        let name = format!("h{number}");
        let programmed = async || says(&bed.proxy_status(&namespace, &name).await, 1, Some("True"));
        eventually(format!("the word that proxies have {name}"), PATIENCE, programmed).await.unwrap();
    }
}
