//! The chart rendered by the real `helm`, and the kustomize base by the real `kubectl`, beside the YAML.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use super::*;

fn deploy(file: &str) -> PathBuf {
    crate::root().join("deploy").join(file)
}

/// The objects of a YAML text, by kind, namespace and name.
fn objects(text: &str) -> BTreeMap<String, Value> {
    let mut objects = BTreeMap::new();
    for object in serde_saphyr::from_multiple::<Value>(text).unwrap().into_iter().filter(|it| !it.is_null()) {
        let metadata = &object["metadata"];
        let key = format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"]);
        assert!(objects.insert(key.clone(), object).is_none(), "{key} is there twice");
    }
    objects
}

fn helm(words: &[&str]) -> Output {
    let state = tempfile::tempdir().unwrap();
    let mut helm = Command::new(parts::program("helm").unwrap());
    for home in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        helm.env(home, state.path());
    }
    helm.args(words).output().unwrap()
}

fn rendered(namespace: &str, words: &[&str]) -> Result<BTreeMap<String, Value>, String> {
    let chart = deploy("chart");
    // Without a cluster to ask, helm takes the version it was built for, which ours was not told.
    let version = parts::version("kube-apiserver").unwrap();
    let template = ["template", "sesame", chart.to_str().unwrap(), "--namespace", namespace, "--kube-version", version];
    let output = helm(&[&template, words].concat());
    match output.status.success() {
        true => Ok(objects(std::str::from_utf8(&output.stdout).unwrap())),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

/// What we say that the chart renders to.
fn expected(over: &Value, namespace: &str) -> BTreeMap<String, Value> {
    let settings = with(&settings::defaults(), over);
    let values = Values { settings: &settings, namespace };
    let text: String = parts().iter().map(|part| manifest::yaml(&part.documents, values)).collect();
    objects(&text)
}

#[test]
fn the_files_are_what_the_description_says() {
    run(true).unwrap();
}

/// `kubectl apply` without `--server-side` keeps a copy of each object in an annotation, which may have 262,144 bytes with all others.
#[test]
fn every_crd_is_small_enough_for_client_side_apply() {
    let files: Vec<_> = std::fs::read_dir(deploy("crds")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for crd in serde_saphyr::from_multiple::<Value>(&text).unwrap() {
            let bytes = text.len().max(crd.to_string().len());
            assert!(bytes < 250_000, "{} has {bytes} bytes", file.display());
        }
    }
}

#[test]
fn helm_renders_the_yaml() {
    for (file, _, over) in forms() {
        let mut shipped = objects(&std::fs::read_to_string(deploy(file)).unwrap());
        shipped.remove(&format!("\"Namespace\" null \"{NAMESPACE}\"")).unwrap();
        let values = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(values.path(), over.to_string()).unwrap();
        let chart = rendered(NAMESPACE, &["--values", values.path().to_str().unwrap()]).unwrap();
        assert_eq!(chart.keys().collect::<Vec<_>>(), shipped.keys().collect::<Vec<_>>(), "{file}");
        for (key, object) in shipped {
            assert_eq!(chart[&key], object, "{file}: {key}");
        }
    }
    assert_eq!(rendered(NAMESPACE, &[]).unwrap(), expected(&json!({}), NAMESPACE));
}

#[test]
fn kustomize_renders_the_yaml() {
    let output =
        Command::new(parts::program("kubectl").unwrap()).arg("kustomize").arg(deploy("kustomize")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let shipped = objects(&std::fs::read_to_string(deploy("sesame.yaml")).unwrap());
    assert_eq!(objects(std::str::from_utf8(&output.stdout).unwrap()), shipped);
}

/// Every setting that has an effect of its own, in both ways to write it.
#[test]
fn helm_and_the_description_agree_on_every_setting() {
    let over = [
        json!({
            "envoy": {
                "kind": "Deployment",
                "autoscaling": { "enabled": true, "maxReplicas": 7 },
                "service": {
                    "loadBalancerClass": "example.com/lb", "loadBalancerSourceRanges": ["192.0.2.0/24"],
                    "annotations": { "a": "b" },
                },
                "args": ["--concurrency", "2"], "env": [{ "name": "A", "value": "1" }],
                "podLabels": { "team": "edge" }, "podAnnotations": { "x": "y" },
                "nodeSelector": { "edge": "true" }, "tolerations": [{ "operator": "Exists" }],
                "priorityClassName": "system-cluster-critical",
                "overload": { "maxHeapBytes": 6_000_000_000_u64, "maxConnections": 50_000 },
            },
            "imagePullSecrets": [{ "name": "registry" }], "commonLabels": { "owner": "edge" },
            "controller": { "address": "::", "args": ["--log=debug"], "env": [{ "name": "B", "value": "2" }], "podLabels": { "c": "d" } },
            "monitors": { "enabled": true, "rules": true, "dashboards": true, "labels": { "release": "prometheus" } },
            "ingressClass": { "default": true }, "gatewayClass": { "create": true },
            "serviceAccount": { "name": "edge", "annotations": { "e": "f" } },
        }),
        json!({ "rbac": { "mode": "namespaces", "namespaces": ["shop", "edge"] } }),
        json!({ "rbac": { "mode": "namespaces", "namespaces": ["shop"], "clusterScoped": true } }),
        json!({ "rbac": { "mode": "named-secrets", "secrets": { "shop": ["a", "b"], "edge": ["c"] } } }),
        json!({ "rbac": { "create": false }, "certificates": { "issuer": "none" }, "networkPolicy": { "enabled": false },
                "envoy": { "service": { "type": "ClusterIP" }, "hostPorts": { "enabled": false } } }),
        json!({ "envoy": { "service": { "enabled": false }, "podDisruptionBudget": false },
                "controller": { "podDisruptionBudget": false, "config": { "tls": { "minimum-protocol-version": "1.3" } } } }),
    ];
    for over in over {
        let values = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(values.path(), over.to_string()).unwrap();
        let chart = rendered("edge", &["--values", values.path().to_str().unwrap()]).unwrap();
        assert_eq!(chart, expected(&over, "edge"), "{over}");
    }
}

#[test]
fn unknown_values_and_wrong_types_fail_with_the_key() {
    for (set, key) in [
        ("controler.replicas=3", "controler"),
        ("envoy.service.typ=NodePort", "typ"),
        ("controller.replicas=two", "controller/replicas"),
        ("controller.address=localhost", "controller/address"),
        ("envoy.kind=StatefulSet", "envoy/kind"),
        ("envoy.hostPorts.http=70000", "envoy/hostPorts/http"),
        ("envoy.overload.maxHeapBytes=800Mi", "envoy/overload/maxHeapBytes"),
        ("rbac.mode=namespaces", "rbac/namespaces"),
    ] {
        let error = rendered(NAMESPACE, &["--set", set]).unwrap_err();
        let dotted = key.replace('/', ".");
        assert!(error.contains(key) || error.contains(&dotted), "{set}: {error}");
    }
}

#[test]
fn helm_finds_nothing_to_complain_about() {
    let output = helm(&["lint", "--strict", deploy("chart").to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

/// No shell, no root, no host path, no added capability, no CPU limit; host ports for Envoy's DaemonSet alone.
#[test]
fn pods_relax_nothing_but_host_ports() {
    for (file, _, _) in forms() {
        for (key, object) in objects(&std::fs::read_to_string(deploy(file)).unwrap()) {
            let pod = &object["spec"]["template"]["spec"];
            if !pod.is_object() {
                continue;
            }
            assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{file}: {key}");
            assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault", "{file}: {key}");
            for word in ["hostNetwork", "hostPID", "hostIPC"] {
                assert!(pod.get(word).is_none(), "{file}: {key}: {word}");
            }
            let volumes = pod["volumes"].as_array().into_iter().flatten();
            assert!(volumes.into_iter().all(|volume| volume.get("hostPath").is_none()), "{file}: {key}");
            let containers = ["containers", "initContainers"].map(|list| pod[list].as_array().into_iter().flatten());
            for container in containers.into_iter().flatten() {
                let security = &container["securityContext"];
                let required = json!({
                    "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": { "drop": ["ALL"] },
                });
                assert_eq!(*security, required, "{file}: {key}");
                assert!(container["resources"].get("limits").is_none(), "{file}: {key}");
                let command = container["command"][0].as_str().unwrap();
                assert!(["sesame", "envoy"].contains(&command), "{file}: {key}: {command}");
                let host_ports =
                    container["ports"].as_array().into_iter().flatten().any(|port| port.get("hostPort").is_some());
                assert_eq!(host_ports, object["kind"] == "DaemonSet" && container["name"] == "envoy", "{file}: {key}");
            }
        }
    }
}

/// Pods get traffic when they are ready, are restarted alone, and not all of them go at once. Envoy has a readiness probe alone: one
/// that waits for its configuration must not be restarted for that.
#[test]
fn pods_have_probes_are_spread_and_deployments_have_a_disruption_budget() {
    let mut deployments = Vec::new();
    for (file, _, _) in forms() {
        let objects = objects(&std::fs::read_to_string(deploy(file)).unwrap());
        for (key, object) in &objects {
            let (spec, name) = (&object["spec"], &object["metadata"]["name"]);
            let is_deployment = object["kind"] == "Deployment";
            if !is_deployment && object["kind"] != "DaemonSet" {
                continue;
            }
            let pod = &spec["template"]["spec"];
            let container = pod["containers"].as_array().unwrap().iter().find(|container| container["name"] == *name);
            let container = container.unwrap_or_else(|| panic!("{file}: {key}"));
            let probed = |probe: &str| container[probe]["httpGet"]["path"].as_str();
            let probes = ["startupProbe", "livenessProbe", "readinessProbe"].map(probed);
            let expected = match name.as_str().unwrap() {
                "sesame" => [Some("/healthz"), Some("/healthz"), Some("/readyz")],
                _ => [None, None, Some("/ready")],
            };
            assert_eq!(probes, expected, "{file}: {key}");
            if !is_deployment {
                continue;
            }
            assert!(spec["replicas"].as_u64() >= Some(2), "{file}: {key}");
            let spread = pod["topologySpreadConstraints"].as_array().unwrap();
            let over: Vec<&str> = spread.iter().map(|spread| spread["topologyKey"].as_str().unwrap()).collect();
            assert_eq!(over, ["kubernetes.io/hostname", "topology.kubernetes.io/zone"], "{file}: {key}");
            assert!(spread.iter().all(|spread| spread["labelSelector"] == spec["selector"]), "{file}: {key}");
            let budgets = objects.values().filter(|object| object["kind"] == "PodDisruptionBudget");
            let budgets: Vec<&Value> =
                budgets.filter(|budget| budget["spec"]["selector"] == spec["selector"]).collect();
            assert_eq!(budgets.len(), 1, "{file}: {key}");
            assert_eq!(budgets[0]["spec"]["maxUnavailable"], 1, "{file}: {key}");
            deployments.push(format!("{file} {name}"));
        }
    }
    assert_eq!(deployments.len(), 6, "{deployments:?}");
}
