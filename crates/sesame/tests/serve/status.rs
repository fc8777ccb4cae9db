//! What is written on objects: where they are served, what is wrong with them, and no more often than needed.

use k8s_openapi::api::core::v1::Event;
use k8s_openapi::api::networking::v1::Ingress;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use testbed::{Backend, Net, eventually};

use crate::bed::{Bed, Replica, TIMEOUT, app, service};

/// The addresses in the status of an Ingress.
pub async fn addresses(ingresses: &Api<Ingress>, name: &str) -> Vec<String> {
    let status = ingresses.get(name).await.unwrap().status.unwrap_or_default();
    let points = status.load_balancer.and_then(|balancer| balancer.ingress).unwrap_or_default();
    points.into_iter().filter_map(|point| point.ip).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_ingresses_are_written_once_each_and_not_again_after_a_restart() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("economy").await.unwrap();
    bed.api.apply(&service(&namespace, "web", &backend)).await.unwrap();
    let first = bed.replica("sesame-0").await.ready().await;
    let rule = "http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}";
    let yaml: String = (0..1000)
        .map(|number| {
            format!(
                "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: i{number}, namespace: {namespace}}}\n\
                 spec: {{rules: [{{host: i{number}.example.com, {rule}}}]}}\n"
            )
        })
        .collect();
    bed.api.apply(&yaml).await.unwrap();
    first.expect_metric("sesame_status_writes_total", "written", |writes| writes >= 1000.0).await;
    let ingresses = Api::<Ingress>::namespaced(bed.api.client().unwrap(), &namespace);
    let all = ingresses.list(&ListParams::default()).await.unwrap();
    let reported = |ingress: &Ingress| {
        let status = ingress.status.as_ref().and_then(|status| status.load_balancer.as_ref());
        status.and_then(|balancer| balancer.ingress.as_ref()).is_some_and(|points| points.len() == 1)
    };
    assert_eq!(all.items.iter().filter(|ingress| reported(ingress)).count(), 1000);
    assert_eq!(first.metric("sesame_status_writes_total", "written").await, 1000.0, "at most one write each");
    assert!(first.process.stop(TIMEOUT).await.unwrap().success());
    let second = bed.replica("sesame-1").await.ready().await;
    second.expect_metric("sesame_leader", "", |leader| leader == 1.0).await;
    // One more object, and what it takes, shows that the new leader has been through all of them.
    bed.api.apply(&app(&namespace, "last", &backend)).await.unwrap();
    eventually("the last to be told", TIMEOUT, async || match addresses(&ingresses, "last").await.len() {
        1 => Ok(()),
        other => Err(other),
    })
    .await
    .unwrap();
    assert_eq!(second.metric("sesame_status_writes_total", "").await, 1.0, "a restart writes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said_by_an_event_with_the_code_the_field_and_what_to_do() {
    let bed = Bed::start().await;
    let namespace = bed.api.namespace("events").await.unwrap();
    let replica = bed.replica("sesame-0").await.ready().await;
    replica.expect_metric("sesame_leader", "", |leader| leader == 1.0).await;
    let yaml = format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: broken, namespace: {namespace}}}\nspec:\n  \
         rules: [{{host: a.example.com, http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: gone, \
         port: {{number: 80}}}}}}}}]}}}}]\n"
    );
    bed.api.apply(&yaml).await.unwrap();
    let events = Api::<Event>::namespaced(bed.api.client().unwrap(), &namespace);
    let said = async || {
        let list = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let event = list.items.into_iter().find(|event| event.involved_object.name.as_deref() == Some("broken"));
        event.ok_or_else(|| "no event".to_owned())
    };
    let event = eventually("an event on the Ingress", TIMEOUT, said).await.unwrap();
    let message = event.message.unwrap_or_default();
    assert!(message.contains("SES3001") && message.contains("spec.rules[0].http.paths[0].backend"), "{message}");
    assert_eq!(event.type_.as_deref(), Some("Warning"));
}

/// How often one installation writes a status that another one keeps changing, until both leave it as it is for an hour.
const CONTESTED_WRITES: f64 = 4.0;

/// Each has a lease of its own, and writes its own address to what both serve.
#[tokio::test(flavor = "multi_thread")]
async fn two_installations_by_accident_end_their_quarrel_and_say_so_once() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("twice").await.unwrap();
    let yaml: String = (0..3).map(|number| app(&namespace, &format!("web{number}"), &backend) + "---\n").collect();
    bed.api.apply(&yaml).await.unwrap();
    let address = || Net::here().unwrap().address();
    let first = bed.replica_at("sesame-0", address(), &[]).await.ready().await;
    let flags =
        [("namespace", "other"), ("leader-election-resource-name", "other"), ("ingress-status-address", "192.0.2.8")];
    let second = bed.replica_at("other-0", address(), &flags).await.ready().await;
    let both = [&first, &second];
    let reported =
        |replica: &Replica| replica.process.log().text().lines().filter(|line| line.contains("SES1038")).count();
    for replica in both {
        let settled = |writes: f64| writes >= 3.0 * CONTESTED_WRITES;
        replica.expect_metric("sesame_status_writes_total", "written", settled).await;
    }

    // Each object changes once more. A watch delivers in order: an installation that writes to another object has seen that.
    let ingresses = Api::<Ingress>::namespaced(bed.api.client().unwrap(), &namespace);
    let change = json!({ "metadata": { "annotations": { "example.com/changed": "once" } } });
    let mut changed = Vec::new();
    for number in 0..3 {
        let name = format!("web{number}");
        changed.push(ingresses.patch(&name, &PatchParams::default(), &Patch::Merge(&change)).await.unwrap());
    }
    bed.api.apply(&app(&namespace, "last", &backend)).await.unwrap();
    for replica in both {
        let settled = |writes: f64| writes >= 4.0 * CONTESTED_WRITES;
        replica.expect_metric("sesame_status_writes_total", "written", settled).await;
    }
    for Ingress { metadata, .. } in changed {
        let now = ingresses.get(metadata.name.as_deref().unwrap()).await.unwrap().metadata;
        assert_eq!(now.resource_version, metadata.resource_version, "{:?} was written again", now.name);
    }
    for replica in both {
        let writes = replica.metric("sesame_status_writes_total", "written").await;
        assert_eq!(writes, 4.0 * CONTESTED_WRITES, "writes to 4 objects");
        assert_eq!(reported(replica), 1, "{}", replica.process.log().text());
    }
}
