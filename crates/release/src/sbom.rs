//! The bill of materials: every crate that is linked into the binary, and the system's libraries beside it, as SPDX 2.3.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use image::Library;
use serde_json::{Value, json};

use crate::{VERSION, target::Target};

/// The document, as JSON. The same tree and the same binary give the same bytes.
pub fn spdx(binary: &Path, target: &Target, libraries: &[Library]) -> Result<Vec<u8>> {
    let digest = image::sha256(&std::fs::read(binary).with_context(|| binary.display().to_string())?);
    let metadata = metadata(&target.triple())?;
    let linked = linked(&metadata)?;
    let mut packages = vec![json!({
        "SPDXID": "SPDXRef-sesame",
        "name": "sesame",
        "versionInfo": VERSION,
        "downloadLocation": "https://github.com/projectsesame/sesame",
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION",
        "filesAnalyzed": false,
        "checksums": [{ "algorithm": "SHA256", "checksumValue": digest }],
    })];
    let mut relations = vec![json!({
        "spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-sesame",
    })];
    for package in crates(&metadata, &linked).into_iter().chain(system_libraries(libraries)) {
        relations.push(json!({
            "spdxElementId": "SPDXRef-sesame", "relationshipType": "DEPENDS_ON", "relatedSpdxElement": package["SPDXID"],
        }));
        packages.push(package);
    }
    let document = json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("sesame-{VERSION}"),
        "documentNamespace": format!("https://github.com/projectsesame/sesame/spdx/{VERSION}/{digest}"),
        "creationInfo": { "created": "1970-01-01T00:00:00Z", "creators": ["Tool: sesame-release"] },
        "packages": packages,
        "relationships": relations,
    });
    Ok(serde_json::to_vec_pretty(&document)?)
}

fn metadata(triple: &str) -> Result<Value> {
    let mut cargo = crate::cargo();
    cargo.args(["metadata", "--format-version=1", "--locked", "--filter-platform", triple]).current_dir(crate::root());
    let output = cargo.output().context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The ids of all packages that the program is linked from: its dependencies, without those of tests and of builds.
fn linked(metadata: &Value) -> Result<BTreeSet<String>> {
    let nodes = metadata["resolve"]["nodes"].as_array().context("cargo metadata has no graph")?;
    let nodes: BTreeMap<&str, &Value> = nodes.iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let root =
        packages.into_iter().find(|package| package["name"] == "sesame").context("there is no package sesame")?;
    let (mut found, mut queue) = (BTreeSet::new(), vec![root["id"].as_str().unwrap_or_default().to_owned()]);
    while let Some(id) = queue.pop() {
        if !found.insert(id.clone()) {
            continue;
        }
        for dependency in nodes.get(id.as_str()).and_then(|node| node["deps"].as_array()).into_iter().flatten() {
            let mut kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            if kinds.any(|kind| kind["kind"].is_null()) {
                queue.extend(dependency["pkg"].as_str().map(str::to_owned));
            }
        }
    }
    Ok(found)
}

/// The crates of others.
fn crates(metadata: &Value, linked: &BTreeSet<String>) -> Vec<Value> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let foreign =
        packages.filter(|it| !it["source"].is_null() && it["id"].as_str().is_some_and(|id| linked.contains(id)));
    let mut packages: Vec<Value> = foreign
        .map(|package| {
            let text = |key: &str| package[key].as_str().unwrap_or_default();
            let (name, version) = (text("name"), text("version"));
            // Old manifests have a slash where SPDX has OR.
            let licence = package["license"].as_str();
            let licence = licence.map(|text| text.split('/').map(str::trim).collect::<Vec<_>>().join(" OR "));
            package_of(
                &format!("crate-{name}-{version}"),
                name,
                version,
                &format!("https://crates.io/crates/{name}/{version}"),
                licence.as_deref().unwrap_or("NOASSERTION"),
                &format!("pkg:cargo/{name}@{version}"),
            )
        })
        .collect();
    packages.sort_by_key(|package| package["SPDXID"].to_string());
    packages
}

fn package_of(id: &str, name: &str, version: &str, location: &str, licence: &str, purl: &str) -> Value {
    let id: String = id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    json!({
        "SPDXID": format!("SPDXRef-{id}"),
        "name": name,
        "versionInfo": version,
        "downloadLocation": location,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        "filesAnalyzed": false,
        "externalRefs": [{ "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl }],
    })
}

/// The packages of the system that the binary's shared libraries come from; the libraries themselves where no package is known.
fn system_libraries(libraries: &[Library]) -> Vec<Value> {
    let mut packages = BTreeMap::new();
    for Library { host, .. } in libraries {
        let real = std::fs::canonicalize(host).unwrap_or_else(|_| host.clone());
        // Where /lib is a link to /usr/lib, a package may have either path.
        let name = [host, &real].into_iter().find_map(|path| {
            let owner = Command::new("dpkg-query").arg("-S").arg(path).output().ok()?;
            let text = String::from_utf8_lossy(&owner.stdout).into_owned();
            if owner.status.success() { Some(text.split(':').next()?.to_owned()) } else { None }
        });
        let file = real.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let version = name.as_ref().and_then(|name| {
            let output = Command::new("dpkg-query").args(["-W", "-f=${Version}", name]).output().ok()?;
            Some(String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned())
        });
        let name = name.unwrap_or(file);
        let version = version.unwrap_or_else(|| "NOASSERTION".to_owned());
        let purl = format!("pkg:deb/debian/{name}@{version}");
        let package = package_of(&format!("system-{name}"), &name, &version, "NOASSERTION", "NOASSERTION", &purl);
        packages.insert(name, package);
    }
    packages.into_values().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const REGISTRY: Option<&str> = Some("registry+https://github.com/rust-lang/crates.io-index");

    fn package(name: &str, source: Option<&str>, license: Option<&str>) -> Value {
        let id = format!("{name}-id");
        json!({ "id": id, "name": name, "version": "1.2.0+x", "source": source, "license": license })
    }

    /// A package in the graph, with its dependencies and their kinds.
    fn node(name: &str, uses: &[(&str, Option<&str>)]) -> Value {
        let dependency = |(name, kind): &(&str, Option<&str>)| json!({ "pkg": format!("{name}-id"), "dep_kinds": [{ "kind": kind, "target": null }] });
        json!({ "id": format!("{name}-id"), "deps": uses.iter().map(dependency).collect::<Vec<_>>() })
    }

    /// `cargo metadata` of a workspace: sesame uses its own crate `core`, which uses `alpha`, which uses `beta` when it is built
    /// and `gamma` always; `delta` is for tests alone, `epsilon` is used by nobody.
    fn graph() -> Value {
        json!({
            "packages": [
                package("sesame", None, Some("Apache-2.0")),
                package("core", None, Some("Apache-2.0")),
                package("gamma", REGISTRY, None),
                package("alpha", REGISTRY, Some("MIT/Apache-2.0")),
                package("beta", REGISTRY, Some("MIT")),
                package("delta", REGISTRY, Some("MIT")),
                package("epsilon", REGISTRY, Some("MIT")),
            ],
            "resolve": { "nodes": [
                node("sesame", &[("core", None), ("delta", Some("dev"))]),
                node("core", &[("alpha", None)]),
                node("alpha", &[("beta", Some("build")), ("gamma", None), ("sesame", Some("dev"))]),
                node("beta", &[]),
                node("gamma", &[]),
                node("delta", &[]),
                node("epsilon", &[("alpha", None)]),
            ] },
        })
    }

    #[test]
    fn crates_of_others_that_are_linked_are_listed_and_no_others() {
        let graph = graph();
        let ids: Vec<String> = linked(&graph).unwrap().into_iter().collect();
        assert_eq!(ids, ["alpha-id", "core-id", "gamma-id", "sesame-id"]);
        let packages = crates(&graph, &linked(&graph).unwrap());
        let of = |key: &str| packages.iter().map(|package| package[key].clone()).collect::<Vec<_>>();
        // An id of SPDX has letters, digits, dots and hyphens.
        assert_eq!(of("SPDXID"), ["SPDXRef-crate-alpha-1.2.0-x", "SPDXRef-crate-gamma-1.2.0-x"]);
        assert_eq!(of("versionInfo"), ["1.2.0+x", "1.2.0+x"]);
        assert_eq!(of("licenseDeclared"), ["MIT OR Apache-2.0", "NOASSERTION"]);
        assert_eq!(packages[0]["externalRefs"][0]["referenceLocator"], "pkg:cargo/alpha@1.2.0+x");
    }

    #[test]
    fn without_the_program_there_is_no_bill() {
        let mut graph = graph();
        graph["packages"][0]["name"] = json!("other");
        assert_eq!(linked(&graph).unwrap_err().to_string(), "there is no package sesame");
    }

    /// A library that no package of the system owns is listed by its file.
    #[test]
    fn a_library_is_listed_once() {
        let library = Library { host: "/nowhere/libodd.so.3".into(), inside: "/lib/libodd.so.3".to_owned() };
        assert_eq!(system_libraries(&[]), Vec::<Value>::new());
        let packages = system_libraries(&[library.clone(), library]);
        assert_eq!(packages.len(), 1);
        assert_eq!((&packages[0]["name"], &packages[0]["versionInfo"]), (&json!("libodd.so.3"), &json!("NOASSERTION")));
    }
}
