//! Objects from YAML into the API server, by server-side apply.
//!
//! In: files, folders or text. Out: the objects exist, and CRDs among them are established. Namespaces and CRDs go first,
//! the rest all at once after them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt, core::GroupVersionKind, discovery};

use super::Error;
use crate::deadline::within;

const ESTABLISHED: Duration = Duration::from_secs(60);

/// The objects of files, and of all YAML files in folders.
pub fn read(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Vec<DynamicObject>, Error> {
    let mut objects = Vec::new();
    for path in paths {
        for file in files(path.as_ref())? {
            let text = std::fs::read_to_string(&file).map_err(|source| Error::Read { path: file.clone(), source })?;
            objects.extend(parse(&text, &file.display().to_string())?);
        }
    }
    Ok(objects)
}

fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).map_err(|source| Error::Read { path: path.into(), source })?;
    let yaml = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default();
        // Folders of CRDs often carry a note for kustomize, which is no object.
        file.extension().is_some_and(|end| end == "yaml" || end == "yml") && name != "kustomization.yaml"
    };
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(yaml).collect();
    files.sort();
    Ok(files)
}

/// The objects of a text of one or more documents.
pub fn parse(text: &str, place: &str) -> Result<Vec<DynamicObject>, Error> {
    let bad = |reason: String| Error::Yaml { place: place.to_owned(), reason };
    let documents: Vec<serde_json::Value> =
        serde_saphyr::from_multiple(text).map_err(|error| bad(error.to_string()))?;
    let whole = documents.into_iter().filter(|document| !document.is_null());
    whole.map(|document| serde_json::from_value(document).map_err(|error| bad(error.to_string()))).collect()
}

/// Applies them, and waits for the CRDs.
pub async fn apply(client: Client, objects: Vec<DynamicObject>) -> Result<(), Error> {
    let is_ground = |object: &DynamicObject| matches!(&*kind(object).kind, "Namespace" | "CustomResourceDefinition");
    let (ground, rest): (Vec<_>, Vec<_>) = objects.into_iter().partition(is_ground);
    try_join_all(ground.iter().map(|object| apply_one(&client, object))).await?;
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    let established = ground.iter().filter(|object| kind(object).kind == "CustomResourceDefinition").map(async |crd| {
        let name = crd.name_any();
        let waiting = await_condition(crds.clone(), &name, conditions::is_crd_established());
        let done = within(format!("the CRD {name} to be established"), ESTABLISHED, waiting).await?;
        done.map(drop).map_err(|source| Error::NotEstablished { name: name.clone(), source })
    });
    try_join_all(established).await?;
    try_join_all(rest.iter().map(|object| apply_one(&client, object))).await?;
    Ok(())
}

async fn apply_one(client: &Client, object: &DynamicObject) -> Result<(), Error> {
    let kind = kind(object);
    let failed = |source| Error::Apply { object: format!("{} {}", kind.kind, object.name_any()), source };
    let (resource, abilities) = discovery::pinned_kind(client, &kind).await.map_err(failed)?;
    let api: Api<DynamicObject> = match abilities.scope {
        discovery::Scope::Cluster => Api::all_with(client.clone(), &resource),
        discovery::Scope::Namespaced => {
            let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
            Api::namespaced_with(client.clone(), &namespace, &resource)
        }
    };
    let params = PatchParams::apply("testbed").force();
    api.patch(&object.name_any(), &params, &Patch::Apply(object)).await.map_err(failed)?;
    Ok(())
}

fn kind(object: &DynamicObject) -> GroupVersionKind {
    let types = object.types.clone().unwrap_or_default();
    let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    GroupVersionKind::gvk(group, version, &types.kind)
}
