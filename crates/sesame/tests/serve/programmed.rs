//! The condition Programmed of an HTTPProxy.

use rustix::process::Signal;
use serde_json::{Value, json};
use testbed::certs::Ca;
use testbed::xds_client::{Kind, Reply};
use testbed::{Backend, Client, Net, XdsClient, eventually};

use crate::bed::{Bed, Replica, TIMEOUT, app, service};

/// The condition of a type about a generation.
fn condition<'s>(status: &'s Value, name: &str, generation: i64) -> Option<&'s Value> {
    let mut all = status["conditions"].as_array().into_iter().flatten();
    all.find(|condition| condition["type"] == name && condition["observedGeneration"] == generation)
}

/// Whether a status says of that generation that it is valid, and this of proxies.
fn says(status: &Value, generation: i64, programmed: &str) -> Result<(), String> {
    let of = |name: &str| condition(status, name, generation);
    let is_valid = of("Valid").is_some_and(|condition| condition["status"] == "True");
    let said = of("Programmed").map(|said| format!("{}/{}", said["status"], said["reason"]).replace('"', ""));
    if is_valid && said.as_deref() == Some(programmed) { Ok(()) } else { Err(status.to_string()) }
}

const TRUE: &str = "True/Programmed";

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
    let valid = async |generation: i64, programmed: &str| {
        says(&bed.proxy_status(&namespace, "web").await, generation, programmed)
    };
    eventually("the word that no proxy is there", TIMEOUT, async || valid(1, "False/NoProxies").await).await.unwrap();
    let envoy = bed.envoy(first.xds()).await;
    envoy.ready().await.unwrap();
    eventually("the word that proxies have it", TIMEOUT, async || valid(1, TRUE).await).await.unwrap();
    bed.api.apply(&proxy("/new")).await.unwrap();
    eventually("the same of its next form", TIMEOUT, async || valid(2, TRUE).await).await.unwrap();
    assert_eq!(bed.status_of("web.example.com", "/new").await, 200, "what is programmed is served");
    let before = bed.proxy_status(&namespace, "web").await;
    let messages: Vec<_> = before["conditions"].as_array().unwrap().iter().map(|one| &one["message"]).collect();
    assert!(messages.contains(&&"Accepted by the connected proxy.".into()), "{messages:?}");
    envoy.kill().await.unwrap();
    assert!(first.process.stop(TIMEOUT).await.unwrap().success());
    let second = bed.replica("sesame-1").await.ready().await;
    second.expect_metric("sesame_leader", "", |leader| leader == 1.0).await;
    bed.api.apply(&app(&namespace, "last", &backend)).await.unwrap();
    second.expect_metric("sesame_status_writes_total", "Ingress", |writes| writes == 1.0).await;
    assert_eq!(bed.proxy_status(&namespace, "web").await, before, "a restart takes nothing back");
    assert_eq!(second.metric("sesame_status_writes_total", "HTTPProxy").await, 0.0, "nor does it write it again");
}

/// A proxy that answers as it is told to, of the same version as all others.
async fn proxy(replica: &Replica, id: &str, refuses: Option<&'static str>) -> XdsClient {
    let reply = move |kind: Kind| match refuses {
        Some(text) if kind == Kind::ScopedRoute => Reply::Nack(text.to_owned()),
        _ => Reply::Ack,
    };
    let client = XdsClient::to(Client::new(replica.xds())).id(id).as_envoy().replies(move |of| reply(of.kind));
    client.connect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_refuses_what_others_accept_is_named_for_as_long_as_it_does() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("partial").await.unwrap();
    let replica = bed.replica_at("sesame-0", Net::here().unwrap().address(), &[("insecure", "")]).await.ready().await;
    let _accept = [proxy(&replica, "envoy-1", None).await, proxy(&replica, "envoy-2", None).await];
    let refuses = proxy(&replica, "envoy-7xk", Some("not on this machine")).await;
    bed.api.apply(&service(&namespace, "web", &backend)).await.unwrap();
    let object = json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
        "metadata": { "name": "web", "namespace": namespace },
        "spec": { "virtualhost": { "fqdn": "web.example.com" }, "routes": [{ "services": [{ "name": "web", "port": 80 }] }] } });
    bed.api.apply(&object.to_string()).await.unwrap();
    let said = async |wanted: &str| {
        let status = bed.proxy_status(&namespace, "web").await;
        let said = condition(&status, "Programmed", 1).and_then(|said| said["message"].as_str());
        if said == Some(wanted) { Ok(()) } else { Err(status.to_string()) }
    };
    let partial = "Accepted by 2 of 3 connected proxies; envoy-7xk rejected it: not on this machine";
    eventually("the proxy that refuses", TIMEOUT, async || said(partial).await).await.unwrap();
    says(&bed.proxy_status(&namespace, "web").await, 1, "True/PartiallyProgrammed").unwrap();
    drop(refuses);
    let all = "Accepted by all 2 connected proxies.";
    eventually("that all accept it", TIMEOUT, async || said(all).await).await.unwrap();
    says(&bed.proxy_status(&namespace, "web").await, 1, TRUE).unwrap();
    let writes = replica.metric("sesame_status_writes_total", "HTTPProxy").await;
    assert!(writes <= 4.0, "{writes} writes");
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
        let programmed = async || says(&bed.proxy_status(&namespace, &name).await, 1, TRUE);
        eventually(format!("the word that proxies have {name}"), TIMEOUT, programmed).await.unwrap();
    }
}
