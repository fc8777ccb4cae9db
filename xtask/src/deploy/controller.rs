//! The controller: two replicas, both of which serve proxies; the one that holds the lease writes status and events.

use manifest::{Document, Field, Item, Node, Piece, Values, When, block, field, list, map, setting, text};
use serde_json::json;

use super::certificates::ISSUER;
use super::pods::{
    disruption_budget, metadata, mount, placement, pod_metadata, pod_security, pull_secrets, secret_volume, security,
    sesame_image, variable,
};

const APP: &str = "sesame";

/// The controller makes the certificates of its connections itself.
const CONTROLLER: &str = "controller";

/// The port of xDS.
pub const XDS_PORT: u32 = 8001;
/// The port of health and metrics.
pub const METRICS_PORT: u32 = 8000;

/// ConfigMap, Deployment, Service, PodDisruptionBudget.
pub fn documents() -> Vec<Document> {
    vec![config(), deployment(), service(), disruption_budget(APP, "", When::Set("controller.podDisruptionBudget"))]
}

fn config() -> Document {
    let file = field("sesame.yaml", block("controller.config"));
    let about = "docs/configuration.md lists every key. A change takes effect without a restart, except where that page says so.";
    Document::new(
        "",
        vec![
            field("apiVersion", "v1"),
            field("kind", "ConfigMap"),
            field("metadata", metadata(APP.into(), None)),
            field("data", map(vec![file.about(about)])),
        ],
    )
}

fn deployment() -> Document {
    let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } });
    let pods = map(vec![
        field("metadata", pod_metadata(APP, "controller.podLabels", "controller.podAnnotations")),
        field("spec", map(pod())),
    ]);
    let spec = map(vec![
        field("replicas", setting("controller.replicas")),
        field("strategy", rolling)
            .about("A new replica is ready when it knows everything; only then is an old one told to go."),
        field("selector", json!({ "matchLabels": { "app": APP } })),
        field("template", pods),
    ]);
    Document::new(
        "The controller: all replicas serve proxies; the one that holds the lease writes status and events.",
        vec![
            field("apiVersion", "apps/v1"),
            field("kind", "Deployment"),
            field("metadata", metadata(APP.into(), Some(APP))),
            field("spec", spec),
        ],
    )
}

fn pod() -> Vec<Field> {
    let spread = "controller.topologySpreadConstraints";
    let mut pod = vec![
        field("serviceAccountName", setting("serviceAccount.name")),
        field("terminationGracePeriodSeconds", 30)
            .about("Proxies reconnect to another replica, and the lease is released."),
        pull_secrets(),
    ];
    pod.extend(placement("controller.priorityClassName", "controller.nodeSelector", "controller.tolerations"));
    pod.extend([
        field("topologySpreadConstraints", setting(spread)).when(When::Set(spread)),
        field("securityContext", pod_security()),
        field("containers", list(vec![map(container()).into()])),
        field("volumes", list(volumes())),
    ]);
    pod
}

fn volumes() -> Vec<Item> {
    let config = map(vec![field("name", "config"), field("configMap", json!({ "name": APP }))]);
    let key = json!({ "secretName": "sesame-cache-key", "optional": true, "defaultMode": 0o440 });
    let own = json!({ "medium": "Memory", "sizeLimit": "1Mi" });
    vec![
        secret_volume("certificates", "sesamecert").when(When::Differs(ISSUER, CONTROLLER)),
        Item::from(map(vec![field("name", "certificates"), field("emptyDir", own)]))
            .when(When::Equals(ISSUER, CONTROLLER)),
        config.into(),
        map(vec![field("name", "cache"), field("emptyDir", json!({}))]).into(),
        map(vec![field("name", "cache-key"), field("secret", key)]).into(),
    ]
}

fn container() -> Vec<Field> {
    let mut container = vec![field("name", APP)];
    container.extend(sesame_image());
    container.extend([
        field("command", list(command())),
        field(
            "env",
            list(vec![
                variable("SESAME_NAMESPACE", "metadata.namespace"),
                variable("POD_IP", "status.podIP"),
                variable("POD_NAME", "metadata.name"),
                Item::items("controller.env"),
            ]),
        ),
        field(
            "ports",
            json!([
                { "name": "xds", "containerPort": XDS_PORT, "protocol": "TCP" },
                { "name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP" },
            ]),
        ),
        probe("startupProbe", "/healthz", json!({ "periodSeconds": 1, "failureThreshold": 60 })),
        probe("livenessProbe", "/healthz", json!({ "periodSeconds": 10, "timeoutSeconds": 5 }))
            .about("Alive does not depend on the API server: an outage of it must not restart anybody."),
        probe("readinessProbe", "/readyz", json!({ "periodSeconds": 2, "timeoutSeconds": 2 }))
            .about("Ready is who has read everything and built it once."),
        field("resources", setting("controller.resources")),
        security(),
        field("volumeMounts", list(mounts())),
    ]);
    container
}

fn mounts() -> Vec<Item> {
    let cache = "What was last published, for proxies that start while the API server is away. Sealed: it has the keys of all hosts.";
    let own = "The certificate of this replica, which it reads from the API server: one of them makes it first.";
    vec![
        mount("certificates", "/certs", true).when(When::Differs(ISSUER, CONTROLLER)),
        mount("certificates", "/certs", false).about(own).when(When::Equals(ISSUER, CONTROLLER)),
        mount("config", "/config", true),
        mount("cache", "/cache", false).about(cache),
        mount("cache-key", "/cache-key", true),
    ]
}

fn command() -> Vec<Item> {
    let flag = |pieces| Item::from(text(pieces));
    let listens = |name: &'static str| flag(vec![name.into(), Piece::Setting("controller.address")]);
    let mut words: Vec<Item> =
        ["sesame", "serve", "--incluster", "--config-path=/config/sesame.yaml"].into_iter().map(Item::from).collect();
    words.extend(["--xds-address=", "--health-address=", "--http-address="].map(listens));
    words.push(Item::from("--xds-port=8001"));
    let files =
        ["--sesame-cafile=/certs/ca.crt", "--sesame-cert-file=/certs/tls.crt", "--sesame-key-file=/certs/tls.key"];
    words.extend(files.map(|flag| Item::from(flag).when(When::Differs(ISSUER, CONTROLLER))));
    words.push(Item::from("--xds-certificates-dir=/certs").when(When::Equals(ISSUER, CONTROLLER)));
    let image =
        vec!["--sesame-image=".into(), Piece::Setting("image.repository"), ":".into(), Piece::Setting("image.tag")];
    let envoy = vec![
        "--envoy-image=".into(),
        Piece::Setting("envoy.image.repository"),
        ":".into(),
        Piece::Setting("envoy.image.tag"),
    ];
    words.extend([
        flag(image).about("For the proxies of Gateways."),
        flag(envoy),
        flag(vec!["--watch-namespaces=".into(), Piece::Joined("rbac.namespaces")]).when(When::Set("rbac.namespaces")),
        Item::from("--namespaced-only")
            .when(When::All(vec![When::Set("rbac.namespaces"), When::Not(Box::new(When::Set("rbac.clusterScoped")))])),
        flag(vec!["--named-secrets=".into(), Piece::Helper("sesame.namedSecrets", named_secrets)])
            .when(When::Equals("rbac.mode", rbac::NAMED_SECRETS)),
        flag(vec!["--leader-election-resource-name=".into(), Piece::Setting("leaderElection.name")])
            .when(When::Differs("leaderElection.name", "leader-elect")),
        flag(vec!["--leader-election-resource-namespace=".into(), Piece::Setting("leaderElection.namespace")])
            .when(When::Set("leaderElection.namespace")),
        Item::items("controller.args"),
    ]);
    words
}

fn named_secrets(values: &Values<'_>) -> String {
    let mut names = Vec::new();
    for (namespace, of_namespace) in values.get("rbac.secrets").as_object().into_iter().flatten() {
        let of_namespace = of_namespace.as_array().into_iter().flatten().filter_map(|name| name.as_str());
        names.extend(of_namespace.map(|name| format!("{namespace}/{name}")));
    }
    names.join(",")
}

fn probe(name: &str, path: &str, timing: serde_json::Value) -> Field {
    let mut probe = json!({ "httpGet": { "path": path, "port": METRICS_PORT } });
    for (key, value) in timing.as_object().into_iter().flatten() {
        probe[key] = value.clone();
    }
    field(name, Node::from(probe))
}

fn service() -> Document {
    let port = |name: &str, port: u32| json!({ "name": name, "port": port, "targetPort": port, "protocol": "TCP" });
    let spec = json!({
        "type": "ClusterIP",
        "selector": { "app": APP },
        "ports": [port("xds", XDS_PORT), port("metrics", METRICS_PORT)],
    });
    Document::new(
        "Where proxies find Sesame; its name is in the server's certificate.",
        vec![
            field("apiVersion", "v1"),
            field("kind", "Service"),
            field("metadata", metadata(APP.into(), Some(APP))),
            field("spec", spec),
        ],
    )
}
