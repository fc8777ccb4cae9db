//! One node: a machine made of namespaces, with a container runtime, a kubelet and a kube-proxy.
//!
//! In: its number, the bridge that it is plugged into, the images of every pod's sandbox and DNS. Out: a node that
//! registers itself. Process 1 of the node holds its namespaces; killing it ends all that runs there, shims and
//! containers included, and takes the mounts and the network along.

mod config;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::UnixStream;

use super::addresses::Addresses;
use super::components::node_name;
use super::{Error, run, shell};
use crate::process::Process;
use crate::{Command, StateDir};

const INIT: &str = include_str!("node/init.sh");

/// How long a program of a node may take to be up; on a quiet machine it is a tenth of this.
const LIMIT: Duration = Duration::from_secs(60);

/// Folders with the small programs that the parts of a node call.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What all nodes of a cluster share.
pub(super) struct NodeNetwork<'a> {
    pub(super) addresses: &'a Addresses,
    pub(super) bridge: &'a str,
    pub(super) nodes: u8,
    pub(super) pause: &'a Path,
}

/// A running node.
#[derive(Debug)]
pub(super) struct Node {
    name: String,
    number: u8,
    address: Ipv4Addr,
    state: StateDir,
    /// Process 1, as seen from here.
    pid: String,
    /// The last to be started comes last; the first, process 1, takes all others with it.
    processes: Vec<Process>,
}

/// The credentials of a node's programs: kubeconfigs and a serving certificate.
pub(super) struct Credentials<'a> {
    pub(super) kubelet: &'a Path,
    pub(super) kube_proxy: &'a Path,
    pub(super) certificate: &'a Path,
    pub(super) key: &'a Path,
}

impl Node {
    /// Makes the namespaces, plugs the node in and starts its container runtime.
    pub(super) async fn boot(number: u8, site: &NodeNetwork<'_>) -> Result<Node, Error> {
        let name = node_name(number);
        let state = StateDir::new(&name)?;
        let init = state.write("init.sh", INIT)?;
        let process = Command::new("unshare")
            .name(format!("{name}-init"))
            .args(["--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--propagation", "private"])
            .args(["--", "/bin/sh"])
            .args([&init, Path::new(&name), site.pause])
            .env("PATH", PATH)
            .start_in(&state)?;
        let line = process.expect_line("node ", LIMIT).await?;
        let pid = line.trim_start_matches("node ").trim().to_owned();
        let address = site.addresses.node(number);
        let mut node = Node { name, number, address, state, pid, processes: vec![process] };
        node.plug_in(site).await?;
        node.start_runtime(site).await?;
        Ok(node)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Writes a file that the programs of the node can read.
    pub(super) fn write(&self, name: &str, contents: &str) -> Result<PathBuf, Error> {
        Ok(self.state.write(name, contents)?)
    }

    /// Connects the node to the bridge, and tells both sides the way to its pods.
    async fn plug_in(&self, site: &NodeNetwork<'_>) -> Result<(), Error> {
        let Node { name, number, address, pid, .. } = self;
        let (bridge, way_out) = (site.bridge, site.addresses.control_plane());
        let outside = format!(
            "ip link add {bridge}{name} type veth peer name eth0 netns {pid}
             ip link set {bridge}{name} master {bridge} up
             ip route replace {pods} via {address}",
            pods = site.addresses.pods(*number)
        );
        shell(&format!("{name}-plug"), outside, &self.state).await?;
        let mut inside = format!(
            "ip link set lo up
             ip addr add {address}/24 dev eth0
             ip link set eth0 up
             ip route add default via {way_out}
             echo 1 >/proc/sys/net/ipv4/ip_forward\n"
        );
        // What no Service has (yet) would be sent back and forth between node and bridge, and connection tracking would
        // remember it as settled. Refuse it, so that clients hear of it and may try again. What a load balancer still sends to a node whose
        // last endpoint has just gone is dropped, as kube-proxy does: the next attempt of the same connection goes to another node.
        let [services, balancers] = [site.addresses.services(), site.addresses.load_balancers()];
        for (range, action) in [(&services, "unreachable"), (&balancers, "blackhole")] {
            for from in ["eth0", "cni0"] {
                inside += &format!("ip rule add iif {from} to {range} {action}\n");
            }
        }
        for other in (0..site.nodes).filter(|other| other != number) {
            let (pods, node) = (site.addresses.pods(other), site.addresses.node(other));
            inside += &format!("ip route add {pods} via {node}\n");
        }
        run(self.inside(&format!("{name}-network"), "/bin/sh").arg("-euc").arg(inside), &self.state).await
    }

    async fn start_runtime(&mut self, site: &NodeNetwork<'_>) -> Result<(), Error> {
        let network = self.state.path().join("cni");
        std::fs::create_dir_all(&network).map_err(|source| Error::File { path: network.clone(), source })?;
        let pods = config::cni(&site.addresses.pods(self.number));
        self.state.write("cni/pods.conflist", pods.to_string())?;
        let text = config::containerd(&parts::folder("cni")?, &network);
        let file = self.state.write("containerd.toml", text)?;
        let command = self.inside(&format!("{}-containerd", self.name), parts::program("containerd")?);
        let process = command.arg("--config").arg(file).start_in(&self.state)?;
        // The socket is in the node's own /run.
        let socket = PathBuf::from(format!("/proc/{}/root{}", self.pid, config::RUNTIME));
        let listening = async {
            while UnixStream::connect(&socket).await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        process.expect("its socket to accept connections", LIMIT, listening).await?;
        self.processes.push(process);
        Ok(())
    }

    /// Makes the images of an archive known to the node.
    pub(super) async fn import(&self, archive: &Path) -> Result<(), Error> {
        let name = archive.file_stem().unwrap_or_default().to_string_lossy();
        let command = self.inside(&format!("{}-import-{name}", self.name), parts::program("ctr")?);
        run(command.args(["--namespace", "k8s.io", "images", "import"]).arg(archive), &self.state).await
    }

    /// Starts what makes it a node of a cluster. Both programs wait for the API server by themselves.
    pub(super) fn join(
        &mut self,
        site: &NodeNetwork<'_>,
        credentials: &Credentials<'_>,
        cgroup: &str,
    ) -> Result<(), Error> {
        let resolv_conf = self.state.write("resolv.conf", "")?;
        let kubelet = config::Kubelet {
            address: self.address,
            dns: site.addresses.dns(),
            cgroup,
            certificate: credentials.certificate,
            key: credentials.key,
            resolv_conf: &resolv_conf,
            volume_plugins: &self.state.path().join("volume-plugins"),
        };
        let file = self.state.write("kubelet.json", kubelet.config().to_string())?;
        let process = self
            .inside(&format!("{}-kubelet", self.name), parts::program("kubelet")?)
            .flag("config", file)
            .flag("kubeconfig", credentials.kubelet)
            .flag("root-dir", "/var/lib/kubelet")
            .flag("hostname-override", &self.name)
            .flag("node-ip", self.address.to_string())
            .start_in(&self.state)?;
        self.processes.push(process);
        let proxy = config::kube_proxy(credentials.kube_proxy, &self.name, &site.addresses.all_pods());
        let file = self.state.write("kube-proxy.json", proxy.to_string())?;
        let command = self.inside(&format!("{}-kube-proxy", self.name), parts::program("kube-proxy")?);
        self.processes.push(command.flag("config", file).start_in(&self.state)?);
        Ok(())
    }

    /// Ends it at once, as when a machine loses its power.
    pub(super) async fn kill(&self) -> Result<(), Error> {
        for process in &self.processes {
            process.kill().await?;
        }
        Ok(())
    }

    /// A program inside the node.
    fn inside(&self, name: &str, program: impl AsRef<Path>) -> Command {
        Command::new("nsenter")
            .name(name)
            .args(["--target", &self.pid, "--net", "--mount", "--uts", "--pid", "--"])
            .arg(program.as_ref())
            .env("PATH", PATH)
    }
}
