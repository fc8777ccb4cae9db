//! What a cluster of two nodes does, shown on one that all tests of this file share.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "cluster/objects.rs"]
mod objects;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures::{AsyncBufReadExt, Stream, TryStreamExt};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Api;
use kube::api::{DeleteParams, ListParams, LogParams};
use testbed::cluster::{self, Cluster, Nodes};
use testbed::image::ready;
use testbed::{Image, eventually, within};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;

use objects::{PROBED, pod};

const LIMIT: Duration = Duration::from_secs(60);

/// The cluster of this file.
async fn shared() -> &'static Cluster {
    static SHARED: OnceCell<Cluster> = OnceCell::const_new();
    let start = async || Cluster::config().nodes(Nodes::Two).image(ready::tools().unwrap()).start().await;
    SHARED.get_or_try_init(start).await.unwrap()
}

/// The lines that a pod writes, from its start on.
async fn follow(cluster: &Cluster, namespace: &str, pod: &str) -> impl Stream<Item = std::io::Result<String>> + use<> {
    let pods = Api::<Pod>::namespaced(cluster.client().unwrap(), namespace);
    let follow = LogParams { follow: true, ..LogParams::default() };
    pods.log_stream(pod, &follow).await.unwrap().lines()
}

/// The lines of a stream until `last` is among them.
async fn until_line(lines: &mut (impl Stream<Item = std::io::Result<String>> + Unpin), last: &str) -> Vec<String> {
    let mut seen = Vec::new();
    let reading = async {
        while let Some(line) = lines.try_next().await.unwrap() {
            let is_last = line == last;
            seen.push(line);
            if is_last {
                return;
            }
        }
    };
    within(format!("a pod to say {last:?}"), LIMIT, reading).await.unwrap();
    seen
}

#[tokio::test]
async fn a_pod_with_probes_becomes_ready_on_either_node() {
    if !cluster::available() {
        return;
    }
    let cluster = shared().await;
    let namespace = cluster.namespace("probes").await.unwrap();
    for node in ["n1", "n2"] {
        let script = "echo up; touch /tmp/up; sleep 600";
        let yaml = pod(&namespace, node, script, &format!("nodeName: {node}"), PROBED);
        cluster.apply_yaml(&yaml).await.unwrap();
    }
    for node in ["n1", "n2"] {
        let pod = cluster.pod_ready(&namespace, node).await.unwrap();
        assert_eq!(pod.spec.unwrap().node_name.unwrap(), node);
        assert_eq!(cluster.logs(&namespace, node).await.unwrap(), "up\n");
        let output = cluster.exec(&namespace, node, &["sh", "-c", "hostname; echo oh >&2; exit 7"]).await.unwrap();
        assert_eq!((output.code, output.stdout, output.stderr), (Some(7), format!("{node}\n"), "oh\n".into()));
    }
}

#[tokio::test]
async fn a_pod_that_crashes_is_restarted() {
    if !cluster::available() {
        return;
    }
    let cluster = shared().await;
    let namespace = cluster.namespace("crash").await.unwrap();
    let script = "[ -e /seen/it ] && sleep 600; touch /seen/it; exit 3";
    let (volumes, mounts) =
        ("volumes: [{ name: seen, emptyDir: {} }]", "volumeMounts: [{ name: seen, mountPath: /seen }]");
    cluster.apply_yaml(&pod(&namespace, "web", script, volumes, mounts)).await.unwrap();
    let restarted = |pod: Option<Pod>| {
        let status = pod.and_then(|pod| pod.status?.container_statuses?.pop()).ok_or("no status")?;
        let ended = status.last_state.clone().and_then(|state| state.terminated).ok_or("it did not end")?;
        let runs = status.state.clone().is_some_and(|state| state.running.is_some());
        if runs { Ok((status.restart_count, ended.exit_code)) } else { Err(format!("{status:?}")) }
    };
    let (restarts, code) = cluster.until(&namespace, "web", "to run again", restarted).await.unwrap();
    assert_eq!((restarts, code), (1, 3));
}

#[tokio::test]
async fn a_pod_gets_its_hook_then_its_signal_then_its_grace() {
    if !cluster::available() {
        return;
    }
    let cluster = shared().await;
    let namespace = cluster.namespace("grace").await.unwrap();
    let script = "trap 'echo told to end' TERM; echo up; while :; do sleep 0.1; done";
    let hook = r#"lifecycle: { preStop: { exec: { command: [sh, -c, "echo hook >/proc/1/fd/1; sleep 1"] } } }"#;
    let yaml = pod(&namespace, "web", script, "", hook);
    let yaml = yaml.replace("terminationGracePeriodSeconds: 0", "terminationGracePeriodSeconds: 3");
    cluster.apply_yaml(&yaml).await.unwrap();
    cluster.pod_ready(&namespace, "web").await.unwrap();
    let mut lines = follow(cluster, &namespace, "web").await;
    assert_eq!(until_line(&mut lines, "up").await, ["up"]);
    let asked = Instant::now();
    let pods = Api::<Pod>::namespaced(cluster.client().unwrap(), &namespace);
    pods.delete("web", &DeleteParams::default()).await.unwrap();
    let rest: Vec<String> = within("its end", LIMIT, lines.try_collect()).await.unwrap().unwrap();
    assert_eq!(rest, ["hook", "told to end"]);
    let took = asked.elapsed();
    assert!(took >= Duration::from_secs(3), "it was killed after {took:?}, before its grace was over");
    cluster.gone::<Pod>(&namespace, "web").await.unwrap();
}

#[tokio::test]
async fn an_image_of_the_test_runs_on_every_node_as_it_says() {
    if !cluster::available() {
        return;
    }
    let cluster = shared().await;
    let namespace = cluster.namespace("image").await.unwrap();
    let image = Image::new("example.test/greeter:1").program("/bin/sh", "/bin/sh").unwrap();
    let image =
        image.file("/etc/greeting", "read x </etc/greeting.txt; echo $x $COLOUR; exec /bin/sleep 600\n").unwrap();
    let image = image.file("/etc/greeting.txt", "hello\n").unwrap().program("/bin/sleep", "/bin/sleep").unwrap();
    let image = image.entrypoint(["/bin/sh", "/etc/greeting"]).user("1234:1234").env("COLOUR", "blue");
    cluster.load_image(image).await.unwrap();
    for node in ["n1", "n2"] {
        let must = "securityContext: { runAsNonRoot: true }";
        let spec =
            format!("{{ nodeName: {node}, {must}, containers: [{{ name: main, image: 'example.test/greeter:1' }}] }}");
        let yaml = format!(
            "{{ apiVersion: v1, kind: Pod, metadata: {{ name: {node}, namespace: {namespace} }}, spec: {spec} }}"
        );
        cluster.apply_yaml(&yaml).await.unwrap();
    }
    for node in ["n1", "n2"] {
        cluster.pod_ready(&namespace, node).await.unwrap();
        let mut lines = follow(cluster, &namespace, node).await;
        assert_eq!(until_line(&mut lines, "hello blue").await, ["hello blue"]);
    }
}

#[tokio::test]
async fn a_daemon_set_has_a_pod_on_every_node() {
    if !cluster::available() {
        return;
    }
    let cluster = shared().await;
    let namespace = cluster.namespace("daemons").await.unwrap();
    let container = format!("{{ name: main, image: '{}', command: [sleep, '600'] }}", ready::TOOLS);
    let daemon_set = format!(
        "apiVersion: apps/v1
kind: DaemonSet
metadata: {{ name: agent, namespace: {namespace} }}
spec:
  selector: {{ matchLabels: {{ app: agent }} }}
  template:
    metadata: {{ labels: {{ app: agent }} }}
    spec: {{ terminationGracePeriodSeconds: 0, containers: [{container}] }}
"
    );
    cluster.apply_yaml(&daemon_set).await.unwrap();
    cluster.daemon_set_available(&namespace, "agent").await.unwrap();
    let pods = Api::<Pod>::namespaced(cluster.client().unwrap(), &namespace);
    let pods = pods.list(&ListParams::default()).await.unwrap();
    let nodes: Vec<String> = pods.into_iter().map(|pod| pod.spec.unwrap().node_name.unwrap()).collect();
    assert_eq!(nodes.len(), 2);
    assert_eq!(nodes.into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(["n1".to_owned(), "n2".to_owned()]));
}

#[tokio::test]
async fn a_secret_in_a_volume_is_updated() {
    if !cluster::available() {
        return;
    }
    let cluster = shared().await;
    let namespace = cluster.namespace("secrets").await.unwrap();
    let secret = |value: &str| {
        let metadata = format!("{{ name: key, namespace: {namespace} }}");
        format!("{{ apiVersion: v1, kind: Secret, metadata: {metadata}, stringData: {{ key: {value} }} }}")
    };
    cluster.apply_yaml(&secret("old")).await.unwrap();
    let script =
        "cat /keys/key; echo; while [ $(cat /keys/key) = old ]; do sleep 0.1; done; cat /keys/key; echo; sleep 600";
    let volumes = "volumes: [{ name: keys, secret: { secretName: key } }]";
    let mounts = "volumeMounts: [{ name: keys, mountPath: /keys }]";
    cluster.apply_yaml(&pod(&namespace, "web", script, volumes, mounts)).await.unwrap();
    cluster.pod_ready(&namespace, "web").await.unwrap();
    cluster.apply_yaml(&secret("new")).await.unwrap();
    let mut lines = follow(cluster, &namespace, "web").await;
    assert_eq!(until_line(&mut lines, "new").await, ["old", "new"]);
}

#[tokio::test]
async fn a_load_balancer_address_answers() {
    if !cluster::available() {
        return;
    }
    let cluster = shared().await;
    for (name, policy) in [("all", "Cluster"), ("local", "Local")] {
        // The DNS server says `OK` to those who ask for its health.
        let service = format!(
            "apiVersion: v1
kind: Service
metadata: {{ name: {name}, namespace: kube-system }}
spec:
  type: LoadBalancer
  externalTrafficPolicy: {policy}
  selector: {{ app: coredns }}
  ports: [{{ port: 80, targetPort: 8181 }}]
"
        );
        cluster.apply_yaml(&service).await.unwrap();
        let address = cluster.load_balancer_address("kube-system", name).await.unwrap();
        let ask = async || {
            let stream = TcpStream::connect((address, 80)).await.map_err(|error| error.to_string())?;
            testbed::http::ask(stream, http::Method::GET, name, "/ready").await.map_err(|error| error.to_string())
        };
        // Nodes hear of a new Service a moment after the load balancer does.
        let answer = eventually(format!("{address} to answer"), LIMIT, ask).await.unwrap();
        assert_eq!(answer.body, "OK", "{policy}");
    }
    let services = Api::<Service>::namespaced(cluster.client().unwrap(), "kube-system");
    services.delete("all", &DeleteParams::default()).await.unwrap();
    services.delete("local", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn a_pod_finds_a_service_by_name() {
    if !cluster::available() {
        return;
    }
    let cluster = shared().await;
    let namespace = cluster.namespace("names").await.unwrap();
    cluster.apply_yaml(&pod(&namespace, "web", "sleep 600", "", "")).await.unwrap();
    cluster.pod_ready(&namespace, "web").await.unwrap();
    for name in ["kube-dns.kube-system.svc.cluster.local", "kube-dns.kube-system"] {
        let output = cluster.exec(&namespace, "web", &["getent", "ahostsv4", name]).await.unwrap();
        let services = Api::<Service>::namespaced(cluster.client().unwrap(), "kube-system");
        let address = services.get("kube-dns").await.unwrap().spec.unwrap().cluster_ip.unwrap();
        assert_eq!(output.stdout.split_whitespace().next(), Some(&*address), "{name}: {output:?}");
    }
}

#[tokio::test]
async fn a_service_account_may_do_what_its_roles_say_and_no_more() {
    if !cluster::available() {
        return;
    }
    let cluster = shared().await;
    let namespace = cluster.namespace("rights").await.unwrap();
    let reader = format!(
        "{{ apiVersion: v1, kind: ServiceAccount, metadata: {{ name: reader, namespace: {namespace} }} }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{ name: reader, namespace: {namespace} }}
rules: [{{ apiGroups: [''], resources: [configmaps], verbs: [list] }}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{ name: reader, namespace: {namespace} }}
roleRef: {{ apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader }}
subjects: [{{ kind: ServiceAccount, name: reader, namespace: {namespace} }}]
"
    );
    cluster.apply_yaml(&reader).await.unwrap();
    cluster.apply_yaml(&pod(&namespace, "web", "sleep 600", "serviceAccountName: reader", "")).await.unwrap();
    cluster.pod_ready(&namespace, "web").await.unwrap();
    for (resource, status) in [("configmaps", "200"), ("secrets", "403")] {
        let script = format!(
            "cd /var/run/secrets/kubernetes.io/serviceaccount
             curl -s -o /dev/null -w '%{{http_code}}' --cacert ca.crt -H \"authorization: Bearer $(cat token)\" \
             https://kubernetes.default.svc/api/v1/namespaces/{namespace}/{resource}"
        );
        let output = cluster.exec(&namespace, "web", &["sh", "-c", &script]).await.unwrap();
        assert_eq!(output.stdout, status, "{resource}: {output:?}");
    }
}

/// Runs a test of this file again, on the shared cluster as if it were somebody else's.
#[tokio::test]
async fn a_cluster_that_the_user_names_is_used_instead() {
    if !cluster::available() {
        return;
    }
    if std::env::var_os("SESAME_KUBECONFIG").is_some() {
        let cluster = Cluster::start(cluster::Nodes::Two).await.unwrap();
        let namespace = cluster.namespace("elsewhere").await.unwrap();
        assert!(namespace.starts_with("elsewhere-"));
        let error = cluster.load_image(testbed::image::ready::tools().unwrap()).await.unwrap_err().to_string();
        assert_eq!(
            error,
            "loading an image can only be done with the testbed's own cluster, and SESAME_KUBECONFIG names another"
        );
        return cluster.stop().await.unwrap();
    }
    let kubeconfig = shared().await.kubeconfig();
    let output = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_cluster_that_the_user_names_is_used_instead"])
        .env("SESAME_KUBECONFIG", kubeconfig)
        .output();
    let output = within("the test to run again", LIMIT, output).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
