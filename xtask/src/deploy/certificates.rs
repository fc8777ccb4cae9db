//! The certificates of the connection between Sesame and its proxies, where a Job makes them, once, and not the controller.

use manifest::{Document, Piece, When, field, list, map, text};
use serde_json::json;

use super::pods::{metadata, pod_security, pull_secrets, security, sesame_image, small, variable, words};

const APP: &str = "sesame-certgen";

/// The setting that says who makes them.
pub const ISSUER: &str = "certificates.issuer";

/// The Job, its account and its rights.
pub fn documents() -> Vec<Document> {
    let documents = [account(), role(), binding(), job()];
    documents.into_iter().map(|document| document.when(When::Equals(ISSUER, "certgen"))).collect()
}

fn account() -> Document {
    let comment = "A CA whose key is discarded, one certificate for the server and one for the proxies, in the Secrets\n\
                   sesamecert and envoycert, and the key of the disk cache in sesame-cache-key. Secrets that are there are left\n\
                   alone; to renew the certificates run it again with --overwrite. Sesame and proxies take new ones without a\n\
                   restart.";
    let fields =
        vec![field("apiVersion", "v1"), field("kind", "ServiceAccount"), field("metadata", metadata(APP.into(), None))];
    Document::new(comment, fields)
}

fn role() -> Document {
    let create = json!({ "apiGroups": [""], "resources": ["secrets"], "verbs": ["create"] });
    let update = json!({
        "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["sesamecert", "envoycert"], "verbs": ["update"],
    });
    Document::new(
        "Not to read: whether a Secret exists is asked by creating it as a rehearsal.",
        vec![
            field("apiVersion", "rbac.authorization.k8s.io/v1"),
            field("kind", "Role"),
            field("metadata", metadata(APP.into(), None)),
            field("rules", json!([create, update])),
        ],
    )
}

fn binding() -> Document {
    let account = map(vec![
        field("kind", "ServiceAccount"),
        field("name", APP),
        field("namespace", text(vec![Piece::Namespace])),
    ]);
    Document::new(
        "",
        vec![
            field("apiVersion", "rbac.authorization.k8s.io/v1"),
            field("kind", "RoleBinding"),
            field("metadata", metadata(APP.into(), None)),
            field("roleRef", json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": APP })),
            field("subjects", list(vec![account.into()])),
        ],
    )
}

fn job() -> Document {
    let mut container = vec![field("name", "certgen")];
    container.extend(sesame_image());
    container.extend([
        field("command", words(&["sesame", "certgen", "--kube", "--incluster", "--namespace=$(SESAME_NAMESPACE)"])),
        field("env", list(vec![variable("SESAME_NAMESPACE", "metadata.namespace")])),
        small(),
        security(),
    ]);
    let pod = map(vec![
        field("serviceAccountName", APP),
        field("restartPolicy", "OnFailure"),
        pull_secrets(),
        field("securityContext", pod_security()),
        field("containers", list(vec![map(container).into()])),
    ]);
    let spec = map(vec![
        field("backoffLimit", 6),
        field("ttlSecondsAfterFinished", 3600),
        field("template", map(vec![field("metadata", json!({ "labels": { "app": APP } })), field("spec", pod)])),
    ]);
    let name = format!("{APP}-v{}", env!("CARGO_PKG_VERSION").replace('.', "-"));
    Document::new(
        "A Job cannot be changed: each version has its own, so that a newer manifest can be applied over an older one.",
        vec![
            field("apiVersion", "batch/v1"),
            field("kind", "Job"),
            field("metadata", metadata(name.into(), Some(APP))),
            field("spec", spec),
        ],
    )
}
