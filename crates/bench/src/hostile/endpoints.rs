//! An attack by endpoints: a Service with 5,000 of them, of which a slice comes or goes 20 times a second.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::attacker::{Attacker, api_path, host, object, proxy};
use crate::world::Object;

/// The API group of EndpointSlices.
const SLICES: &str = "/apis/discovery.k8s.io/v1";
/// Endpoints in one slice, as Kubernetes has them.
const IN_SLICE: usize = 100;
/// Between two changes.
const REST: Duration = Duration::from_millis(50);

/// Makes it, and flaps.
pub async fn flapping(attacker: &Attacker) -> Result<()> {
    let slices = attacker.count(5000).div_ceil(IN_SLICE);
    let service = json!({ "spec": { "clusterIP": "None", "ports": [{ "name": "http", "port": 80 }] } });
    attacker.writer.create(&object("/api/v1", "services", service, "flapping")).await?;
    let routes = json!([{ "services": [{ "name": "flapping", "port": 80 }] }]);
    let spec = json!({ "virtualhost": { "fqdn": host(0) }, "routes": routes });
    attacker.writer.create(&proxy("flapping", spec)).await?;
    attacker.create_all((0..slices).map(slice)).await?;
    attacker.in_place();
    for round in 0.. {
        sleep(REST).await;
        let (number, ready) = (round % slices, !(round / slices).is_multiple_of(2));
        let edit = json!({ "endpoints": endpoints(number, ready) });
        attacker.writer.edit(&(api_path(SLICES, "endpointslices", &format!("flapping-{number}")), edit)).await?;
    }
    Ok(())
}

fn slice(number: usize) -> Object {
    let body = json!({
        "metadata": { "labels": { "kubernetes.io/service-name": "flapping" } },
        "addressType": "IPv4",
        "ports": [{ "name": "http", "port": 80 }],
        "endpoints": endpoints(number, true),
    });
    object(SLICES, "endpointslices", body, &format!("flapping-{number}"))
}

fn endpoints(slice: usize, ready: bool) -> Value {
    let endpoint = |n: usize| {
        let address = format!("10.{}.{}.{}", slice / 250, slice % 250, n + 1);
        json!({ "addresses": [address], "conditions": { "ready": ready } })
    };
    (0..IN_SLICE).map(endpoint).collect()
}
