//! What a cloud's load balancer does, in one thread: addresses for Services of type LoadBalancer, and the way to them.
//!
//! In: watches of Services and EndpointSlices. Out: `status.loadBalancer`, and a route to each address over the nodes: all of
//! them, or with `externalTrafficPolicy: Local` those that have a ready endpoint, or had the last one. On a node kube-proxy answers for the address.
//! A connection stays on its node when the route changes ([`flows`]). The thread has a runtime of its own, because a cluster
//! may outlive the test that started it.

mod flows;
mod plan;

use std::net::Ipv4Addr;
use std::process::Stdio;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Patch, PatchParams};
use kube::runtime::reflector::{Store, store};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, Config};
use serde_json::json;
use tokio::sync::oneshot;

use flows::Flows;
use plan::{Desired, Routes, wanted, with_last};
pub(super) use plan::{Nodes, Pool};

/// How soon to try again what failed; nothing announces that it would succeed now.
const AGAIN: Duration = Duration::from_millis(200);

/// The load balancer of one cluster; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct LoadBalancer {
    _stop: oneshot::Sender<()>,
}

impl LoadBalancer {
    pub(super) fn start(config: Config, pool: Pool, nodes: Nodes) -> std::io::Result<LoadBalancer> {
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("load-balancer".into()).spawn(move || {
            runtime.block_on(async {
                let mut flows = Flows::new(&nodes);
                tokio::select! {
                    _ = stopped => {}
                    result = balance(config, pool, &nodes, &mut flows) => {
                        if let Err(error) = result {
                            eprintln!("testbed: the load balancer of a cluster gave up: {error}");
                        }
                    }
                }
                flows.clear().await;
            });
        })?;
        Ok(LoadBalancer { _stop: stop })
    }
}

/// Looks at everything again whenever anything changed: a test has a handful of Services.
async fn balance(config: Config, mut pool: Pool, nodes: &Nodes, flows: &mut Flows) -> Result<(), kube::Error> {
    let client = Client::try_from(config)?;
    let (services, service_writer) = store::<Service>();
    let (slices, slice_writer) = store::<EndpointSlice>();
    let follow = watcher::Config::default;
    let changed_services = reflector(service_writer, watcher(Api::all(client.clone()), follow())).default_backoff();
    let changed_slices = reflector(slice_writer, watcher(Api::all(client.clone()), follow())).default_backoff();
    let mut changes = futures::stream::select(changed_services.map(drop), changed_slices.map(drop)).boxed();
    let mut routes = Routes::new();
    let mut retry = false;
    loop {
        tokio::select! {
            change = changes.next() => if change.is_none() { return Ok(()) },
            () = tokio::time::sleep(AGAIN), if retry => {}
        }
        retry = !settle(&client, &services, &slices, &mut pool, nodes, (&mut routes, flows)).await;
    }
}

/// Makes routes and statuses what they should be; says whether all of it worked.
async fn settle(
    client: &Client,
    services: &Store<Service>,
    slices: &Store<EndpointSlice>,
    pool: &mut Pool,
    nodes: &Nodes,
    (routes, flows): (&mut Routes, &mut Flows),
) -> bool {
    let Desired { routes: wanted, statuses } = wanted(&services.state(), &slices.state(), pool, nodes);
    let wanted = with_last(wanted, routes);
    // The way there comes first: who reads the address may use it at once.
    let mut all = settle_routes(routes, &wanted).await && flows.settle(&wanted).await;
    for status in statuses {
        let patch = json!({ "status": { "loadBalancer": { "ingress": status.ingress } } });
        let api = Api::<Service>::namespaced(client.clone(), &status.namespace);
        match api.patch_status(&status.name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(_) => {}
            Err(kube::Error::Api(error)) if error.code == 404 => {}
            Err(_) => all = false,
        }
    }
    all
}

async fn settle_routes(routes: &mut Routes, wanted: &Routes) -> bool {
    let mut all = true;
    let gone: Vec<Ipv4Addr> = routes.keys().filter(|address| !wanted.contains_key(address)).copied().collect();
    for address in gone {
        if ip(&format!("route del {address}/32")).await {
            routes.remove(&address);
        } else {
            all = false;
        }
    }
    for (address, nodes) in wanted {
        if routes.get(address) == Some(nodes) {
            continue;
        }
        let over: String = nodes.iter().map(|node| format!(" nexthop via {node}")).collect();
        if ip(&format!("route replace {address}/32{over}")).await {
            routes.insert(*address, nodes.clone());
        } else {
            all = false;
        }
    }
    all
}

async fn ip(words: &str) -> bool {
    let mut command = tokio::process::Command::new("ip");
    command.args(words.split(' ')).stdin(Stdio::null()).kill_on_drop(true);
    command.status().await.is_ok_and(|status| status.success())
}
