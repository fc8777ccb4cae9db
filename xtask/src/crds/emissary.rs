//! The kinds of Emissary, `getambassador.io`: every version that Emissary 3.10 serves, and `v3alpha1` as the one that is stored.
//!
//! Sesame [converts](kinds::emissary::convert) `v1` and `v2` itself, so there is no conversion webhook: the API server stores what is
//! written in either as it is, under the name of `v3alpha1`, whose schema has the names of `v2` for that. Objects written for Emissary are taken as they are.

mod dev_portal;
mod host;
mod listener;
mod mapping;
mod module;
mod resolver;
mod service;
mod tls_context;
mod v2;

use super::schema::{Schema, choice, list, number, object, opt, req, text, texts};
use serde_json::{Value, json};

/// The group.
pub const GROUP: &str = "getambassador.io";

/// A kind.
struct EmissaryKind {
    kind: &'static str,
    plural: &'static str,
    about: &'static str,
    /// The oldest version that there is.
    since: Since,
    spec: Schema,
    status: Option<Schema>,
    columns: &'static [(&'static str, &'static str, &'static str)],
}

/// The oldest version of a kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Since {
    V1,
    V2,
    V3alpha1,
}

/// All CRDs.
pub fn crds() -> Vec<Value> {
    let mut kinds =
        vec![mapping::http(), mapping::tcp(), host::kind(), listener::kind(), tls_context::kind(), module::kind()];
    kinds.extend([service::auth(), service::rate_limit(), service::log(), service::tracing(), dev_portal::kind()]);
    kinds.extend(resolver::kinds());
    kinds.iter().map(crd).collect()
}

fn crd(of: &EmissaryKind) -> Value {
    let EmissaryKind { kind, plural, since, spec, .. } = of;
    let spec = Value::from(spec.clone());
    let mut versions = Vec::new();
    if *since <= Since::V1 {
        versions.push(version(of, "v1", v2::of(kind, spec.clone())));
    }
    if *since <= Since::V2 {
        versions.push(version(of, "v2", v2::of(kind, spec.clone())));
    }
    let mut stored = spec.clone();
    if *since <= Since::V2 {
        v2::keep(&mut stored, &v2::of(kind, spec));
    }
    versions.push(version(of, "v3alpha1", stored));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP,
            "names": {
                "categories": ["ambassador-crds"], "kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                "singular": kind.to_lowercase(),
            },
            "scope": "Namespaced",
            "versions": versions,
        },
    })
}

fn version(of: &EmissaryKind, name: &str, spec: Value) -> Value {
    let mut schema = Value::from(object(
        of.about,
        [
            opt("apiVersion", text("The group and version of the API that the object is written for.")),
            opt("kind", text("The kind of the object.")),
            opt("metadata", object("", [])),
        ],
    ));
    schema["properties"]["spec"] = spec;
    let mut version = json!({
        "name": name, "served": true, "storage": name == "v3alpha1", "schema": { "openAPIV3Schema": schema },
    });
    if let Some(status) = &of.status {
        version["schema"]["openAPIV3Schema"]["properties"]["status"] = status.clone().into();
        version["subresources"] = json!({ "status": {} });
    }
    if !of.columns.is_empty() {
        let column = |(name, path, kind): &(&str, &str, &str)| json!({ "name": name, "jsonPath": path, "type": kind });
        version["additionalPrinterColumns"] = of.columns.iter().map(column).collect();
    }
    version
}

/// The ids that an object is for.
fn ids() -> Schema {
    list("Ids of the instances that read the object; `default` if not set.", text(""))
}

/// Labels of objects.
fn selector(about: &str) -> Schema {
    let expression = object(
        "A condition on a label.",
        [
            req("key", text("Key of the label.")),
            req("operator", text("In, NotIn, Exists or DoesNotExist.")),
            opt("values", list("Values that the label is compared with.", text("")).atomic()),
        ],
    );
    let fields = [
        opt("matchLabels", texts("Labels that an object must have.")),
        opt("matchExpressions", list("Conditions on labels; no effect.", expression).atomic()),
    ];
    object(about, fields).with("x-kubernetes-map-type", "atomic")
}

/// How `v2` writes TLS towards a service.
fn explicit_tls() -> Schema {
    object(
        "How v2 writes TLS towards the service; no effect.",
        [
            opt("tls", choice("How v2 writes tls; no effect.", &["", "null", "bool:true", "bool:false", "string"])),
            opt(
                "serviceScheme",
                text("The scheme that v2 writes; no effect.").pattern("^([hH][tT][tT][pP][sS]?://)?$"),
            ),
        ],
    )
}

/// Limits of connections and requests.
fn circuit_breakers() -> Schema {
    let limits = object(
        "Limits for requests of one priority.",
        [
            opt("priority", choice("Priority of the requests; default if not set.", &["default", "high"])),
            opt("max_connections", number("Maximum number of connections; 1024 if not set.")),
            opt("max_pending_requests", number("Maximum number of requests that wait; 1024 if not set.")),
            opt("max_requests", number("Maximum number of parallel requests; 1024 if not set.")),
            opt("max_retries", number("Maximum number of parallel retries; 3 if not set.")),
        ],
    );
    list("Circuit breakers of each proxy.", limits)
}
