//! The parts of a cluster and the order in which they start.
//!
//! In: a [`Config`]. Out: a [`Components`], usable: nodes ready, names resolve. The API server takes longest to start, so all
//! that does not need it happens meanwhile: nodes boot and get their images.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{try_join, try_join_all};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node as NodeObject;
use kube::Api;

use super::addresses::{Addresses, Bridge};
use super::cgroups::Cgroups;
use super::load_balancer::{LoadBalancer, Pool};
use super::node::{Credentials, Node, NodeNetwork};
use super::{Config, Error, addresses, run, wait};
use crate::apiserver::Controllers;
use crate::certs::Ca;
use crate::image::{Image, ready};
use crate::{ApiServer, Command, Net, Process, StateDir};

/// How long it may take until all is usable: six seconds on a quiet machine, and tests run on busy ones.
const START: Duration = Duration::from_secs(120);

/// All parts of one cluster. Dropped first to last: those who use others before them, the folder and the addresses
/// last.
#[derive(Debug)]
pub(super) struct Components {
    _balancer: LoadBalancer,
    _scheduler: Process,
    nodes: Vec<Node>,
    api: ApiServer,
    cgroups: Cgroups,
    _bridge: Bridge,
    archives: AtomicUsize,
    state: StateDir,
    addresses: Addresses,
}

impl Components {
    pub(super) async fn start(config: Config) -> Result<Components, Error> {
        Net::here()?;
        let addresses = Addresses::claim().ok_or(Error::Full(addresses::MOST))?;
        let state = StateDir::new("cluster")?;
        let cgroups = Cgroups::create(&own_name(&addresses))?;
        let (count, progress) = (config.nodes.count(), config.progress);
        let api_config = api_server(&addresses, count);
        let api_config = if config.audit { api_config.audit() } else { api_config };
        let bridge = Bridge::create(&addresses, &state).await?;
        let pause = pause_program(&state);
        let site = NodeNetwork { addresses: &addresses, bridge: bridge.name(), nodes: count, pause: &pause };
        let dns_image = ready::coredns()?;
        let dns = dns_objects(addresses.dns(), &dns_image);
        let archives = AtomicUsize::new(0);

        let booting = async {
            compile_pause(&state).await?;
            let images = config.images.into_iter().chain([ready::pause(&pause)?, dns_image]);
            let archived = try_join_all(images.map(|image| archive(image, &state, &archives)));
            let booted = try_join_all((0..count).map(|number| Node::boot(number, &site)));
            let (files, nodes) = try_join(archived, booted).await?;
            try_join_all(files.iter().map(|file| import(file, &nodes))).await?;
            progress("the nodes are booted and have their images");
            Ok::<_, Error>(nodes)
        };
        let serving = async {
            let api = api_config.start().await?;
            progress("the API server is ready");
            Ok(api)
        };
        let (mut nodes, api) = try_join(booting, serving).await?;

        for node in &mut nodes {
            let cgroup = cgroups.make(node.name())?;
            join(node, &site, &api, &cgroup)?;
        }
        let scheduler = start_scheduler(&api, &state)?;
        try_join(start_controllers(&api, &state), async { Ok(api.apply(&dns).await?) }).await?;
        let balancer = start_balancer(&api, &addresses, &nodes).await?;
        until_usable(&api, &nodes, progress).await?;
        Ok(Components {
            _balancer: balancer,
            _scheduler: scheduler,
            nodes,
            api,
            cgroups,
            _bridge: bridge,
            archives,
            state,
            addresses,
        })
    }

    pub(super) fn api(&self) -> &ApiServer {
        &self.api
    }

    pub(super) fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    pub(super) async fn load(&self, image: Image) -> Result<(), Error> {
        let file = archive(image, &self.state, &self.archives).await?;
        import(&file, &self.nodes).await
    }

    pub(super) async fn stop(self) -> Result<(), Error> {
        try_join_all(self.nodes.iter().map(Node::kill)).await?;
        // Nothing is left in them; dropping the rest kills what remains.
        self.cgroups.remove()
    }
}

/// A name for the control groups that tells the sandbox: it is the sandbox that removes them when a test process ends
/// without stopping its clusters.
fn own_name(addresses: &Addresses) -> String {
    let sandbox = std::env::var_os("SESAME_SANDBOX").map(PathBuf::from);
    let sandbox = sandbox.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    format!("{sandbox}-{}", addresses.number())
}

fn api_server(addresses: &Addresses, nodes: u8) -> crate::apiserver::Config {
    let config = ApiServer::config()
        .address((addresses.control_plane(), 6443).into())
        .name(addresses.api_service().to_string())
        .service_accounts()
        .flag("service-cluster-ip-range", addresses.services())
        .user("system:kube-scheduler", [""; 0])
        .user("system:kube-proxy", [""; 0]);
    (0..nodes).fold(config, |config, node| config.user(&format!("system:node:{}", node_name(node)), ["system:nodes"]))
}

/// The name of a node, counted from 0.
pub(super) fn node_name(number: u8) -> String {
    format!("n{}", number + 1)
}

fn join(node: &mut Node, site: &NodeNetwork<'_>, api: &ApiServer, cgroup: &str) -> Result<(), Error> {
    // A certificate of its own making would cost the kubelet an RSA key at each start.
    let leaf = Ca::new("node").leaf(node.name()).ip(node.address()).make();
    let name = node.name().to_owned();
    let credentials = Credentials {
        kubelet: &api.kubeconfig_of(&format!("system:node:{name}"))?,
        kube_proxy: &api.kubeconfig_of("system:kube-proxy")?,
        certificate: &node.write("kubelet.crt", leaf.chain_pem())?,
        key: &node.write("kubelet.key", leaf.key_pem())?,
    };
    node.join(site, &credentials, cgroup)
}

/// For how long nobody has to hear of a node before its pods count as not ready: longer than any test takes the API server away.
/// With the default of 50 s the controller, whose last news are from before, takes all endpoints away when the API server is back.
const NODE_GRACE: &str = "15m";

async fn start_controllers(api: &ApiServer, state: &StateDir) -> Result<(), Error> {
    let controllers = Controllers::all()
        .flag("node-monitor-grace-period", NODE_GRACE)
        .flag("use-service-account-credentials", "true")
        .flag("flex-volume-plugin-dir", state.path().join("volume-plugins").display().to_string());
    Ok(api.start_controllers(controllers).await?)
}

fn start_scheduler(api: &ApiServer, state: &StateDir) -> Result<Process, Error> {
    let scheduler = Command::new(parts::program("kube-scheduler")?)
        .flag("kubeconfig", api.kubeconfig_of("system:kube-scheduler")?)
        .flag("leader-elect", "false")
        .flag("secure-port", "0")
        .flag("kube-api-qps", "200")
        .flag("kube-api-burst", "400");
    Ok(scheduler.start_in(state)?)
}

async fn start_balancer(api: &ApiServer, addresses: &Addresses, nodes: &[Node]) -> Result<LoadBalancer, Error> {
    let kubeconfig = api.kubeconfig()?;
    let config = super::read_kubeconfig(&kubeconfig).await?;
    let nodes = nodes.iter().map(|node| (node.name().to_owned(), node.address())).collect();
    LoadBalancer::start(config, Pool::new(addresses), nodes)
        .map_err(|source| Error::Spawn { what: "the load balancer", source })
}

async fn archive(image: Image, state: &StateDir, count: &AtomicUsize) -> Result<PathBuf, Error> {
    let number = count.fetch_add(1, Ordering::Relaxed);
    let file = state.path().join(format!("image-{number}.tar"));
    let path = file.clone();
    let written = tokio::task::spawn_blocking(move || image.write(&path)).await;
    written.map_err(|error| Error::Spawn { what: "a thread for an image", source: error.into() })??;
    Ok(file)
}

async fn import(archive: &Path, nodes: &[Node]) -> Result<(), Error> {
    try_join_all(nodes.iter().map(|node| node.import(archive))).await?;
    // The nodes have it now; a second copy is of no use to anyone.
    let _ = std::fs::remove_file(archive);
    Ok(())
}

/// Waits until pods can be made and run, and find each other by name.
async fn until_usable(api: &ApiServer, nodes: &[Node], progress: fn(&str)) -> Result<(), Error> {
    let client = api.client()?;
    let nodes = async {
        let objects = Api::<NodeObject>::all(client.clone());
        try_join_all(nodes.iter().map(|node| wait::settled(objects.clone(), node.name(), START))).await?;
        progress("the nodes are ready");
        Ok(())
    };
    let account = wait::account(&client, "default", START);
    let (namespace, name) = DNS_DEPLOYMENT;
    let dns = wait::settled(Api::<Deployment>::namespaced(client.clone(), namespace), name, START);
    futures::try_join!(nodes, account, dns)?;
    Ok(())
}

/// Namespace and name of the DNS server's Deployment.
const DNS_DEPLOYMENT: (&str, &str) = ("kube-system", "coredns");

fn dns_objects(address: Ipv4Addr, image: &Image) -> String {
    let name = image.names().first().map(String::as_str).unwrap_or_default();
    include_str!("dns.yaml").replace("{address}", &address.to_string()).replace("{image}", name)
}

/// The program that holds namespaces: process 1 of every pod's sandbox and of every node.
fn pause_program(state: &StateDir) -> PathBuf {
    state.path().join("pause")
}

/// Makes it with the system's C compiler, in a tenth of a second.
async fn compile_pause(state: &StateDir) -> Result<(), Error> {
    let source = state.write("pause.c", include_str!("pause.c"))?;
    run(Command::new("cc").arg("-O2").arg("-o").arg(pause_program(state)).arg(source), state).await
}
