//! A real Kubernetes of one or two nodes: kubelet, containerd, runc, CNI, kube-proxy, scheduler, controllers, DNS, and
//! a stand-in for a cloud's load balancer.
//!
//! In: how many nodes, and which images. Out: a [`Cluster`] after some seconds, which takes YAML, waits for what
//! becomes of it with clear deadlines, and is gone a second after it is dropped. Nothing is pulled from anywhere: see
//! [`Image`].
//!
//! ```no_run
//! # async fn test() -> anyhow::Result<()> {
//! use testbed::cluster::{self, Cluster, Nodes};
//!
//! if !cluster::available() {
//!     return Ok(()); // says so, and is counted
//! }
//! let cluster = Cluster::config().nodes(Nodes::Two).image(testbed::image::ready::tools()?).start().await?;
//! let namespace = cluster.namespace("shop").await?;
//! cluster.apply_yaml("apiVersion: v1 ...").await?;
//! let pod = cluster.pod_ready(&namespace, "web").await?;
//! cluster.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! The control plane runs in the network of the test process, so a test reaches every pod, Service and load balancer
//! address, and webhooks reach what a test serves. Each node has network, mount, host name and process namespaces of
//! its own. What a node keeps is in memory and goes with it. Needs root.

mod access;
mod addresses;
mod cgroups;
mod components;
mod config;
mod error;
mod load_balancer;
mod node;
mod wait;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::image::Image;
use crate::{ApiServer, Command, StateDir};
use components::Components;

pub use access::Output;
pub use config::{Config, Nodes, available, is_root};
pub use error::Error;

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    kubeconfig: PathBuf,
    client: kube::Config,
    home: Home,
}

/// What a link between the host and the network of a cluster needs.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The address of the host's end; the cluster's end is in the same /30.
    pub host: Ipv4Addr,
    /// The address of the cluster's end.
    pub cluster: Ipv4Addr,
    /// What is reached through it.
    pub ranges: [String; 2],
}

/// Where a cluster runs.
#[derive(Debug)]
enum Home {
    Components(Box<Components>),
    Elsewhere,
}

/// The cluster that the user wants tests to run on, if not one of ours.
fn named_kubeconfig() -> Option<PathBuf> {
    std::env::var_os("SESAME_KUBECONFIG").filter(|path| !path.is_empty()).map(PathBuf::from)
}

async fn read_kubeconfig(path: &Path) -> Result<kube::Config, Error> {
    let failed = |source| Error::Kubeconfig { path: path.to_owned(), source };
    let read = Kubeconfig::read_from(path).map_err(failed)?;
    kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.map_err(failed)
}

impl Cluster {
    /// One with the usual contents.
    pub async fn start(nodes: Nodes) -> Result<Cluster, Error> {
        Config::default().nodes(nodes).start().await
    }

    /// What can be chosen.
    pub fn config() -> Config {
        Config::default()
    }

    async fn connect(kubeconfig: PathBuf, home: Home) -> Result<Cluster, Error> {
        let client = read_kubeconfig(&kubeconfig).await?;
        Ok(Cluster { kubeconfig, client, home })
    }

    /// A client with all rights. Each call makes a new one, because a client belongs to the runtime that it is made in.
    pub fn client(&self) -> Result<kube::Client, Error> {
        Ok(kube::Client::try_from(self.client.clone())?)
    }

    /// The file of a kubeconfig with all rights.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Its API server, for other users' kubeconfigs and for outages.
    pub fn api(&self) -> Result<&ApiServer, Error> {
        Ok(self.components("using the API server directly")?.api())
    }

    /// Makes an image known to all nodes.
    pub async fn load_image(&self, image: Image) -> Result<(), Error> {
        self.components("loading an image")?.load(image).await
    }

    /// How a machine outside gets at it.
    pub fn reach(&self) -> Result<Reach, Error> {
        let addresses = self.components("linking it to the host")?.addresses();
        let [host, cluster] = addresses.uplink();
        Ok(Reach { host, cluster, ranges: [addresses.all(), addresses.services()] })
    }

    /// A load balancer address that a Service may ask for.
    pub fn requestable_address(&self) -> Result<Ipv4Addr, Error> {
        Ok(self.components("choosing an address of a load balancer")?.addresses().requestable()[0])
    }

    /// Ends it and removes all that belonged to it; dropping it does the same, but cannot say what went wrong. A
    /// cluster that the user named is left alone.
    pub async fn stop(self) -> Result<(), Error> {
        match self.home {
            Home::Components(components) => components.stop().await,
            Home::Elsewhere => Ok(()),
        }
    }

    fn components(&self, wish: &'static str) -> Result<&Components, Error> {
        match &self.home {
            Home::Components(components) => Ok(components),
            Home::Elsewhere => Err(Error::BedOnly(wish)),
        }
    }
}

/// Nothing that [`run`] is given takes more than a second on a quiet machine.
const RUN_LIMIT: Duration = Duration::from_secs(60);

/// Runs a command to its end, which must be a good one.
async fn run(command: Command, state: &StateDir) -> Result<(), Error> {
    let process = command.start_in(state)?;
    let status = crate::within(format!("{} to end", process.name()), RUN_LIMIT, process.exited()).await??;
    if status.success() {
        return Ok(());
    }
    Err(Error::Command { name: process.name().to_owned(), status, log: process.log().tail() })
}

/// Runs lines of shell, of which every one must succeed.
async fn shell(name: &str, script: String, state: &StateDir) -> Result<(), Error> {
    run(Command::new("/bin/sh").name(name).arg("-euc").arg(script), state).await
}
