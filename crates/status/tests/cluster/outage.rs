//! An API server that is away: nothing is lost, and nothing is hammered.

use k8s_openapi::api::networking::v1::Ingress;
use kube::api::Api;
use status::{Leadership, Report};
use testbed::ApiServer;

use crate::bed::{ADDRESS, Replica, create, ingress, report, until_says};

#[tokio::test]
async fn what_could_not_be_written_is_written_when_the_api_server_is_back() {
    let api = ApiServer::start().await.unwrap();
    let namespace = api.namespace("outage").await.unwrap();
    let ingresses = Api::<Ingress>::namespaced(api.client().unwrap(), &namespace);
    let mut created = Vec::new();
    for n in 0..50 {
        created.push(create(&ingresses, &ingress(&format!("web-{n}"))).await);
    }
    let replica = Replica::idle(api.client().unwrap(), Leadership::always());
    api.kill().await.unwrap();
    for object in &created {
        replica.reporter.report(Report { synced: true, ..report(object) });
    }
    let failed = |replica: &Replica| replica.count("sesame_status_writes_total", "failed");
    replica.until("all to have failed", |replica| failed(replica) >= 50).await;
    api.restart().await.unwrap();
    for object in &created {
        until_says(&ingresses, object.metadata.name.as_deref().unwrap(), &[ADDRESS]).await;
    }
    println!("{} requests failed, {} wrote", failed(&replica), replica.written());
    assert_eq!(replica.written(), 50);
    assert!(failed(&replica) < 50 * 12, "{} tries", failed(&replica));
    replica.stop().await;
}
