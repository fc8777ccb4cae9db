//! Every behaviour case once more, from an API server through `sesame serve` to an Envoy, with status and events.

use std::net::Ipv4Addr;
use std::path::Path;

use testbed::cases::{Serve, Serving, run_in_cluster};
use testbed::{Envoy, Net};

use crate::bed::{ADDRESS, Bed, Replica};

struct Served {
    envoy: Envoy,
    _replica: Replica,
}

impl Serving for Served {
    fn envoy(&self) -> &Envoy {
        &self.envoy
    }

    fn address(&self) -> &str {
        ADDRESS
    }
}

/// All of them listen on all addresses, as proxies do.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn run(dialect: &str) {
    let _turn = TURN.lock().await;
    let bed = Bed::start_at(Ipv4Addr::UNSPECIFIED).await;
    bed.api.install([parts::folder("gateway-api-crds").unwrap().join("experimental")]).await.unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases").join(dialect);
    let start = async |settings: &Serve| {
        let config = bed.file("config.yaml", &settings.file);
        let mut flags: Vec<(&str, &str)> = settings.flags.iter().map(|(name, value)| (&**name, &**value)).collect();
        flags.push(("config-path", config.to_str().unwrap()));
        // One after the other: each is the leader, since nobody else is there.
        flags.push(("disable-leader-election", ""));
        // There is one Envoy, for all objects.
        flags.push(("disable-fleets", ""));
        let replica = bed.replica_at("sesame-0", Net::here().unwrap().address(), &flags).await.ready().await;
        let envoy = bed.envoy(replica.xds()).await;
        envoy.ready().await.unwrap();
        Served { envoy, _replica: replica }
    };
    run_in_cluster(&folder, &bed.api, start).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ingress_in_a_cluster() {
    run("ingress").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn httpproxy_in_a_cluster() {
    run("httpproxy").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gateway_in_a_cluster() {
    run("gateway").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn emissary_in_a_cluster() {
    run("emissary").await;
}
