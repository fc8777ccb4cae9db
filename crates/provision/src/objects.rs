//! What is created for a fleet: a pure function of its spec and the settings.
//!
//! In: a [`FleetSpec`], the [`Settings`] and the CA that proxies know the xDS server by. Out: three [`AppliedObject`]s, each with
//! exactly the fields that Sesame owns under server-side apply; everything else of the objects is other people's to set.
//!
//! Labels and annotations of the Gateway's `infrastructure` go onto everything, pods included. They never replace one of ours,
//! and what only Kubernetes or Sesame may write is left out ([`is_reserved`]).

pub mod deployment;
mod service;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest;
use kube::api::ApiResource;
use serde_json::{Map, Value, json};

use crate::spec::{FleetSpec, Pages};
use crate::{Settings, name};

pub use deployment::AUDIENCE;

/// The label by which people and tools find what belongs to a Gateway.
pub const GATEWAY_LABEL: &str = "gateway.networking.k8s.io/gateway-name";
/// The label of everything that is created, with the [name](crate::name) of the fleet's objects: it selects the pods.
pub const FLEET_LABEL: &str = "projectsesame.io/fleet";
/// The label of everything that is created, with the namespace that Sesame is installed in.
pub const INSTALLATION_LABEL: &str = "projectsesame.io/installation";
/// The label that says who wrote the object.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "sesame");
/// The annotation with the hash of what was last applied: it differs if there is something to apply or to take away.
pub const HASH_ANNOTATION: &str = "projectsesame.io/applied-hash";

/// The kinds of the objects of a fleet, in the order in which they are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// What the proxies are for the API server: without any right, but with tokens for the xDS server.
    ServiceAccount,
    /// The proxies.
    Deployment,
    /// Where clients reach them.
    Service,
}

impl ObjectKind {
    /// All of them.
    pub const ALL: [ObjectKind; 3] = [ObjectKind::ServiceAccount, ObjectKind::Deployment, ObjectKind::Service];

    /// Group, version and plural.
    pub fn resource(self) -> ApiResource {
        match self {
            ObjectKind::ServiceAccount => ApiResource::erase::<k8s_openapi::api::core::v1::ServiceAccount>(&()),
            ObjectKind::Deployment => ApiResource::erase::<k8s_openapi::api::apps::v1::Deployment>(&()),
            ObjectKind::Service => ApiResource::erase::<k8s_openapi::api::core::v1::Service>(&()),
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource().kind)
    }
}

/// An object as it is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedObject {
    /// Its kind.
    pub kind: ObjectKind,
    /// The fields that are ours.
    pub body: Value,
    /// The hash of them, which is also an annotation of the object.
    pub hash: String,
}

/// Everything of a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetObjects {
    /// What the fleet should be.
    pub spec: Arc<FleetSpec>,
    /// The name of every object.
    pub name: String,
    /// The objects. A fleet without a port has no Service: Kubernetes knows none without ports. One that exists stays, with
    /// its address.
    pub objects: Vec<AppliedObject>,
}

impl FleetObjects {
    /// The objects of a fleet. `ca` is the PEM text by which proxies know the xDS server, none without TLS.
    pub fn new(spec: Arc<FleetSpec>, settings: &Settings, ca: Option<&str>) -> Self {
        let name = name::of(&spec.name, &spec.owner.uid);
        let pages = Pages::beside(&spec.ports);
        let labels = labels(&spec, settings, &name);
        let service = (!spec.ports.is_empty()).then(|| (ObjectKind::Service, service::spec(&spec, &name)));
        let parts = [
            (ObjectKind::ServiceAccount, json!({ "automountServiceAccountToken": false })),
            (ObjectKind::Deployment, json!({ "spec": deployment::spec(&spec, settings, ca, &name, pages, &labels) })),
        ];
        let parts = parts.into_iter().chain(service.map(|(kind, spec)| (kind, json!({ "spec": spec }))));
        let objects = parts.map(|(kind, rest)| applied(kind, &spec, &name, &labels, rest)).collect();
        Self { spec, name, objects }
    }

    /// The object of a kind.
    pub fn get(&self, kind: ObjectKind) -> Option<&AppliedObject> {
        self.objects.iter().find(|object| object.kind == kind)
    }
}

fn applied(
    kind: ObjectKind,
    spec: &FleetSpec,
    name: &str,
    labels: &BTreeMap<String, String>,
    rest: Value,
) -> AppliedObject {
    let resource = kind.resource();
    let mut body = json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": name,
            "namespace": &*spec.name.namespace,
            "labels": labels,
            "annotations": annotations(spec),
            "ownerReferences": [{
                "apiVersion": spec.owner.api_version,
                "kind": spec.owner.kind,
                "name": &*spec.name.name,
                "uid": spec.owner.uid,
                "controller": true,
            }],
        },
    });
    if let (Value::Object(body), Value::Object(rest)) = (&mut body, rest) {
        body.extend(rest);
    }
    // Keys of objects are sorted, so equal objects have equal texts.
    let digest = digest::digest(&digest::SHA256, body.to_string().as_bytes());
    let mut hash: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    hash.truncate(16);
    body["metadata"]["annotations"][HASH_ANNOTATION] = json!(hash);
    AppliedObject { kind, body, hash }
}

/// The Gateway's labels, and over them ours.
fn labels(spec: &FleetSpec, settings: &Settings, name: &str) -> BTreeMap<String, String> {
    let ours = [
        (MANAGED_BY.0, MANAGED_BY.1.to_owned()),
        ("app.kubernetes.io/name", "envoy".to_owned()),
        (GATEWAY_LABEL, name::label(&spec.name.name)),
        (FLEET_LABEL, name.to_owned()),
        (INSTALLATION_LABEL, settings.namespace.clone()),
    ];
    let theirs = spec.labels.iter().filter(|(key, _)| !is_reserved(key));
    let mut labels: BTreeMap<String, String> = theirs.map(|(key, value)| (key.clone(), value.clone())).collect();
    labels.extend(ours.map(|(key, value)| (key.to_owned(), value)));
    labels
}

/// The Gateway's annotations.
fn annotations(spec: &FleetSpec) -> Map<String, Value> {
    let theirs = spec.annotations.iter().filter(|(key, _)| !is_reserved(key));
    theirs.map(|(key, value)| (key.clone(), json!(value))).collect()
}

/// Keys that a Gateway's infrastructure cannot set: those of Sesame, and those that the controllers of Deployments write, who
/// would write them again each time.
pub fn is_reserved(key: &str) -> bool {
    let domain = key.split_once('/').map(|(domain, _)| domain);
    matches!(domain, Some("projectsesame.io" | "deployment.kubernetes.io"))
        || key == "pod-template-hash"
        || key == "kubectl.kubernetes.io/last-applied-configuration"
}

#[cfg(test)]
mod tests;
