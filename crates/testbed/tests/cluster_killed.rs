//! A cluster of one node, and what is left of it when the process that started it is killed: nothing that lasts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "cluster/objects.rs"]
mod objects;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use testbed::cluster::{self, Cluster, Nodes};
use testbed::image::ready;
use testbed::{Command, StateDir, eventually};

use objects::{PROBED, pod};

const LIMIT: Duration = Duration::from_secs(120);

/// Set for the process that is to be killed.
const VICTIM: &str = "SESAME_TEST_VICTIM";

/// Says that the victim's cluster runs.
const RUNNING: &str = "the cluster of the victim runs";

async fn cluster_with_a_pod() -> Cluster {
    let cluster = Cluster::config().nodes(Nodes::One).image(ready::tools().unwrap()).start().await.unwrap();
    let namespace = cluster.namespace("alone").await.unwrap();
    cluster.apply_yaml(&pod(&namespace, "web", "touch /tmp/up; sleep 600", "", PROBED)).await.unwrap();
    cluster.pod_ready(&namespace, "web").await.unwrap();
    cluster
}

/// What a cluster might leave behind, as far as a process can see it from here.
#[derive(Debug, PartialEq)]
struct Traces {
    processes: BTreeSet<String>,
    networks: BTreeSet<String>,
    mounts: String,
    links: String,
    settings: Vec<String>,
}

impl Traces {
    fn now() -> Traces {
        let (mut processes, mut networks) = (BTreeSet::new(), BTreeSet::new());
        for process in std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()) {
            let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
            let network = std::fs::read_link(process.join("ns/net")).map(|link| link.display().to_string());
            // A process that is just going has neither.
            if let (false, Ok(network)) = (name.is_empty(), network) {
                processes.insert(name);
                networks.insert(network);
            }
        }
        let settings = ["vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"];
        Traces {
            processes,
            networks,
            mounts: std::fs::read_to_string("/proc/self/mounts").unwrap(),
            links: std::fs::read_to_string("/proc/net/dev")
                .unwrap()
                .lines()
                .map(|l| l[..7.min(l.len())].to_owned())
                .collect(),
            settings: settings.map(|name| std::fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap()).into(),
        }
    }
}

/// The control groups of clusters, those of other processes included.
fn groups() -> BTreeSet<String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let tops = mounts.lines().filter(|line| line.starts_with("cgroup")).filter_map(|line| line.split(' ').nth(1));
    let below = tops.flat_map(|top| std::fs::read_dir(top).unwrap().flatten());
    below.map(|entry| entry.path().display().to_string()).filter(|path| path.contains("sesame-components-")).collect()
}

#[tokio::test]
async fn nothing_is_left_of_a_cluster_whose_process_was_killed() {
    if !cluster::available() || std::env::var_os("SESAME_KUBECONFIG").is_some() {
        return;
    }
    if std::env::var_os(VICTIM).is_some() {
        let _cluster = cluster_with_a_pod().await;
        println!("{RUNNING}");
        return std::future::pending().await;
    }

    let (traces, others) = (Traces::now(), groups());
    let state = StateDir::new("victim").unwrap();
    let sandbox = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/sandbox");
    let victim = Command::new(sandbox)
        .name("victim")
        .arg("--")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "nothing_is_left_of_a_cluster_whose_process_was_killed", "--nocapture"])
        .env(VICTIM, "1")
        // Empty is as good as not set: it gets a sandbox of its own.
        .env("SESAME_SANDBOX", "")
        .start_in(&state)
        .unwrap();
    victim.expect_line(RUNNING, LIMIT).await.unwrap();
    assert!(Traces::now().processes.contains("kubelet\n"), "the victim's processes are seen from here");
    let groups_of_victim: Vec<String> = groups().difference(&others).cloned().collect();
    assert!(!groups_of_victim.is_empty());

    // The test process, and with it the sandbox: nobody is left to clean up.
    victim.kill().await.unwrap();
    let same = async || match Traces::now() {
        now if now == traces => Ok(()),
        now => Err(format!("{now:?} instead of {traces:?}")),
    };
    eventually("every trace but control groups to be gone", LIMIT, same).await.unwrap();

    // The next cluster removes the groups, and works; when it stops there is nothing more.
    let cluster = cluster_with_a_pod().await;
    assert!(groups_of_victim.iter().all(|group| !Path::new(group).exists()), "{groups_of_victim:?}");
    cluster.stop().await.unwrap();
    eventually("every trace to be gone", LIMIT, same).await.unwrap();
    let own = std::env::var("SESAME_SANDBOX").unwrap();
    let own = Path::new(&own).file_name().unwrap().to_str().unwrap();
    assert!(!groups().iter().any(|group| group.contains(own)));
}
