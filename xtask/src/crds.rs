//! `cargo xtask crds`: the CRDs that Sesame ships, from one description of our own.
//!
//! In: the schemas in [`http_proxy`] and [`delegation`], written with the words of [`schema`]. Out: a file of YAML for
//! each kind and group in `deploy/crds/`. Objects written for Contour are taken as they are, so a rule here is never
//! stricter than Contour's; its own CRD is what [`tests`] compares with, field by field.
//!
//! The two groups have the same schema: what is learned about one holds for the other.

mod delegation;
mod http_proxy;
mod schema;
mod status;
#[cfg(test)]
mod tests;
mod yaml;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// The API server and etcd take no more in one object, and `kubectl apply` no more in one annotation.
const LARGEST: usize = 262_144;

/// The groups that each kind is served in.
const GROUPS: [&str; 2] = ["projectcontour.io", "projectsesame.io"];

/// What is said about a kind besides its schema.
struct Names {
    kind: &'static str,
    singular: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
}

/// Writes the files, or with `check` only says whether they are what would be written.
pub fn run(check: bool) -> Result<()> {
    let folder = crate::root().join("deploy/crds");
    let mut stale = Vec::new();
    for (name, text) in files() {
        let path: PathBuf = folder.join(&name);
        if text.len() > LARGEST {
            bail!("{name} has {} bytes; {LARGEST} is the limit", text.len());
        }
        if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
            continue;
        }
        if check {
            stale.push(name);
        } else {
            std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    match &stale[..] {
        [] => Ok(()),
        stale => bail!("not as the description says: {}; run `cargo xtask crds`", stale.join(", ")),
    }
}

/// Each file: its name and its text.
fn files() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for group in GROUPS {
        for crd in [http_proxy::crd(group), delegation::crd(group)] {
            let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            files.push((format!("{name}.yaml"), yaml::document(&crd)));
        }
    }
    files
}

/// A CRD with one version, `v1`, that is served and stored.
fn crd(group: &str, names: &Names, schema: Value, columns: Value) -> Value {
    let Names { kind, singular, plural, short } = names;
    let mut version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": { "openAPIV3Schema": schema },
        "subresources": { "status": {} },
    });
    if columns.as_array().is_some_and(|columns| !columns.is_empty()) {
        version["additionalPrinterColumns"] = columns;
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "names": {
                "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular,
                "shortNames": short,
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    })
}
