//! `cargo xtask deploy`: everything that installs Sesame, from one description.
//!
//! In: the [`settings`] with their defaults, and the [`objects`], which refer to them. Out, in `deploy/`:
//!
//! | file | what |
//! |---|---|
//! | `sesame.yaml` | the defaults: Envoy as a DaemonSet with host ports |
//! | `sesame-deployment.yaml` | Envoy as a Deployment behind a load balancer |
//! | `sesame-gateway.yaml` | no shared proxies: only those that are created for Gateways |
//! | `sesame-certgen.yaml` | certificates made by a Job; the controller may write no Secret |
//! | `kustomize/` | a base: the objects of `sesame.yaml`, a file for each part |
//! | `chart/` | a Helm chart; with defaults it renders the objects of `sesame.yaml` |
//! | `monitoring/` | alerts of Prometheus and dashboards of Grafana |
//!
//! The Namespace is in the YAML and not in the chart: Helm has `--create-namespace`.

mod certificates;
mod chart;
mod controller;
mod envoy;
mod monitoring;
mod namespace;
mod network;
mod pods;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use manifest::{Document, Values, When};
use serde_json::{Value, json};

/// The namespace of the YAML.
const NAMESPACE: &str = "projectsesame";

const HEAD: &str = "# Made by `cargo xtask deploy`; changes belong in xtask/src/deploy.\n";

/// A part of the installation, and its name as a file.
struct Part {
    file: &'static str,
    documents: Vec<Document>,
}

/// All objects but the Namespace.
fn parts() -> Vec<Part> {
    let part = |file, documents| Part { file, documents };
    vec![
        part("access.yaml", [namespace::accounts(), roles()].concat()),
        part("certificates.yaml", certificates::documents()),
        part("controller.yaml", controller::documents()),
        part("envoy.yaml", envoy::documents()),
        part("network.yaml", [network::documents(), monitoring::documents()].concat()),
    ]
}

/// The roles of the controller, unless somebody else creates them.
fn roles() -> Vec<Document> {
    let create = |document: Document| {
        let conditions = [When::Set("rbac.create")].into_iter().chain(document.when.clone());
        document.when(When::All(conditions.collect()))
    };
    rbac::documents().into_iter().map(create).collect()
}

/// The settings of each form that is shipped as YAML, over the defaults.
fn forms() -> [(&'static str, &'static str, Value); 4] {
    [
        (
            "sesame.yaml",
            "Sesame with Envoy as a DaemonSet: ports 80 and 443 of each node, and a Service of type LoadBalancer.",
            json!({}),
        ),
        (
            "sesame-deployment.yaml",
            "Sesame with Envoy as a Deployment, behind a Service of type LoadBalancer.",
            json!({ "envoy": { "kind": "Deployment" } }),
        ),
        (
            "sesame-gateway.yaml",
            "Sesame for Gateway API alone: every Gateway gets proxies of its own, and there are no shared ones. Apply the CRDs\n\
             of Gateway API first.",
            json!({
                "envoy": { "kind": "none" },
                "ingressClass": { "create": false },
                "gatewayClass": { "create": true },
                "controller": { "args": ["--ingress-class-name=sesame"] },
            }),
        ),
        (
            "sesame-certgen.yaml",
            "Sesame with Envoy as a Deployment, and with certificates that a Job makes once: the controller may write no Secret.",
            json!({ "envoy": { "kind": "Deployment" }, "certificates": { "issuer": "certgen" } }),
        ),
    ]
}

/// The defaults with others over them.
fn with(defaults: &Value, over: &Value) -> Value {
    match (defaults, over) {
        (Value::Object(defaults), Value::Object(over)) => {
            let mut merged = defaults.clone();
            for (key, value) in over {
                let below = merged.get(key).unwrap_or(&Value::Null);
                merged.insert(key.clone(), with(below, value));
            }
            Value::Object(merged)
        }
        (_, over) => over.clone(),
    }
}

/// Every file below `deploy`, with its text.
fn files() -> BTreeMap<String, String> {
    let defaults = settings::defaults();
    let mut files = BTreeMap::new();
    for (name, comment, over) in forms() {
        let settings = with(&defaults, &over);
        let values = Values { settings: &settings, namespace: NAMESPACE };
        let comment: String = comment.lines().map(|line| format!("# {line}\n")).collect();
        let mut text = format!("{HEAD}{comment}{}", manifest::yaml(&[namespace::document()], values));
        for part in parts() {
            text += &manifest::yaml(&part.documents, values);
        }
        files.insert(name.to_owned(), text);
    }
    let values = Values { settings: &defaults, namespace: NAMESPACE };
    let mut resources = vec!["namespace.yaml"];
    files.insert(
        "kustomize/namespace.yaml".to_owned(),
        HEAD.to_owned() + &manifest::yaml(&[namespace::document()], values),
    );
    for part in parts() {
        let text = manifest::yaml(&part.documents, values);
        files.insert(format!("kustomize/{}", part.file), format!("{HEAD}{text}"));
        resources.push(part.file);
    }
    let resources: String = resources.iter().map(|file| format!("- {file}\n")).collect();
    let kustomization =
        format!("{HEAD}apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{resources}");
    files.insert("kustomize/kustomization.yaml".to_owned(), kustomization);
    for (name, text) in chart::files(&defaults) {
        files.insert(format!("chart/{name}"), text);
    }
    files.extend(monitoring::files());
    files
}

/// Writes the files, or with `check` only says whether they are what would be written.
pub fn run(check: bool) -> Result<()> {
    let folder = crate::root().join("deploy");
    let files = files();
    let mut stale = superfluous(&folder, &files)?;
    for (name, text) in &files {
        let path = folder.join(name);
        if std::fs::read_to_string(&path).is_ok_and(|there| there == *text) {
            continue;
        }
        if check {
            stale.push(name.clone());
            continue;
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        }
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    match &stale[..] {
        [] => Ok(()),
        stale => bail!("not as the description says: {}; run `cargo xtask deploy`, or remove them", stale.join(", ")),
    }
}

/// What stands in folders of ours and is not made any more.
fn superfluous(deploy: &Path, files: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for folder in ["kustomize", "chart", "chart/templates", "monitoring", "monitoring/dashboards"] {
        let Ok(entries) = std::fs::read_dir(deploy.join(folder)) else { continue };
        for entry in entries {
            let entry = entry?;
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_file() && !files.contains_key(&name) {
                found.push(name);
            }
        }
    }
    Ok(found)
}
