//! What the programs of a node are told.
//!
//! In: the node's place in the cluster. Out: the text of each configuration file. Pure, so that all settings can be
//! read and compared in one place.

use std::net::Ipv4Addr;
use std::path::Path;

use serde_json::{Value, json};

use crate::image::ready::PAUSE;

/// Where the container runtime listens, inside the node.
pub(super) const RUNTIME: &str = "/run/containerd/containerd.sock";

/// containerd: its own sandbox image, and nothing that this kernel or user may refuse. A process that may not lower its
/// OOM score must not try, or no pod ever starts.
pub(super) fn containerd(cni_programs: &Path, cni_config: &Path) -> String {
    format!(
        r#"version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = {:?}
  conf_dir = {:?}
"#,
        cni_programs.display().to_string(),
        cni_config.display().to_string(),
    )
}

/// The network of pods: a bridge on each node, and host ports.
pub(super) fn cni(pods: &str) -> Value {
    let bridge = json!({
        "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
        "ipam": {
            "type": "host-local", "dataDir": "/run/ipam",
            "ranges": [[{ "subnet": pods }]], "routes": [{ "dst": "0.0.0.0/0" }],
        },
    });
    let portmap = json!({ "type": "portmap", "capabilities": { "portMappings": true } });
    json!({ "cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, portmap] })
}

/// What a kubelet is told.
pub(super) struct Kubelet<'a> {
    pub(super) address: Ipv4Addr,
    pub(super) dns: Ipv4Addr,
    pub(super) cgroup: &'a str,
    pub(super) certificate: &'a Path,
    pub(super) key: &'a Path,
    pub(super) resolv_conf: &'a Path,
    pub(super) volume_plugins: &'a Path,
}

impl Kubelet<'_> {
    pub(super) fn config(&self) -> Value {
        json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.address,
            // Only the components reaches it.
            "authentication": { "anonymous": { "enabled": true }, "webhook": { "enabled": false } },
            "authorization": { "mode": "AlwaysAllow" },
            "tlsCertFile": self.certificate,
            "tlsPrivateKeyFile": self.key,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self.cgroup,
            "failCgroupV1": false,
            "containerRuntimeEndpoint": format!("unix://{RUNTIME}"),
            "clusterDNS": [self.dns],
            "clusterDomain": "cluster.local",
            "resolvConf": self.resolv_conf,
            "volumePluginDir": self.volume_plugins,
            // Secrets and ConfigMaps in volumes change this soon after the objects; the default is a minute.
            "syncFrequency": "2s",
            "serializeImagePulls": false,
            "kubeAPIQPS": 200,
            "kubeAPIBurst": 400,
            "eventRecordQPS": 0,
            "imageGCHighThresholdPercent": 100,
            "evictionHard": { "memory.available": "20Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
            "failSwapOn": false,
            "makeIPTablesUtilChains": false,
            "healthzPort": 0,
            "oomScoreAdj": 0,
        })
    }
}

/// What kube-proxy is told. It leaves the kernel-wide limits of connection tracking alone.
pub(super) fn kube_proxy(kubeconfig: &Path, name: &str, all_pods: &str) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": { "kubeconfig": kubeconfig },
        "clusterCIDR": all_pods,
        "hostnameOverride": name,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "oomScoreAdj": 0,
        "nftables": { "minSyncPeriod": "0s" },
        "conntrack": { "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s" },
    })
}
