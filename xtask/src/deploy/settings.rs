//! Everything that an installation can be told: one table for the values of the chart, their schema and their page.
//!
//! A row is a path, a default, what is allowed, and what it means. A key that is not in the table is an error when the chart
//! is rendered, and so is a value of another type.

use serde_json::{Map, Value, json};

/// One setting.
pub struct Setting {
    /// Its keys, with dots between them.
    pub path: &'static str,
    /// What it is unless set.
    pub default: Value,
    /// What is allowed, as a JSON schema.
    pub schema: Value,
    /// What it does.
    pub about: &'static str,
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn words() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

fn labels() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}

fn objects() -> Value {
    json!({ "type": "array", "items": { "type": "object" } })
}

fn object() -> Value {
    json!({ "type": "object" })
}

fn switch() -> Value {
    json!({ "type": "boolean" })
}

fn number(least: u32, most: u32) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": most })
}

fn bytes() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn one_of(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

/// Pods of one kind on different nodes and zones, as far as possible.
fn spread(app: &str) -> Value {
    let over = |key: &str| {
        json!({
            "labelSelector": { "matchLabels": { "app": app } },
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
        })
    };
    json!([over("kubernetes.io/hostname"), over("topology.kubernetes.io/zone")])
}

fn requests(cpu: &str, memory: &str) -> Value {
    json!({ "requests": { "cpu": cpu, "memory": memory } })
}

macro_rules! settings {
    ($($path:literal = $default:expr, $schema:expr, $about:literal;)*) => {
        vec![$(Setting { path: $path, default: json!($default), schema: $schema, about: $about },)*]
    };
}

/// The table.
pub fn all() -> Vec<Setting> {
    settings! {
        "image.repository" = "ghcr.io/projectsesame/sesame", text(), "Image of Sesame.";
        "image.tag" = concat!("v", env!("CARGO_PKG_VERSION")), text(), "Its tag; `TAG@sha256:DIGEST` pins a digest.";
        "image.pullPolicy" = "IfNotPresent", one_of(&["Always", "IfNotPresent", "Never"]), "When it is pulled.";
        "imagePullSecrets" = json!([]), objects(), "Secrets to pull images with, as `- name: NAME`.";
        "commonLabels" = json!({}), labels(), "Labels for all objects and pods.";
        "serviceAccount.name" = "sesame", text(), "ServiceAccount of the controller.";
        "serviceAccount.annotations" = json!({}), labels(), "Its annotations.";
        "rbac.create" = true, switch(), "Create the roles. `sesame rbac` prints them where somebody else does.";
        "rbac.mode" = "cluster", one_of(&["cluster", "namespaces", "named-secrets"]),
            "Scope of the permissions: all namespaces; only `rbac.namespaces`, by Roles; or Secrets only by name.";
        "rbac.namespaces" = json!([]), words(),
            "Namespaces to watch, and to have a Role in. That of Sesame must be among them for the addresses of its Service.";
        "rbac.clusterScoped" = false, switch(),
            "With `rbac.namespaces`: a ClusterRole for kinds that are in no namespace, for Gateway API and IngressClasses.";
        "rbac.secrets" = json!({}), json!({ "type": "object", "additionalProperties": words() }),
            "With mode `named-secrets`: names of the Secrets that may be read, by namespace.";
        "leaderElection.name" = "leader-elect", text(), "Name of the Lease that decides which replica writes status.";
        "leaderElection.namespace" = "", text(), "Its namespace; that of Sesame if empty.";
        "certificates.issuer" = "controller", one_of(&["controller", "certgen", "none"]),
            "Who makes the certificates between Sesame and Envoy: the controller, which rotates them; a Job, once; or `none`: provide the Secrets `sesamecert` and `envoycert`.";
        "controller.replicas" = 2, number(1, 20), "Replicas of the controller. All serve proxies, one writes status.";
        "controller.address" = "0.0.0.0", one_of(&["0.0.0.0", "::"]),
            "Address that it listens on; `::` in clusters with IPv6 pods, alone or beside IPv4.";
        "controller.config" = json!({ "accesslog-format": "envoy" }), object(), "The configuration file (docs/configuration.md).";
        "controller.args" = json!([]), words(), "More flags of `sesame serve`.";
        "controller.env" = json!([]), objects(), "More environment variables.";
        "controller.podLabels" = json!({}), labels(), "More labels of its pods.";
        "controller.podAnnotations" = json!({}), labels(), "Annotations of its pods.";
        "controller.resources" = requests("100m", "128Mi"), object(), "Requests and limits. There is no CPU limit: it would delay edits.";
        "controller.priorityClassName" = "", text(), "Priority class of its pods.";
        "controller.nodeSelector" = json!({}), labels(), "Nodes for its pods.";
        "controller.tolerations" = json!([]), objects(), "Taints that its pods tolerate.";
        "controller.topologySpreadConstraints" = spread("sesame"), objects(), "How its pods are spread.";
        "controller.podDisruptionBudget" = true, switch(), "Allow only one of its pods to be evicted at a time.";
        "envoy.kind" = "DaemonSet", one_of(&["DaemonSet", "Deployment", "none"]),
            "How the shared proxies run; `none` for Gateways with proxies of their own alone.";
        "envoy.image.repository" = "docker.io/envoyproxy/envoy", text(), "Image of Envoy.";
        "envoy.image.tag" = "distroless-v1.40.0", text(), "Its tag.";
        "envoy.image.pullPolicy" = "IfNotPresent", one_of(&["Always", "IfNotPresent", "Never"]), "When it is pulled.";
        "envoy.replicas" = 2, number(1, 1000), "Replicas of the Deployment.";
        "envoy.hostPorts.enabled" = true, switch(),
            "Let the DaemonSet listen on ports of each node. The Pod Security Standards `baseline` and `restricted` forbid host ports.";
        "envoy.hostPorts.http" = 80, number(1, 65535), "Port of the node for HTTP.";
        "envoy.hostPorts.https" = 443, number(1, 65535), "Port of the node for HTTPS.";
        "envoy.args" = json!([]), words(), "More flags of Envoy.";
        "envoy.env" = json!([]), objects(), "More environment variables.";
        "envoy.podLabels" = json!({}), labels(), "More labels of its pods.";
        "envoy.podAnnotations" = json!({}), labels(), "Annotations of its pods.";
        "envoy.resources" = requests("100m", "128Mi"), object(), "Requests and limits.";
        "envoy.overload.maxHeapBytes" = 0, bytes(),
            "Heap at which Envoy refuses requests, in bytes; no limit if 0. About 80 % of its memory limit, if it has one (docs/sizing.md).";
        "envoy.overload.maxConnections" = 0, number(0, 10_000_000),
            "Connections of clients to one Envoy, above which it refuses more; no limit if 0.";
        "envoy.priorityClassName" = "", text(), "Priority class of its pods.";
        "envoy.nodeSelector" = json!({}), labels(), "Nodes for its pods.";
        "envoy.tolerations" = json!([]), objects(), "Taints that its pods tolerate.";
        "envoy.topologySpreadConstraints" = spread("envoy"), objects(), "How the pods of the Deployment are spread.";
        "envoy.podDisruptionBudget" = true, switch(), "Allow only one pod of the Deployment to be evicted at a time. A DaemonSet has no budget.";
        "envoy.terminationGracePeriodSeconds" = 300, number(30, 86400), "When a pod that still drains is killed.";
        "envoy.drainTimeoutSeconds" = 270, number(1, 86400), "How long it waits for connections to end; less than the grace period.";
        "envoy.service.enabled" = true, switch(), "Create the Service of the proxies, whose addresses Ingresses get.";
        "envoy.service.type" = "LoadBalancer", one_of(&["LoadBalancer", "NodePort", "ClusterIP"]), "Its type.";
        "envoy.service.annotations" = json!({}), labels(), "Its annotations.";
        "envoy.service.externalTrafficPolicy" = "Local", one_of(&["Local", "Cluster"]), "`Local` keeps the addresses of clients.";
        "envoy.service.loadBalancerClass" = "", text(), "Implementation of the load balancer.";
        "envoy.service.loadBalancerSourceRanges" = json!([]), words(), "Client addresses (CIDR) that the load balancer lets through.";
        "envoy.service.httpPort" = 80, number(1, 65535), "Port for HTTP.";
        "envoy.service.httpsPort" = 443, number(1, 65535), "Port for HTTPS.";
        "envoy.autoscaling.enabled" = false, switch(), "Scale the Deployment by CPU (needs a metrics server).";
        "envoy.autoscaling.minReplicas" = 2, number(1, 1000), "Least replicas.";
        "envoy.autoscaling.maxReplicas" = 10, number(1, 1000), "Most replicas.";
        "envoy.autoscaling.cpuPercent" = 70, number(1, 1000), "CPU to scale by, in percent of its request.";
        "ingressClass.create" = true, switch(), "Create an IngressClass.";
        "ingressClass.name" = "sesame", text(), "Its name.";
        "ingressClass.default" = false, switch(), "Let Ingresses without a class have it.";
        "gatewayClass.create" = false, switch(), "Create a GatewayClass (needs the CRDs of Gateway API).";
        "gatewayClass.name" = "sesame", text(), "Its name.";
        "networkPolicy.enabled" = true, switch(), "Let only proxies and replicas reach the xDS server.";
        "monitors.enabled" = false, switch(), "Create a ServiceMonitor and a PodMonitor (needs the CRDs of the Prometheus operator).";
        "monitors.interval" = "30s", text(), "How often metrics are scraped.";
        "monitors.labels" = json!({}), labels(), "Labels by which Prometheus selects them, and the rules.";
        "monitors.rules" = false, switch(), "Create a PrometheusRule with the alerts (needs the CRDs of the Prometheus operator).";
        "monitors.dashboards" = false, switch(), "Create a ConfigMap for each dashboard of Grafana.";
        "monitors.dashboardLabels" = json!({ "grafana_dashboard": "1" }), labels(), "Labels by which Grafana's sidecar selects them.";
    }
}

/// The defaults, as a tree.
pub fn defaults() -> Value {
    let mut tree = Value::Object(Map::new());
    for Setting { path, default, .. } in all() {
        *path.split('.').fold(&mut tree, |tree, key| &mut tree[key]) = default;
    }
    tree
}

/// The schema of the chart's values.
pub fn schema() -> Value {
    let folder = || json!({ "type": "object", "additionalProperties": false, "properties": {} });
    let mut root = folder();
    for Setting { path, schema, about, .. } in all() {
        let mut at = &mut root;
        for key in path.split('.') {
            let properties = &mut at["properties"];
            if properties.get(key).is_none() {
                properties[key] = folder();
            }
            at = &mut properties[key];
        }
        *at = schema;
        at["description"] = about.into();
    }
    // Helm itself puts it there.
    root["properties"]["global"] = object();
    root["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    let mode = |mode: &str| json!({ "properties": { "mode": { "const": mode } } });
    let (none, some) = (json!({ "maxItems": 0 }), json!({ "minItems": 1 }));
    root["properties"]["rbac"]["allOf"] = json!([
        { "if": mode("cluster"), "then": { "properties": { "namespaces": none } } },
        { "if": mode("namespaces"), "then": { "properties": { "namespaces": some } } },
        { "if": mode("named-secrets"), "then": { "properties": { "secrets": { "minProperties": 1 } } } },
    ]);
    root
}

/// The defaults as `values.yaml`, each with what it does.
pub fn values_yaml() -> String {
    let mut out = super::HEAD.to_owned();
    let mut above: Vec<&str> = Vec::new();
    for Setting { path, default, about, .. } in all() {
        let keys: Vec<&str> = path.split('.').collect();
        let (last, folders) = keys.split_last().expect("a path has a key");
        let shared = above.iter().zip(folders).take_while(|(one, other)| one == other).count();
        for (depth, folder) in folders.iter().enumerate().skip(shared) {
            out += &format!("{}{folder}:\n", "  ".repeat(depth));
        }
        let depth = folders.len();
        let mut entry = String::new();
        manifest::value(&json!({ *last: default }), depth, &mut entry);
        out += &format!("{}# {about}\n{entry}", "  ".repeat(depth));
        above = folders.to_vec();
    }
    out
}

/// The page of all values.
pub fn page() -> String {
    let mut out = "# Values of the chart\n\nMade by `cargo xtask deploy`. Keys that are not here and values of another type are refused \
                   when the chart is rendered.\n\n| key | default | what |\n|---|---|---|\n"
        .to_owned();
    for Setting { path, default, about, .. } in all() {
        out += &format!("| `{path}` | `{default}` | {about} |\n");
    }
    out
}
