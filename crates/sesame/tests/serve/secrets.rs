//! Secrets that one tenant names and nobody can fetch: others do not notice.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::json;
use testbed::certs::Ca;
use testbed::{ApiServer, Backend, Client, eventually};

use crate::bed::{Bed, TIMEOUT, app, service};

/// How long a change of somebody else may take meanwhile, on a busy machine: where such names hold others up, it is a minute.
const PROMPT: Duration = Duration::from_secs(20);

fn expect_prompt(what: &str, begun: Instant) {
    let took = begun.elapsed();
    assert!(took < PROMPT, "{what} took {took:?}");
}

/// An HTTPProxy that names a CA for each of so many services.
fn hostile(namespace: &str, count: usize, ca: impl Fn(usize) -> String) -> String {
    let routes = (0..count).map(|number| {
        let validation = json!({ "caSecret": ca(number), "subjectName": "web" });
        let service = json!({ "name": "web", "port": 80, "protocol": "tls", "validation": validation });
        json!({ "conditions": [{ "prefix": format!("/{number}") }], "services": [service] })
    });
    let spec = json!({ "virtualhost": { "fqdn": "hostile.example.com" }, "routes": routes.collect::<Vec<_>>() });
    let metadata = json!({ "namespace": namespace, "name": "hostile" });
    json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": metadata, "spec": spec }).to_string()
}

/// How many requests for single Secrets the API server has answered.
async fn gets(api: &ApiServer) -> f64 {
    let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
    let text = api.client().unwrap().request_text(request).await.unwrap();
    let rows = text.lines().filter(|line| {
        line.starts_with("apiserver_request_total{")
            && line.contains("resource=\"secrets\"")
            && line.contains("verb=\"GET\"")
    });
    rows.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_thousand_names_that_cannot_be_fetched_hold_up_nobody() {
    let bed = Bed::start().await;
    let (first, second) = (Backend::start("first").await.unwrap(), Backend::start("second").await.unwrap());
    let mine = bed.api.namespace("mine").await.unwrap();
    let other = bed.api.namespace("other").await.unwrap();
    bed.api.apply(&app(&mine, "web", &first)).await.unwrap();
    bed.api.apply(&service(&other, "web", &first)).await.unwrap();
    let replica = bed.replica("sesame-0").await.ready().await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    bed.answers("web.example.com", 200).await;
    assert_eq!(gets(&bed.api).await, 0.0, "nothing refers to a Secret");

    // Names that cannot be names.
    bed.api.apply(&hostile(&other, 3000, |number| format!("x%{number}"))).await.unwrap();
    let told = async || match bed.proxy_status(&other, "hostile").await {
        status if status.to_string().contains("cannot exist: a name consists of") => Ok(()),
        status => Err(status.to_string()),
    };
    eventually("the object to be told", TIMEOUT, told).await.unwrap();
    assert_eq!(gets(&bed.api).await, 0.0, "the API server was asked for what cannot be");

    // Names that can be, and are not there: each is asked for once, and meanwhile others change.
    bed.api.apply(&hostile(&other, 3000, |number| format!("x-{number}"))).await.unwrap();
    let begun = Instant::now();
    bed.api.apply(&app(&mine, "new", &first)).await.unwrap();
    bed.answers("new.example.com", 200).await;
    expect_prompt("a new host", begun);
    let begun = Instant::now();
    bed.api.apply(&service(&mine, "web", &second)).await.unwrap();
    let moved = async || match Client::new(bed.http()).host("web.example.com").get("/").await {
        Ok(answer) if answer.text().contains("second") => Ok(()),
        Ok(answer) => Err(answer.text()),
        Err(failure) => Err(failure.to_string()),
    };
    eventually("the endpoint to move", TIMEOUT, moved).await.unwrap();
    expect_prompt("a moved endpoint", begun);
    let asked = async || match gets(&bed.api).await {
        3000.0 => Ok(()),
        asked => Err(asked),
    };
    eventually("each name to be asked for once", TIMEOUT, asked).await.unwrap();

    // A Secret of somebody else is read while they are there.
    let ca = Ca::new("mine");
    let leaf = ca.leaf("new.example.com").make();
    let secret = json!({
        "metadata": { "name": "cert" }, "type": "kubernetes.io/tls",
        "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() },
    });
    let begun = Instant::now();
    let secrets = Api::<Secret>::namespaced(bed.api.client().unwrap(), &mine);
    secrets.create(&kube::api::PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    let ingresses = Api::<k8s_openapi::api::networking::v1::Ingress>::namespaced(bed.api.client().unwrap(), &mine);
    let tls = json!({ "spec": { "tls": [{ "hosts": ["new.example.com"], "secretName": "cert" }] } });
    ingresses.patch("new", &Default::default(), &kube::api::Patch::Merge(tls)).await.unwrap();
    let served = async || {
        let client = Client::new(bed.https()).host("new.example.com").https().sni("new.example.com").trust(&ca);
        match client.get("/").await {
            Ok(answer) if answer.status.as_u16() == 200 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    };
    eventually("TLS to be served", TIMEOUT, served).await.unwrap();
    expect_prompt("a certificate", begun);
}
