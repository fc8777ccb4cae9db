//! The proxies of the shared fleet, as a DaemonSet or a Deployment, and the Service that clients reach them by.

use manifest::{Document, Field, Item, Node, Piece, When, field, list, map, setting, text};
use serde_json::json;

use super::pods::{
    disruption_budget, metadata, mount, placement, pod_metadata, pod_security, pull_secrets, secret_volume, security,
    sesame_image, small, variable, words,
};

const APP: &str = "envoy";
/// The port of readiness and metrics.
pub const STATS_PORT: u32 = 8002;
const HTTP_PORT: u32 = 8080;
const HTTPS_PORT: u32 = 8443;
const SHUTDOWN_PORT: u32 = 8090;

fn is(kind: &'static str) -> When {
    When::Equals("envoy.kind", kind)
}

fn exists() -> When {
    When::Differs("envoy.kind", "none")
}

/// DaemonSet or Deployment, Service, PodDisruptionBudget, HorizontalPodAutoscaler.
pub fn documents() -> Vec<Document> {
    // Kubernetes cannot count the pods of a DaemonSet for a budget.
    let has_budget = When::All(vec![is("Deployment"), When::Set("envoy.podDisruptionBudget")]);
    vec![daemon_set(), deployment(), service(), disruption_budget(APP, "", has_budget), autoscaler()]
}

fn workload(kind: &str, comment: &str, spec: Vec<Field>) -> Document {
    Document::new(
        comment,
        vec![
            field("apiVersion", "apps/v1"),
            field("kind", kind),
            field("metadata", metadata(APP.into(), Some(APP))),
            field("spec", map(spec)),
        ],
    )
}

fn selector() -> Field {
    field("selector", json!({ "matchLabels": { "app": APP } }))
}

fn daemon_set() -> Document {
    let host_ports = When::Set("envoy.hostPorts.enabled");
    let port = |name: &str, port: u32, host: &'static str| {
        map(vec![
            field("name", name),
            field("containerPort", port),
            field("hostPort", setting(host)).when(host_ports.clone()),
            field("protocol", "TCP"),
        ])
    };
    let ports = vec![
        port("http", HTTP_PORT, "envoy.hostPorts.http").into(),
        port("https", HTTPS_PORT, "envoy.hostPorts.https").into(),
    ];
    let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 1 } });
    let spec = vec![
        field("updateStrategy", rolling)
            .about("Two pods cannot have one port of a node: an old one goes before a new one comes."),
        selector(),
        field("template", template(ports, Vec::new())),
    ];
    workload("DaemonSet", "The proxies: one on each node.", spec).when(is("DaemonSet"))
}

fn deployment() -> Document {
    let port = |name: &str, port: u32| json!({ "name": name, "containerPort": port, "protocol": "TCP" }).into();
    let ports: Vec<Node> = vec![port("http", HTTP_PORT), port("https", HTTPS_PORT)];
    let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } });
    let spread = "envoy.topologySpreadConstraints";
    let spread = field("topologySpreadConstraints", setting(spread)).when(When::Set(spread));
    let spec = vec![
        field("replicas", setting("envoy.replicas")).when(When::Not(Box::new(When::Set("envoy.autoscaling.enabled")))),
        field("strategy", rolling),
        selector(),
        field("template", template(ports.into_iter().map(Item::from).collect(), vec![spread])),
    ];
    workload("Deployment", "The proxies.", spec).when(is("Deployment"))
}

fn template(ports: Vec<Item>, more: Vec<Field>) -> Node {
    let mut pod = vec![
        field("serviceAccountName", APP),
        field("automountServiceAccountToken", false),
        field("terminationGracePeriodSeconds", setting("envoy.terminationGracePeriodSeconds"))
            .about("More than --timeout of the shutdown manager's hook."),
        pull_secrets(),
    ];
    pod.extend(placement("envoy.priorityClassName", "envoy.nodeSelector", "envoy.tolerations"));
    pod.extend(more);
    let empty = |name: &str| Item::from(map(vec![field("name", name), field("emptyDir", json!({}))]));
    let manager = "Drains Envoy when the pod ends: it turns unready, goes on serving, and waits for clients to go. No liveness\n\
                   probe: the hook also runs when a container is restarted for one, and would drain an Envoy that is to stay.";
    pod.extend([
        field("securityContext", pod_security()),
        field("initContainers", list(vec![map(bootstrap()).into()])),
        field("containers", list(vec![map(proxy(ports)).into(), Item::from(map(shutdown_manager())).about(manager)])),
        field("volumes", list(vec![empty("bootstrap"), empty("admin"), secret_volume("certificates", "envoycert")])),
    ]);
    map(vec![field("metadata", pod_metadata(APP, "envoy.podLabels", "envoy.podAnnotations")), field("spec", map(pod))])
}

fn bootstrap() -> Vec<Field> {
    let mut container = vec![field("name", "bootstrap")];
    let mut command: Vec<Item> = [
        "sesame",
        "bootstrap",
        "/bootstrap/envoy.json",
        "--xds-address=sesame",
        "--xds-port=8001",
        "--resources-dir=/bootstrap/resources",
        "--admin-address=/admin/admin.sock",
        "--envoy-cafile=/certs/ca.crt",
        "--envoy-cert-file=/certs/tls.crt",
        "--envoy-key-file=/certs/tls.key",
    ]
    .into_iter()
    .map(Item::from)
    .collect();
    for (flag, limit) in [
        ("--overload-max-heap=", "envoy.overload.maxHeapBytes"),
        ("--overload-downstream-max-conn=", "envoy.overload.maxConnections"),
    ] {
        command.push(Item::from(text(vec![flag.into(), Piece::Setting(limit)])).when(When::Set(limit)));
    }
    container.extend(sesame_image());
    container.extend([
        field("command", list(command)),
        field("env", list(vec![variable("SESAME_NAMESPACE", "metadata.namespace")])),
        small(),
        security(),
        field(
            "volumeMounts",
            list(vec![mount("bootstrap", "/bootstrap", false), mount("certificates", "/certs", true)]),
        ),
    ]);
    container
}

fn proxy(mut ports: Vec<Item>) -> Vec<Field> {
    ports.push(json_item(json!({ "name": "metrics", "containerPort": STATS_PORT, "protocol": "TCP" })));
    let image = vec![Piece::Setting("envoy.image.repository"), ":".into(), Piece::Setting("envoy.image.tag")];
    let mut arguments: Vec<Item> =
        ["--config-path", "/bootstrap/envoy.json", "--service-cluster", "$(SESAME_NAMESPACE)"]
            .into_iter()
            .chain(["--service-node", "$(POD_NAME)", "--log-level", "info"])
            .chain(["--component-log-level", "misc:error"])
            .map(Item::from)
            .collect();
    arguments.push(Item::items("envoy.args"));
    let environment = vec![
        variable("SESAME_NAMESPACE", "metadata.namespace"),
        variable("CONTOUR_NAMESPACE", "metadata.namespace").about("Spans take podNamespace from it, as in Contour."),
        variable("POD_NAME", "metadata.name"),
        Item::items("envoy.env"),
    ];
    let ready = "Ready is who has its listeners and routes: this listener itself comes from Sesame. No startup and no liveness\n\
                 probe: a proxy that waits for its configuration would be restarted for nothing.";
    let hook =
        "Envoy closes its connections on SIGTERM, which follows this hook; the hook returns when Envoy is drained.";
    vec![
        field("name", APP),
        field("image", text(image)),
        field("imagePullPolicy", setting("envoy.image.pullPolicy")),
        field("command", words(&["envoy"])),
        field("args", list(arguments)),
        field("env", list(environment)),
        field("ports", list(ports)),
        field(
            "readinessProbe",
            json!({ "httpGet": { "path": "/ready", "port": STATS_PORT }, "periodSeconds": 2, "timeoutSeconds": 2 }),
        )
        .about(ready),
        field("lifecycle", json!({ "preStop": { "httpGet": { "path": "/shutdown", "port": SHUTDOWN_PORT } } }))
            .about(hook),
        field("resources", setting("envoy.resources")),
        security(),
        field(
            "volumeMounts",
            list(vec![
                mount("bootstrap", "/bootstrap", true),
                mount("certificates", "/certs", true),
                mount("admin", "/admin", false),
            ]),
        ),
    ]
}

fn json_item(value: serde_json::Value) -> Item {
    Item::from(Node::from(value))
}

fn shutdown_manager() -> Vec<Field> {
    let mut hook: Vec<Item> = [
        "sesame",
        "envoy",
        "shutdown",
        "--admin-address=/admin/admin.sock",
        "--ready-file=/admin/ok",
        "--check-delay=5s",
        "--check-interval=1s",
    ]
    .into_iter()
    .map(Item::from)
    .collect();
    hook.push(text(vec!["--timeout=".into(), Piece::Setting("envoy.drainTimeoutSeconds"), "s".into()]).into());
    let hook = map(vec![field("preStop", map(vec![field("exec", map(vec![field("command", list(hook))]))]))]);
    let mut container = vec![field("name", "shutdown-manager")];
    container.extend(sesame_image());
    container.extend([
        field(
            "command",
            words(&["sesame", "envoy", "shutdown-manager", "--serve-port=8090", "--ready-file=/admin/ok"]),
        ),
        field("lifecycle", hook),
        small(),
        security(),
        field("volumeMounts", list(vec![mount("admin", "/admin", false)])),
    ]);
    container
}

fn service() -> Document {
    let port = |name: &str, setting: &'static str, target: u32| {
        Item::from(map(vec![
            field("name", name),
            field("port", manifest::setting(setting)),
            field("targetPort", target),
            field("protocol", "TCP"),
        ]))
    };
    let (annotations, class, ranges) =
        ("envoy.service.annotations", "envoy.service.loadBalancerClass", "envoy.service.loadBalancerSourceRanges");
    let is_outside = When::Differs("envoy.service.type", "ClusterIP");
    let metadata = map(vec![
        field("name", APP),
        field("namespace", text(vec![Piece::Namespace])),
        super::pods::labels(Some(APP)),
        field("annotations", setting(annotations)).when(When::Set(annotations)),
    ]);
    let spec = map(vec![
        field("type", setting("envoy.service.type")),
        field("externalTrafficPolicy", setting("envoy.service.externalTrafficPolicy"))
            .about("`Local`: the client's own address reaches the proxy.")
            .when(is_outside),
        field("loadBalancerClass", setting(class)).when(When::Set(class)),
        field("loadBalancerSourceRanges", setting(ranges)).when(When::Set(ranges)),
        field("selector", json!({ "app": APP })),
        field(
            "ports",
            list(vec![
                port("http", "envoy.service.httpPort", HTTP_PORT),
                port("https", "envoy.service.httpsPort", HTTPS_PORT),
            ]),
        ),
    ]);
    Document::new(
        "What clients reach the proxies by. Its addresses are those of Ingresses.",
        vec![field("apiVersion", "v1"), field("kind", "Service"), field("metadata", metadata), field("spec", spec)],
    )
    .when(When::All(vec![exists(), When::Set("envoy.service.enabled")]))
}

fn autoscaler() -> Document {
    let target =
        map(vec![field("type", "Utilization"), field("averageUtilization", setting("envoy.autoscaling.cpuPercent"))]);
    let metric = map(vec![
        field("type", "Resource"),
        field("resource", map(vec![field("name", "cpu"), field("target", target)])),
    ]);
    let spec = map(vec![
        field("scaleTargetRef", json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": APP })),
        field("minReplicas", setting("envoy.autoscaling.minReplicas")),
        field("maxReplicas", setting("envoy.autoscaling.maxReplicas")),
        field("metrics", list(vec![metric.into()])),
    ]);
    Document::new(
        "",
        vec![
            field("apiVersion", "autoscaling/v2"),
            field("kind", "HorizontalPodAutoscaler"),
            field("metadata", metadata(APP.into(), Some(APP))),
            field("spec", spec),
        ],
    )
    .when(When::All(vec![is("Deployment"), When::Set("envoy.autoscaling.enabled")]))
}
