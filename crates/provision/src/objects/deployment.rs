//! The Deployment: the pods of Envoy, made as those of the shared fleet (`deploy/sesame-deployment.yaml`).
//!
//! Nothing here depends on the ports of listeners, except where one has taken the port of a page: a listener that comes, goes or
//! moves restarts no proxy.
//!
//! - **Ports below 1024.** Proxies listen on the ports that the Gateway names. Instead of a capability, which a program that is
//!   not root does not get, the pod's network namespace lets everybody bind low ports: the sysctl
//!   `net.ipv4.ip_unprivileged_port_start` is one of the safe ones, and allowed under the Pod Security Standard `restricted`.
//! - **Identity.** A projected token of the fleet's ServiceAccount, for the audience of the xDS server alone; Envoy reads it
//!   anew when the kubelet renews it. The CA of the server stands in the environment of the init container, because the pod
//!   lives in a namespace in which Sesame writes neither Secrets nor ConfigMaps; another CA restarts the proxies. While CAs are rotated,
//!   a proxy is known by the CAs that its node says it has; its statistics are not read, because a tenant may own the pod.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{FLEET_LABEL, annotations};
use crate::Settings;
use crate::spec::{FleetSpec, Pages};

/// The audience of the tokens by which proxies authenticate.
pub const AUDIENCE: &str = "xds.projectsesame.io";
/// Where the token is in a proxy's pod.
const TOKEN_DIR: &str = "/var/run/secrets/projectsesame.io";
/// How long a token is valid. The kubelet renews it after four fifths of that.
const TOKEN_SECONDS: u32 = 3600;

/// How long a proxy waits for its clients to go; more than the drain takes.
const GRACE_SECONDS: u32 = 300;
const DRAIN: &str = "--timeout=270s";

pub(super) fn spec(
    spec: &FleetSpec,
    settings: &Settings,
    ca: Option<&str>,
    name: &str,
    pages: Pages,
    labels: &BTreeMap<String, String>,
) -> Value {
    json!({
        "replicas": settings.replicas,
        "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } },
        "selector": { "matchLabels": { FLEET_LABEL: name } },
        "template": {
            "metadata": { "labels": labels, "annotations": annotations(spec) },
            "spec": pod(spec, settings, ca, name, pages),
        },
    })
}

fn pod(spec: &FleetSpec, settings: &Settings, ca: Option<&str>, name: &str, pages: Pages) -> Value {
    let mut volumes = vec![json!({ "name": "bootstrap", "emptyDir": {} }), json!({ "name": "admin", "emptyDir": {} })];
    if ca.is_some() {
        let token = json!({ "audience": AUDIENCE, "expirationSeconds": TOKEN_SECONDS, "path": "token" });
        volumes.push(json!({
            "name": "token",
            "projected": { "defaultMode": 0o440, "sources": [{ "serviceAccountToken": token }] },
        }));
    }
    json!({
        "serviceAccountName": name,
        "automountServiceAccountToken": false,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{
                    "weight": 100,
                    "podAffinityTerm": {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": { "matchLabels": { FLEET_LABEL: name } },
                    },
                }],
            },
        },
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": 65534,
            "runAsGroup": 65534,
            "fsGroup": 65534,
            "seccompProfile": { "type": "RuntimeDefault" },
            "sysctls": [{ "name": "net.ipv4.ip_unprivileged_port_start", "value": "0" }],
        },
        "initContainers": [bootstrap(spec, settings, ca)],
        "containers": [envoy(settings, ca, pages), shutdown_manager(settings, pages)],
        "volumes": volumes,
    })
}

fn bootstrap(spec: &FleetSpec, settings: &Settings, ca: Option<&str>) -> Value {
    let mut command = vec![
        "sesame".to_owned(),
        "bootstrap".to_owned(),
        "/bootstrap/envoy.json".to_owned(),
        format!("--xds-address={}", settings.xds.host),
        format!("--xds-port={}", settings.xds.port),
        "--resources-dir=/bootstrap/resources".to_owned(),
        "--admin-address=/admin/admin.sock".to_owned(),
        format!("--namespace={}", settings.namespace),
        format!("--fleet={}", spec.name),
    ];
    let mut environment = Vec::new();
    if let Some(ca) = ca {
        command.push(format!("--envoy-token-file={TOKEN_DIR}/token"));
        environment.push(json!({ "name": "ENVOY_CA", "value": ca }));
    }
    json!({
        "name": "bootstrap",
        "image": settings.sesame_image,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "env": environment,
        "resources": requests("10m", "32Mi"),
        "securityContext": security(),
        "volumeMounts": [{ "name": "bootstrap", "mountPath": "/bootstrap" }],
    })
}

fn envoy(settings: &Settings, ca: Option<&str>, pages: Pages) -> Value {
    let mut mounts = vec![
        json!({ "name": "bootstrap", "mountPath": "/bootstrap", "readOnly": true }),
        json!({ "name": "admin", "mountPath": "/admin" }),
    ];
    if ca.is_some() {
        mounts.push(json!({ "name": "token", "mountPath": TOKEN_DIR, "readOnly": true }));
    }
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": path } } });
    json!({
        "name": "envoy",
        "image": settings.envoy_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["envoy"],
        "args": [
            "--config-path", "/bootstrap/envoy.json",
            "--service-cluster", "$(POD_NAMESPACE)",
            "--service-node", "$(POD_NAME)",
            "--log-level", "info",
            // See `COMPONENT_LOG_LEVEL` of the crate envoy.
            "--component-log-level", "misc:error",
        ],
        // The last is where spans take `podNamespace` from, as in Contour.
        "env": [
            field("POD_NAMESPACE", "metadata.namespace"),
            field("POD_NAME", "metadata.name"),
            field("CONTOUR_NAMESPACE", "metadata.namespace"),
        ],
        "ports": [{ "name": "metrics", "containerPort": pages.stats, "protocol": "TCP" }],
        // Ready is who has its listeners and routes: this listener itself comes from Sesame.
        "readinessProbe": {
            "httpGet": { "path": "/ready", "port": pages.stats },
            "periodSeconds": 1,
            "timeoutSeconds": 1,
        },
        // Answers when the proxy is drained.
        "lifecycle": { "preStop": { "httpGet": { "path": "/shutdown", "port": pages.shutdown } } },
        // What an idle proxy takes: clusters have many Gateways with little traffic, and limits there are none.
        "resources": requests("25m", "128Mi"),
        "securityContext": security(),
        "volumeMounts": mounts,
    })
}

/// Drains Envoy when the pod ends. No liveness probe: the hook also runs when a container is restarted for one, and would drain
/// an Envoy that is to stay.
fn shutdown_manager(settings: &Settings, pages: Pages) -> Value {
    let port = format!("--serve-port={}", pages.shutdown);
    json!({
        "name": "shutdown-manager",
        "image": settings.sesame_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sesame", "envoy", "shutdown-manager", port, "--ready-file=/admin/ok"],
        "lifecycle": {
            "preStop": {
                "exec": {
                    "command": [
                        "sesame", "envoy", "shutdown",
                        "--admin-address=/admin/admin.sock",
                        "--ready-file=/admin/ok",
                        "--check-delay=5s",
                        "--check-interval=1s",
                        DRAIN,
                    ],
                },
            },
        },
        "resources": requests("5m", "32Mi"),
        "securityContext": security(),
        "volumeMounts": [{ "name": "admin", "mountPath": "/admin" }],
    })
}

fn requests(cpu: &str, memory: &str) -> Value {
    json!({ "requests": { "cpu": cpu, "memory": memory } })
}

fn security() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": { "drop": ["ALL"] },
    })
}
