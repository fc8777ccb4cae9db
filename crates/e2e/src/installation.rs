//! Sesame as its manifests install it, on a cluster of two nodes, and a backend behind it.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::{Value, json};
use testbed::apiserver::AuditEntry;
use testbed::cluster::Nodes;
use testbed::image::ready;
use testbed::{Client, Cluster, eventually};

use crate::stream;

/// The namespace of the manifests.
pub const NAMESPACE: &str = "projectsesame";
/// How long anything may take on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(180);
/// How long it may take from applying the manifests to the first request that is served, where nothing else runs.
const FIRST_REQUEST: Duration = Duration::from_secs(30);
/// The host that requests are for.
pub const HOST: &str = "web.example.com";
/// The image of the previous version.
pub const PREVIOUS: &str = "ghcr.io/projectsesame/sesame:previous";
/// The port of an Envoy's statistics.
const STATS: u16 = 8002;
/// How long a step of a rotation takes: longer than a kubelet of the cluster takes to refresh a Secret.
const SETTLE: &str = "15s";

/// A cluster that has our images, and Sesame once it is installed.
#[derive(Debug)]
pub struct Installation {
    /// The cluster.
    pub cluster: Cluster,
    /// The namespace of the backend.
    pub apps: String,
    /// The program.
    pub sesame: PathBuf,
    /// The folder with the program and the manifests of the previous version, if there is one.
    pub previous: Option<PathBuf>,
    /// How long it may take from applying the manifests to the first request that is served.
    pub first_request: Duration,
    /// How many of Sesame's requests the audit log had when it was last looked at.
    audited: AtomicUsize,
}

impl Installation {
    /// A cluster with images and a backend, without Sesame.
    pub async fn start(binary: &Path, previous: Option<PathBuf>, progress: fn(&str)) -> Result<Installation> {
        let sesame =
            ready::sesame(binary)?.also_named(concat!("ghcr.io/projectsesame/sesame:v", env!("CARGO_PKG_VERSION")));
        let config = Cluster::config().nodes(Nodes::Two).audit().progress(progress).image(sesame);
        let mut config = config.image(ready::echo(binary)?).image(ready::envoy()?);
        if let Some(folder) = &previous {
            config = config.image(ready::sesame(folder.join("sesame"))?.renamed(PREVIOUS));
        }
        let cluster = config.start().await.context("starting a Kubernetes of two nodes")?;
        let apps = cluster.namespace("shop").await?;
        cluster.apply_yaml(&backend(&apps)).await?;
        cluster.daemon_set_available(&apps, "web").await?;
        let (sesame, first_request, audited) = (binary.to_owned(), FIRST_REQUEST, AtomicUsize::new(0));
        Ok(Installation { cluster, apps, sesame, previous, first_request, audited })
    }

    /// Fails if the API server has refused a request of Sesame's service accounts since this, or [`Self::skip_refused`], was last called.
    pub fn nothing_refused(&self) -> Result<()> {
        let refused = self.newly_refused()?;
        ensure!(refused.is_empty(), "the API server refused {} requests of Sesame: {refused:#?}", refused.len());
        Ok(())
    }

    /// Does not look at what was refused so far: an API server that starts refuses requests before it knows the roles, and controllers of
    /// another version have no right to what only theirs reads.
    pub fn skip_refused(&self) -> Result<()> {
        self.newly_refused().map(drop)
    }

    /// A cluster that the user named has no audit log here.
    fn newly_refused(&self) -> Result<Vec<AuditEntry>> {
        let Ok(api) = self.cluster.api() else { return Ok(Vec::new()) };
        let ours: Vec<AuditEntry> = api.audit()?.into_iter().filter(is_sesames).collect();
        ensure!(!ours.is_empty(), "the audit log of the API server has no request of Sesame");
        let before = self.audited.swap(ours.len(), Ordering::Relaxed);
        Ok(refused_after(ours, before))
    }

    /// Applies the CRDs, client-side as people do who know no other way, and what needs them.
    pub async fn install_crds(&self) -> Result<()> {
        let folder = deploy().join("crds");
        let folder = folder.to_str().context("the path of the CRDs is text")?;
        self.kubectl(&["apply", "--filename", folder]).await?;
        self.kubectl(&["wait", "--for=condition=Established", "--filename", folder, "--timeout=60s"]).await?;
        for object in stream::objects(&self.apps) {
            self.cluster.apply_yaml(&object.to_string()).await?;
        }
        Ok(())
    }

    /// Applies a form of the manifests and waits until a request is served.
    pub async fn install(&self, form: &str) -> Result<SocketAddr> {
        self.cluster.apply_yaml(&manifest(form)?).await?;
        self.cluster.apply_yaml(&ingress(&self.apps, "web")).await?;
        let at = self.address(NAMESPACE).await?;
        served(at, HOST).await?;
        Ok(at)
    }

    /// Where requests go.
    pub async fn address(&self, namespace: &str) -> Result<SocketAddr> {
        Ok(SocketAddr::new(self.cluster.load_balancer_address(namespace, "envoy").await?, 80))
    }

    /// The pods with a label, by name.
    pub async fn pods(&self, namespace: &str, app: &str) -> Result<BTreeMap<String, Pod>> {
        let pods = Api::<Pod>::namespaced(self.cluster.client()?, namespace);
        let list = pods.list(&ListParams::default().labels(&format!("app={app}"))).await?;
        Ok(list.into_iter().map(|pod| (pod.metadata.name.clone().unwrap_or_default(), pod)).collect())
    }

    /// The pod that holds the lease.
    pub async fn leader(&self) -> Result<String> {
        let lease = Api::<Lease>::namespaced(self.cluster.client()?, NAMESPACE).get("leader-elect").await?;
        let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
        let pod = holder.rsplit_once('_').map(|(pod, _)| pod.to_owned());
        pod.filter(|pod| !pod.is_empty()).with_context(|| format!("the lease is held by {holder:?}"))
    }

    /// Rolls a workload out anew, as `kubectl rollout restart` does.
    pub async fn restart(&self, plural: &str, name: &str) -> Result<()> {
        let at = format!("{:?}", std::time::SystemTime::now());
        let annotations = json!({ "kubectl.kubernetes.io/restartedAt": at });
        self.patch(plural, name, json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } }))
            .await
    }

    /// Changes a workload.
    pub async fn patch(&self, plural: &str, name: &str, patch: Value) -> Result<()> {
        let client = self.cluster.client()?;
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let patched = match plural {
            "daemonsets" => {
                Api::<DaemonSet>::namespaced(client, NAMESPACE).patch(name, &params, &patch).await.map(drop)
            }
            _ => Api::<Deployment>::namespaced(client, NAMESPACE).patch(name, &params, &patch).await.map(drop),
        };
        patched.with_context(|| format!("changing {plural} {name}"))
    }

    /// Runs kubectl; gives what it prints.
    pub async fn kubectl(&self, words: &[&str]) -> Result<String> {
        self.run(parts::program("kubectl")?, words).await
    }

    /// Runs a program with the kubeconfig of the cluster.
    pub async fn run(&self, program: PathBuf, words: &[&str]) -> Result<String> {
        let home = tempfile::tempdir()?;
        let mut command = tokio::process::Command::new(&program);
        command.args(words).env("KUBECONFIG", self.cluster.kubeconfig()).kill_on_drop(true);
        for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(name, home.path());
        }
        let output = command.output().await.with_context(|| program.display().to_string())?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} {}: {stderr}", program.display(), words.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a script of the shell with the kubeconfig of the cluster, and these folders before all others in the search path.
    pub async fn shell(&self, script: &str, folders: &[&Path]) -> Result<()> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        // A script may change its folder.
        let folders = folders.iter().map(std::path::absolute).collect::<Result<Vec<_>, _>>()?;
        let path = std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&path)))?;
        let mut command = tokio::process::Command::new("bash");
        command.arg("-c").arg(script).env("PATH", path);
        command.env("KUBECONFIG", self.cluster.kubeconfig()).kill_on_drop(true);
        let output = command.output().await.context("running bash")?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{script}: {stderr}");
        Ok(())
    }

    /// The sum of a metric of all controllers, over labels that contain `label`.
    pub async fn metric(&self, name: &str, label: &str) -> Result<f64> {
        let mut sum = 0.0;
        for pod in self.pods(NAMESPACE, "sesame").await?.values() {
            sum += metric_of(pod, name, |line| line.contains(label)).await?;
        }
        Ok(sum)
    }

    /// What each Envoy counts of requests that reached no backend, as far as it is not zero.
    pub async fn upstream_failures(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for (name, pod) in self.pods(NAMESPACE, "envoy").await? {
            let at = SocketAddr::new(pod_address(&pod)?, STATS);
            let page = Client::new(at).get("/stats").await.map_err(|failure| anyhow!("{name}: {failure}"))?;
            let text = String::from_utf8_lossy(&page.body).into_owned();
            let counts = text.lines().filter(|line| counts_upstream_failures(line));
            found.extend(counts.map(|line| format!("{name}: {line}")));
        }
        Ok(found)
    }

    /// Kills the processes of all controllers on all nodes, without the API server.
    pub fn kill_controllers(&self) -> Result<usize> {
        kill(|words| words.len() > 2 && words[0].ends_with(b"sesame") && words[1] == b"serve")
    }

    /// Kills all Envoys. Kubelets start them again, in the same pods.
    pub fn kill_envoys(&self) -> Result<usize> {
        kill(|words| words.len() > 2 && words[0].ends_with(b"envoy"))
    }

    /// Does something in the network of one of the backend's pods, as that pod would.
    pub async fn from_pod<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let is_backend =
            |words: &[&[u8]]| words.len() > 2 && words.contains(&&b"echo"[..]) && words.contains(&&b"--http"[..]);
        let pid = *processes(is_backend)?.first().context("no pod of the backend runs here")?;
        let network = fs::File::open(format!("/proc/{}/ns/net", pid.as_raw_nonzero()))?;
        // A thread of its own, because it stays in that network until it ends.
        let thread = std::thread::spawn(move || {
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
            tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
        });
        let joined = tokio::task::spawn_blocking(move || thread.join()).await?;
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Ends the cluster.
    pub async fn stop(self) -> Result<()> {
        Ok(self.cluster.stop().await?)
    }
}

/// Whether a service account of the manifests asked.
fn is_sesames(entry: &AuditEntry) -> bool {
    let account = entry.user.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
    account.is_some_and(|(namespace, _)| namespace == NAMESPACE)
}

/// Those that were refused, but for so many at the beginning. A log that has fewer was begun anew, because it had become too large.
fn refused_after(log: Vec<AuditEntry>, before: usize) -> Vec<AuditEntry> {
    let before = if before <= log.len() { before } else { 0 };
    log.into_iter().skip(before).filter(|entry| !entry.allowed).collect()
}

/// The processes with such a command line. They are in the process namespace of this program, and nobody else's are.
fn processes(is_wanted: impl Fn(&[&[u8]]) -> bool) -> Result<Vec<Pid>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()).and_then(Pid::from_raw) else {
            continue;
        };
        let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        if is_wanted(&line.split(|byte| *byte == 0).collect::<Vec<_>>()) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Kills the processes with such a command line.
fn kill(is_wanted: impl Fn(&[&[u8]]) -> bool) -> Result<usize> {
    let processes = processes(is_wanted)?;
    for pid in &processes {
        kill_process(*pid, Signal::KILL)?;
    }
    Ok(processes.len())
}

/// Whether a line of Envoy's statistics counts connections or requests that reached no backend, and there were any.
fn counts_upstream_failures(line: &str) -> bool {
    let wanted = [".upstream_cx_connect_timeout", ".upstream_cx_connect_fail", ".upstream_rq_pending_overflow"];
    line.split_once(": ").is_some_and(|(name, count)| wanted.iter().any(|end| name.ends_with(end)) && count != "0")
}

/// The sum of a metric of one controller, over those of its lines that count.
pub async fn metric_of(pod: &Pod, name: &str, counts: impl Fn(&str) -> bool) -> Result<f64> {
    let at = SocketAddr::new(pod_address(pod)?, 8000);
    let page = Client::new(at).get("/metrics").await.map_err(|it| anyhow!("{it}"))?;
    let text = String::from_utf8_lossy(&page.body).into_owned();
    Ok(sum(&text, name, counts))
}

/// The sum of a metric in a page of metrics, over those of its lines that count.
fn sum(page: &str, name: &str, counts: impl Fn(&str) -> bool) -> f64 {
    let lines = page.lines().filter(|line| line.starts_with(name) && counts(line));
    lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
}

/// The address of a pod.
pub fn pod_address(pod: &Pod) -> Result<IpAddr> {
    let ip = pod.status.as_ref().and_then(|status| status.pod_ip.as_ref()).context("a pod without address")?;
    Ok(ip.parse()?)
}

/// Waits until a host is served, twenty times in a row: the load balancer may still learn of proxies.
pub async fn served(at: SocketAddr, host: &str) -> Result<()> {
    let look = async || {
        for _ in 0..20 {
            match Client::new(at).host(host).get("/").await {
                Ok(answer) if answer.status == 200 => {}
                Ok(answer) => return Err(answer.status.to_string()),
                Err(failure) => return Err(failure.to_string()),
            }
        }
        Ok(())
    };
    Ok(eventually(format!("{host} to be served"), LIMIT, look).await?)
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// The chart.
pub fn chart() -> PathBuf {
    deploy().join("chart")
}

/// The kustomize base.
pub fn kustomize_base() -> PathBuf {
    deploy().join("kustomize")
}

/// A form of the manifests. A rotation is quicker than it is shipped: the kubelets here refresh Secrets every ten seconds.
pub fn manifest(form: &str) -> Result<String> {
    manifest_of(&deploy(), form)
}

/// The same of the manifests in a folder.
pub fn manifest_of(folder: &Path, form: &str) -> Result<String> {
    let path = folder.join(form);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let flag = "        - --xds-certificates-dir=/certs\n";
    Ok(text.replace(flag, &format!("{flag}        - --xds-certificate-settle-time={SETTLE}\n")))
}

/// The CRDs of this version.
pub fn crds() -> Result<String> {
    crds_of(&deploy())
}

/// Those beside the manifests in a folder.
pub fn crds_of(folder: &Path) -> Result<String> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder.join("crds"))?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.sort();
    let texts = files.iter().map(|file| fs::read_to_string(file).map(|text| format!("---\n{text}\n")));
    Ok(texts.collect::<Result<String, _>>()?)
}

/// An Ingress for `NAME.example.com`.
pub fn ingress(namespace: &str, name: &str) -> String {
    ingress_of(namespace, name, "")
}

/// The same of a class.
pub fn ingress_of(namespace: &str, name: &str, class: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!("  ingressClassName: {class}\n") };
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: {name}, namespace: {namespace}, \
         annotations: {{projectcontour.io/websocket-routes: /}}}}\n\
         spec:\n{class}  rules:\n  - host: {name}.example.com\n    http: {{paths: [{{path: /, pathType: Prefix, backend: \
         {{service: {{name: web, port: {{number: 80}}}}}}}}]}}\n"
    )
}

/// The backend. Its readiness probe tolerates a busy machine: with the defaults of Kubernetes, three probes that take longer than a second
/// make a pod unready, and requests are answered with 503 while both are.
fn backend(namespace: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: web, namespace: {namespace}}}\n\
         spec: {{selector: {{app: web}}, ports: [{{name: http, port: 80, targetPort: 8080}}, \
         {{name: tls, port: 8443}}, {{name: tcp, port: 9000}}]}}\n---\n\
         apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: web, namespace: {namespace}}}\nspec:\n  \
         selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      \
         containers: [{{name: echo, image: '{}', args: ['--http', '0.0.0.0:8080', '--tls', '0.0.0.0:8443', \
         '--tcp', '0.0.0.0:9000'], resources: {{requests: {{cpu: 100m}}}}, readinessProbe: {{httpGet: {{path: /, port: \
         8080}}, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 20}}, \
         lifecycle: {{preStop: {{sleep: {{seconds: 5}}}}}}}}]\n",
        ready::ECHO
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_summed_over_the_lines_that_count() {
        let page = "# TYPE bytes counter\nbytes_total{type=\"cds\"} 5\nbytes_total{type=\"rtds\"} 3\nbytes_total{type=\"lds\"} 1\n";
        assert_eq!(sum(page, "bytes_total", |_| true), 9.0);
        assert_eq!(sum(page, "bytes_total", |line| !line.contains("\"rtds\"")), 6.0);
    }

    #[test]
    fn what_sesame_was_refused_since_the_last_look_is_found() {
        let entry = |user: &str, name: &str, allowed: bool| AuditEntry {
            user: user.to_owned(),
            verb: "get".to_owned(),
            group: String::new(),
            resource: "secrets".to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            allowed,
            created: false,
        };
        let controller = "system:serviceaccount:projectsesame:sesame";
        assert!(is_sesames(&entry(controller, "a", true)));
        for other in ["system:serviceaccount:projectsesame-2:sesame", "system:serviceaccount:shop:web", "admin"] {
            assert!(!is_sesames(&entry(other, "a", true)), "{other}");
        }
        let log = || vec![entry(controller, "a", false), entry(controller, "b", true), entry(controller, "c", false)];
        let refused = |before| refused_after(log(), before).into_iter().map(|entry| entry.name).collect::<Vec<_>>();
        assert_eq!((refused(0), refused(1)), (vec!["a".to_owned(), "c".to_owned()], vec!["c".to_owned()]));
        assert!(refused(3).is_empty());
        assert_eq!(refused(4).len(), 2, "the log was begun anew");
    }

    #[test]
    fn counts_of_requests_that_reached_no_backend_are_shown_where_there_were_any() {
        assert!(counts_upstream_failures("cluster.shop_web_80.upstream_cx_connect_timeout: 3"));
        assert!(counts_upstream_failures("cluster.shop_web_80.upstream_rq_pending_overflow: 10"));
        assert!(!counts_upstream_failures("cluster.shop_web_80.upstream_cx_connect_fail: 0"));
        assert!(!counts_upstream_failures("cluster.shop_web_80.upstream_cx_total: 3"));
        assert!(!counts_upstream_failures(""));
    }
}
