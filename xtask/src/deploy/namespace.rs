//! The Namespace, the accounts and the classes.

use manifest::{Document, Field, Node, Piece, When, field, literal, map, setting, text};
use serde_json::json;

use super::pods::{labels, metadata};

/// The controller name of IngressClasses.
const INGRESS_CONTROLLER: &str = "projectsesame.io/ingress-controller";
/// The controller name of GatewayClasses.
const GATEWAY_CONTROLLER: &str = "projectsesame.io/gateway-controller";

/// The Namespace, with the Pod Security Standard that its pods keep to.
pub fn document() -> Document {
    let has_host_ports =
        || When::All(vec![When::Equals("envoy.kind", "DaemonSet"), When::Set("envoy.hostPorts.enabled")]);
    let label = |word: &str| format!("pod-security.kubernetes.io/{word}");
    let relaxed = "Host ports are allowed by no standard but `privileged`. They are all that the pods of Envoy relax; all other\n\
                   pods keep to `restricted`, and what does not is reported by the two labels below.";
    let labels = map(vec![
        field(label("enforce"), "privileged").about(relaxed).when(has_host_ports()),
        field(label("enforce"), "restricted").when(When::Not(Box::new(has_host_ports()))),
        field(label("audit"), "restricted"),
        field(label("warn"), "restricted"),
    ]);
    let metadata = map(vec![field("name", text(vec![Piece::Namespace])), field("labels", labels)]);
    Document::new(
        "Everything of Sesame's own is in this namespace. Apply deploy/crds before this file.",
        vec![field("apiVersion", "v1"), field("kind", "Namespace"), field("metadata", metadata)],
    )
}

fn account(comment: &str, name: Node, more: Vec<Field>) -> Document {
    let mut fields =
        vec![field("apiVersion", "v1"), field("kind", "ServiceAccount"), field("metadata", metadata(name, None))];
    fields.extend(more);
    Document::new(comment, fields)
}

/// ServiceAccounts, IngressClass and GatewayClass.
pub fn accounts() -> Vec<Document> {
    let without_token = || vec![field("automountServiceAccountToken", false)];
    let controller = map(vec![
        field("name", setting("serviceAccount.name")),
        field("namespace", text(vec![Piece::Namespace])),
        labels(None),
        field("annotations", setting("serviceAccount.annotations")).when(When::Set("serviceAccount.annotations")),
    ]);
    let cluster_metadata =
        |name, more: Vec<Field>| map([vec![field("name", setting(name)), labels(None)], more].concat());
    let is_default = json!({ "ingressclass.kubernetes.io/is-default-class": "true" });
    let default = field("annotations", literal(is_default)).when(When::Set("ingressClass.default"));
    vec![
        Document::new(
            "",
            vec![field("apiVersion", "v1"), field("kind", "ServiceAccount"), field("metadata", controller)],
        ),
        account("Has no rights at all: a proxy never talks to the API server.", "envoy".into(), without_token())
            .when(When::Differs("envoy.kind", "none")),
        Document::new(
            "Ingresses of this class are ours, and so are those that name none and have no default class.",
            vec![
                field("apiVersion", "networking.k8s.io/v1"),
                field("kind", "IngressClass"),
                field("metadata", cluster_metadata("ingressClass.name", vec![default])),
                field("spec", json!({ "controller": INGRESS_CONTROLLER })),
            ],
        )
        .when(When::Set("ingressClass.create")),
        Document::new(
            "Gateways of this class get proxies of their own.",
            vec![
                field("apiVersion", "gateway.networking.k8s.io/v1"),
                field("kind", "GatewayClass"),
                field("metadata", cluster_metadata("gatewayClass.name", Vec::new())),
                field("spec", json!({ "controllerName": GATEWAY_CONTROLLER })),
            ],
        )
        .when(When::Set("gatewayClass.create")),
    ]
}
