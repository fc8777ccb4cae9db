//! What all pods have in common: the restricted Pod Security Standard, labels, and where images come from.

use manifest::{Field, Item, Node, Piece, When, field, list, map, setting, text};
use serde_json::json;

/// The user of all containers. Numbers, so that `runAsNonRoot` can be checked.
const USER: u32 = 65534;

/// Metadata of an object of ours.
pub fn metadata(name: Node, app: Option<&str>) -> Node {
    let mut fields = vec![field("name", name), field("namespace", text(vec![Piece::Namespace]))];
    fields.push(labels(app));
    map(fields)
}

/// Labels of an object: its own, and those for all.
pub fn labels(app: Option<&str>) -> Field {
    match app {
        Some(app) => field("labels", map(vec![field("app", app), Field::entries("commonLabels")])),
        None => field("labels", setting("commonLabels")).when(When::Set("commonLabels")),
    }
}

/// Metadata of the pods of a workload, with its own labels and annotations.
pub fn pod_metadata(app: &str, labels: &'static str, annotations: &'static str) -> Node {
    map(vec![
        field("labels", map(vec![field("app", app), Field::entries("commonLabels"), Field::entries(labels)])),
        field("annotations", setting(annotations)).when(When::Set(annotations)),
    ])
}

/// The security context of a pod.
pub fn pod_security() -> Node {
    json!({
        "runAsNonRoot": true,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "seccompProfile": { "type": "RuntimeDefault" },
    })
    .into()
}

/// The security context of a container.
pub fn security() -> Field {
    field(
        "securityContext",
        json!({
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        }),
    )
}

/// The image of Sesame, and when it is pulled.
pub fn sesame_image() -> [Field; 2] {
    [
        field("image", text(vec![Piece::Setting("image.repository"), ":".into(), Piece::Setting("image.tag")])),
        field("imagePullPolicy", setting("image.pullPolicy")),
    ]
}

/// Secrets to pull images with.
pub fn pull_secrets() -> Field {
    field("imagePullSecrets", setting("imagePullSecrets")).when(When::Set("imagePullSecrets"))
}

/// Where pods of a workload may run: settings of these names.
pub fn placement(priority: &'static str, selector: &'static str, tolerations: &'static str) -> [Field; 3] {
    [
        field("priorityClassName", setting(priority)).when(When::Set(priority)),
        field("nodeSelector", setting(selector)).when(When::Set(selector)),
        field("tolerations", setting(tolerations)).when(When::Set(tolerations)),
    ]
}

/// An environment variable from a field of the pod.
pub fn variable(name: &str, path: &str) -> Item {
    let source = json!({ "fieldRef": { "fieldPath": path } });
    map(vec![field("name", name), field("valueFrom", source)]).into()
}

/// What a helper container takes.
pub fn small() -> Field {
    field("resources", json!({ "requests": { "cpu": "10m", "memory": "32Mi" } }))
}

/// A volume with certificates that the group of the pod may read.
pub fn secret_volume(name: &str, secret: &str) -> Item {
    map(vec![field("name", name), field("secret", json!({ "secretName": secret, "defaultMode": 0o440 }))]).into()
}

/// A mount.
pub fn mount(name: &str, path: &str, is_read_only: bool) -> Item {
    let mut fields = vec![field("name", name), field("mountPath", path)];
    if is_read_only {
        fields.push(field("readOnly", true));
    }
    map(fields).into()
}

/// Words of a command.
pub fn words(words: &[&str]) -> Node {
    list(words.iter().map(|&word| Item::from(word)).collect())
}

/// A PodDisruptionBudget.
pub fn disruption_budget(app: &str, comment: &str, when: When) -> manifest::Document {
    let spec = json!({
        "maxUnavailable": 1,
        "selector": { "matchLabels": { "app": app } },
        // A pod that is not ready is in nobody's way.
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    });
    manifest::Document::new(
        comment,
        vec![
            field("apiVersion", "policy/v1"),
            field("kind", "PodDisruptionBudget"),
            field("metadata", metadata(app.into(), None)),
            field("spec", spec),
        ],
    )
    .when(when)
}
