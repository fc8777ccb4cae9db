//! `cargo xtask crds`: the CRDs that Sesame ships, from one description of our own.
//!
//! In: the schemas of [`http_proxy`] and of the kinds beside it, written with the words of [`schema`]. Out: a file of YAML for
//! each kind and group in `deploy/crds/`. Objects written for Contour are taken as they are, so a rule here is never
//! stricter than Contour's; its own CRD is what [`tests`] compares with, field by field.
//!
//! The two groups have the same schema: what is learned about one holds for the other.

mod configuration;
mod delegation;
mod emissary;
mod extension_service;
mod http_proxy;
mod schema;
mod status;
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
    version: &'static str,
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
    let ours = GROUPS.into_iter().flat_map(|group| {
        [http_proxy::crd(group), delegation::crd(group), extension_service::crd(group), configuration::crd(group)]
    });
    for crd in ours.chain(emissary::crds()) {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        files.push((format!("{name}.yaml"), yaml::document(&crd)));
    }
    files
}

/// A CRD with one version, that is served and stored.
fn crd(group: &str, names: &Names, schema: Value, columns: Value) -> Value {
    let Names { kind, version, singular, plural, short } = names;
    let mut version = json!({
        "name": version, "served": true, "storage": true,
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

#[cfg(test)]
mod tests {
    //! Our CRDs beside Contour's, and beside our own types.

    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use std::collections::BTreeMap;

    /// Rules of Contour's CRD that ours has in another form, with the reason: the end of the path, the rule, why.
    const EXCEPTIONS: &[(&str, &str, &str)] = &[
        (".port", "exclusiveMaximum", "maximum 65535 is the same for whole numbers"),
        (".port", "maximum", "maximum 65535 is the same for whole numbers"),
        ("cookieRewritePolicies[].name", "pattern", "the same characters, as a range"),
        ("pathRewrite.value", "pattern", "the same characters, as a range"),
        ("spec.protocol", "enum", "http/1.1 is spoken, too"),
        ("jwtProviders[]", "required", "keys may also come from a Secret: a rule asks for exactly one of the two"),
    ];

    /// Every schema of a tree by its path, with its rules.
    fn walk(schema: &Value, path: String, into: &mut BTreeMap<String, BTreeMap<String, Value>>) {
        let map = schema.as_object().unwrap();
        let below = ["properties", "items", "additionalProperties", "description"];
        let rules = map.iter().filter(|(rule, _)| !below.contains(&rule.as_str()));
        into.insert(path.clone(), rules.map(|(rule, value)| (rule.clone(), value.clone())).collect());
        for (name, field) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
            walk(field, format!("{path}.{name}"), into);
        }
        if let Some(items) = map.get("items") {
            walk(items, format!("{path}[]"), into);
        }
        if let Some(values) = map.get("additionalProperties") {
            walk(values, format!("{path}{{}}"), into);
        }
    }

    fn version(crd: &Value) -> &Value {
        &crd["spec"]["versions"][0]
    }

    fn versions(crd: &Value) -> &[Value] {
        crd["spec"]["versions"].as_array().unwrap()
    }

    fn schemas(version: &Value) -> BTreeMap<String, BTreeMap<String, Value>> {
        let mut into = BTreeMap::new();
        walk(&version["schema"]["openAPIV3Schema"], String::new(), &mut into);
        into
    }

    /// Contour's CRD of a kind, from its package.
    fn theirs(kind: &str) -> Value {
        let folder = parts::folder("contour-crds").unwrap();
        let text = std::fs::read_to_string(folder.join("01-crds.yaml")).unwrap();
        let documents = text.split("\n---\n").filter(|document| document.contains(&format!("kind: {kind}\n")));
        let document = documents.last().unwrap_or_else(|| panic!("no CRD of {kind}"));
        serde_saphyr::from_str(document).unwrap()
    }

    fn sorted(value: &Value) -> Value {
        match value {
            Value::Array(items) => {
                let mut items = items.clone();
                items.sort_by_key(Value::to_string);
                Value::Array(items)
            }
            other => other.clone(),
        }
    }

    fn compare(ours: &Value, theirs: &Value) {
        for field in ["kind", "listKind", "plural", "singular", "shortNames", "categories"] {
            assert_eq!(ours["spec"]["names"][field], theirs["spec"]["names"][field]);
        }
        assert_eq!(
            (&ours["metadata"]["name"], versions(ours).len()),
            (&theirs["metadata"]["name"], versions(theirs).len())
        );
        for (ours, theirs) in versions(ours).iter().zip(versions(theirs)) {
            compare_version(ours, theirs);
        }
    }

    fn compare_version(ours: &Value, theirs: &Value) {
        let mut missing = Vec::new();
        let own = schemas(ours);
        for (path, rules) in schemas(theirs) {
            let Some(here) = own.get(&path) else {
                missing.push(format!("{path}: there is no such field"));
                continue;
            };
            for (rule, value) in rules {
                let excepted = EXCEPTIONS.iter().any(|(end, name, _)| path.ends_with(end) && *name == rule);
                // CEL rules of ours may stand beside theirs.
                let holds = match (rule.as_str(), here.get(&rule)) {
                    ("x-kubernetes-validations", Some(Value::Array(list))) => {
                        value.as_array().unwrap().iter().all(|one| list.iter().any(|own| own["rule"] == one["rule"]))
                    }
                    (_, found) => found.map(sorted) == Some(sorted(&value)),
                };
                if !holds && !excepted {
                    missing.push(format!("{path}: {rule} is {value}, here {:?}", here.get(&rule)));
                }
            }
        }
        assert!(missing.is_empty(), "{} differences:\n{}", missing.len(), missing.join("\n"));
        let columns = |version: &Value| -> Vec<(Value, Value)> {
            let columns = version["additionalPrinterColumns"].as_array().cloned().unwrap_or_default();
            columns.iter().map(|column| (column["name"].clone(), column["jsonPath"].clone())).collect()
        };
        assert_eq!(columns(ours), columns(theirs));
        assert_eq!((&ours["name"], &ours["served"]), (&theirs["name"], &theirs["served"]));
        assert_eq!(ours["subresources"].get("status"), theirs["subresources"].get("status"));
    }

    #[test]
    fn every_field_and_rule_of_contour_is_there() {
        compare(&http_proxy::crd("projectcontour.io"), &theirs("HTTPProxy"));
        compare(&delegation::crd("projectcontour.io"), &theirs("TLSCertificateDelegation"));
        compare(&extension_service::crd("projectcontour.io"), &theirs("ExtensionService"));
        compare(&configuration::crd("projectcontour.io"), &theirs("ContourConfiguration"));
    }

    /// Emissary's CRDs as it installs them, by kind.
    fn emissary() -> BTreeMap<String, Value> {
        let file = parts::folder("emissary-crds").unwrap().join("emissary-crds.yaml.in");
        let text = std::fs::read_to_string(file).unwrap();
        let documents =
            text.split("\n---\n").filter(|document| document.contains("\nkind: CustomResourceDefinition\n"));
        let crds = documents.map(|document| serde_saphyr::from_str::<Value>(document).unwrap());
        crds.map(|crd| (crd["spec"]["names"]["kind"].as_str().unwrap().to_owned(), crd)).collect()
    }

    #[test]
    fn every_field_and_rule_of_emissary_is_there() {
        let theirs = emissary();
        let ours = super::emissary::crds();
        assert_eq!((ours.len(), theirs.len()), (14, 14));
        for crd in ours {
            compare(&crd, &theirs[crd["spec"]["names"]["kind"].as_str().unwrap()]);
            let stored: Vec<_> = versions(&crd).iter().filter(|version| version["storage"] == true).collect();
            assert!(matches!(stored[..], [stored] if stored["name"] == "v3alpha1"));
        }
    }

    /// In every version, of Emissary's CRDs and of ours.
    #[test]
    fn every_field_of_emissary_is_one_that_we_know() {
        let mut read = 0;
        for crd in emissary().into_values().chain(super::emissary::crds()) {
            let name = crd["spec"]["names"]["kind"].as_str().unwrap();
            let kind = kinds::kind::named(name).find(|kind| kind.group() == super::emissary::GROUP).unwrap();
            let mut served = Vec::new();
            for version in versions(&crd) {
                let number = version["name"].as_str().unwrap();
                let mut object = filled(&version["schema"]["openAPIV3Schema"]);
                if number == "v3alpha1" {
                    without_names_of_v2(&mut object);
                }
                object["apiVersion"] = json!(format!("{}/{number}", super::emissary::GROUP));
                object["metadata"] = json!({ "name": "all" });
                let decoded = kinds::decode_json(kind, object.to_string().as_bytes()).unwrap();
                let unknown: Vec<_> = decoded.unknown.iter().map(ToString::to_string).collect();
                assert_eq!((decoded.faults, unknown), (Vec::new(), Vec::new()), "{kind} {number}");
                served.insert(0, number);
                read += 1;
            }
            assert_eq!(kind.versions(), served, "{kind}");
        }
        assert_eq!(read, 2 * 39);
    }

    /// Without the names of `v2` that are stored beside those of `v3alpha1`: no object has both.
    fn without_names_of_v2(value: &mut Value) {
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|name, _| !name.starts_with("v3"));
            fields.values_mut().for_each(without_names_of_v2);
        }
    }

    #[test]
    fn every_exception_is_still_one() {
        let mut fields = schemas(version(&theirs("HTTPProxy")));
        fields.extend(schemas(version(&theirs("ExtensionService"))));
        for (end, rule, why) in EXCEPTIONS {
            let found = fields.iter().any(|(path, rules)| path.ends_with(end) && rules.contains_key(*rule));
            assert!(found, "{end} has no {rule} any more ({why})");
        }
    }

    /// What `kubectl explain` prints about a field is the description in the schema: each has one, in a sentence.
    #[test]
    fn every_field_is_explained() {
        fn fields(schema: &Value, path: &str, silent: &mut Vec<String>) {
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                let path = format!("{path}.{name}");
                let about = field["description"].as_str().unwrap_or_default();
                // The API server has its own words about metadata.
                if path != ".metadata" && !(about.ends_with('.') && about.contains(' ')) {
                    silent.push(format!("{path}: {about:?}"));
                }
                fields(field, &path, silent);
            }
            if let Some(items) = schema.get("items") {
                fields(items, &format!("{path}[]"), silent);
            }
        }
        let ours = [http_proxy::crd, delegation::crd, extension_service::crd, configuration::crd];
        let ours = ours.into_iter().map(|of| of("projectsesame.io"));
        for crd in ours.chain(super::emissary::crds()) {
            let mut silent = Vec::new();
            for version in versions(&crd) {
                fields(&version["schema"]["openAPIV3Schema"], "", &mut silent);
            }
            assert!(silent.is_empty(), "{}:\n{}", crd["metadata"]["name"], silent.join("\n"));
        }
        let http_proxy = http_proxy::crd("projectsesame.io");
        let spec = &version(&http_proxy)["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let timeouts = &spec["properties"]["routes"]["items"]["properties"]["timeoutPolicy"]["properties"];
        for (field, says) in [("response", "504"), ("idle", "stream-idle-timeout"), ("idleConnection", "keep-alive")] {
            let about = timeouts[field]["description"].as_str().unwrap();
            assert!(about.contains(says), "{field}: {about}");
        }
    }

    #[test]
    fn the_files_are_what_the_description_says() {
        run(true).unwrap();
    }

    #[test]
    fn the_two_groups_have_one_schema() {
        for of in [http_proxy::crd, delegation::crd, extension_service::crd, configuration::crd] {
            let [contour, sesame] = GROUPS.map(of);
            assert_eq!(version(&contour), version(&sesame));
        }
    }

    /// A value for each field of a schema.
    fn filled(schema: &Value) -> Value {
        if let Some(words) = schema["enum"].as_array() {
            return words[0].clone();
        }
        match schema["type"].as_str().unwrap() {
            "string" => json!("1s"),
            "boolean" => json!(true),
            "integer" => json!(1),
            "array" => json!([filled(&schema["items"])]),
            _ => match (schema["properties"].as_object(), schema.get("additionalProperties")) {
                (Some(fields), _) => fields.iter().map(|(name, field)| (name.clone(), filled(field))).collect(),
                (None, Some(values)) => json!({ "key": filled(values) }),
                (None, None) => json!({}),
            },
        }
    }

    #[test]
    fn every_field_is_one_that_we_read() {
        for (crd, kind) in [
            (http_proxy::crd("projectsesame.io"), kinds::kind::SESAME_HTTP_PROXY),
            (delegation::crd("projectsesame.io"), kinds::kind::SESAME_TLS_CERTIFICATE_DELEGATION),
            (extension_service::crd("projectsesame.io"), kinds::kind::SESAME_EXTENSION_SERVICE),
            (configuration::crd("projectsesame.io"), kinds::kind::SESAME_CONFIGURATION),
        ] {
            let mut object = json!({ "metadata": { "name": "all" } });
            object["spec"] = filled(&version(&crd)["schema"]["openAPIV3Schema"]["properties"]["spec"]);
            let decoded = kinds::decode_json(kind, object.to_string().as_bytes()).unwrap();
            assert_eq!((decoded.faults, decoded.unknown), (Vec::new(), Vec::new()));
        }
    }

    /// The CRDs of a channel of Gateway API, by kind.
    fn gateway_api(channel: &str) -> BTreeMap<String, Value> {
        let folder = parts::folder("gateway-api-crds").unwrap().join(channel);
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let texts = files.map(|file| std::fs::read_to_string(file).unwrap());
        let crds = texts.filter(|text| text.contains("\nkind: CustomResourceDefinition\n"));
        let crds = crds.map(|text| serde_saphyr::from_str::<Value>(&text).unwrap());
        crds.map(|crd| (crd["spec"]["names"]["kind"].as_str().unwrap().to_owned(), crd)).collect()
    }

    /// What the API server may send us of a kind we either read or list as unread; and the row has what the CRD says. Both channels
    /// have every kind, and the standard channel serves some of the versions.
    #[test]
    fn every_field_of_gateway_api_is_one_that_we_know() {
        for (channel, expected) in [("experimental", 19), ("standard", 14)] {
            let crds = gateway_api(channel);
            let ours = kinds::kind::ALL.iter().filter(|kind| kind.group() == "gateway.networking.k8s.io");
            let mut read = 0;
            for &kind in ours {
                let served = gateway_api_versions(kind, &crds[kind.name()], channel);
                let mut versions = kind.versions().to_vec();
                if channel == "standard" {
                    versions.retain(|version| served.iter().any(|it| it == version));
                }
                versions.sort_unstable();
                assert_eq!(versions, served, "{kind}, {channel}");
                read += served.len();
            }
            assert_eq!(read, expected, "{channel}");
        }
    }

    /// The served versions of a CRD, in order: every field of each is one that we know.
    fn gateway_api_versions(kind: kinds::Kind, crd: &Value, channel: &str) -> Vec<String> {
        let spec = &crd["spec"];
        let scope = if kind.is_namespaced() { "Namespaced" } else { "Cluster" };
        assert_eq!((&spec["names"]["plural"], &spec["scope"]), (&json!(kind.plural()), &json!(scope)), "{kind}");
        let mut served = Vec::new();
        for version in versions(crd).iter().filter(|version| version["served"] == true) {
            let name = version["name"].as_str().unwrap();
            served.push(name.to_owned());
            let mut object = filled(&version["schema"]["openAPIV3Schema"]);
            object["metadata"] = json!({ "name": "all" });
            let decoded = kinds::decode_json(kind, object.to_string().as_bytes()).unwrap();
            let unknown: Vec<_> = decoded.unknown.iter().map(ToString::to_string).collect();
            assert_eq!((decoded.faults, unknown), (Vec::new(), Vec::new()), "{kind} {name}, {channel}");
        }
        served.sort_unstable();
        served
    }
}
