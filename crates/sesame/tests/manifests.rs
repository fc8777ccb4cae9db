//! The manifests in `deploy`: a real API server takes them, and their rights are those that it is asked for, no less and no
//! more.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "manifests/asked.rs"]
mod asked;
#[path = "manifests/modes.rs"]
mod modes;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testbed::ApiServer;

const NAMESPACE: &str = "projectsesame";

type Right = (String, String, String);

fn deploy(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(folder)
}

/// The forms that are shipped.
const FORMS: [&str; 4] = ["sesame.yaml", "sesame-deployment.yaml", "sesame-gateway.yaml", "sesame-certgen.yaml"];

/// The form with Envoy as a Deployment.
const DEPLOYMENT: &str = FORMS[1];
/// The form with a Job that makes the certificates.
const CERTGEN: &str = FORMS[3];

fn documents_of(file: &str) -> Vec<Value> {
    serde_saphyr::from_multiple::<Value>(&std::fs::read_to_string(deploy(file)).unwrap()).unwrap()
}

fn documents() -> Vec<Value> {
    documents_of(DEPLOYMENT)
}

/// The rights of a role, every combination by itself.
fn granted(kind: &str, name: &str) -> BTreeSet<Right> {
    let mut documents = FORMS.into_iter().flat_map(documents_of);
    let role = documents.find(|it| it["kind"] == kind && it["metadata"]["name"] == name).unwrap();
    let rules: Vec<PolicyRule> = serde_json::from_value(role["rules"].clone()).unwrap();
    let mut rights = BTreeSet::new();
    for rule in rules {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                rights.extend(rule.verbs.iter().map(|verb| (verb.clone(), group.clone(), resource.clone())));
            }
        }
    }
    rights
}

#[test]
fn every_object_of_our_own_stands_in_the_namespace() {
    let everywhere = ["Namespace", "IngressClass", "GatewayClass", "ClusterRole", "ClusterRoleBinding"];
    for object in FORMS.into_iter().flat_map(documents_of) {
        let namespace = object["metadata"]["namespace"].as_str();
        let expected = if everywhere.iter().any(|kind| object["kind"] == *kind) { None } else { Some(NAMESPACE) };
        assert_eq!(namespace, expected, "{} {}", object["kind"], object["metadata"]["name"]);
    }
}

fn named(kind: &str, name: &str) -> Value {
    let found = documents().into_iter().find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("{kind} {name}"))
}

/// The xDS port is for proxies and replicas, by the labels that their pods have; what probes and scrapers need is for all.
#[test]
fn only_proxies_and_replicas_reach_the_xds_server() {
    let policy = named("NetworkPolicy", "sesame");
    let labels = |deployment: &str| named("Deployment", deployment)["spec"]["template"]["metadata"]["labels"].clone();
    assert_eq!(policy["spec"]["podSelector"]["matchLabels"], labels("sesame"));
    assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress"]));
    let container = named("Deployment", "sesame")["spec"]["template"]["spec"]["containers"][0].clone();
    let port = |name: &str| {
        let ports = container["ports"].as_array().unwrap();
        ports.iter().find(|port| port["name"] == name).unwrap()["containerPort"].clone()
    };
    let of_gateways = json!({
        "namespaceSelector": {},
        "podSelector": {
            "matchLabels": {"app.kubernetes.io/managed-by": "sesame", "projectsesame.io/installation": NAMESPACE},
        },
    });
    let pods = |name: &str| json!({"podSelector": {"matchLabels": labels(name)}});
    let rules = json!([
        {"from": [pods("envoy"), pods("sesame"), of_gateways], "ports": [{"port": port("xds"), "protocol": "TCP"}]},
        {"ports": [{"port": port("metrics"), "protocol": "TCP"}]},
    ]);
    assert_eq!(policy["spec"]["ingress"], rules);
}

/// Envoy's end waits for the drain, and the drain ends before the pod is killed: in every form that has proxies.
#[test]
fn an_envoy_is_drained_before_it_ends() {
    let mut found = Vec::new();
    for (form, object) in FORMS.into_iter().flat_map(|form| documents_of(form).into_iter().map(move |it| (form, it))) {
        let Some(template) = object["spec"].get("template") else { continue };
        if object["metadata"]["name"] == "envoy" {
            expect_drain(form, &template["spec"]);
            found.push((form, object["kind"].as_str().unwrap().to_owned()));
        }
    }
    let expected = [(FORMS[0], "DaemonSet"), (DEPLOYMENT, "Deployment"), (CERTGEN, "Deployment")];
    assert_eq!(found, expected.map(|(form, kind)| (form, kind.to_owned())));
}

fn expect_drain(form: &str, pod: &Value) {
    let container = |name: &str| pod["containers"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
    let (envoy, manager) = (container("envoy"), container("shutdown-manager"));
    let word = |words: &Value, flag: &str| {
        let words = words.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned());
        words.filter_map(|word| Some(word.strip_prefix(flag)?.to_owned())).next().unwrap()
    };
    let hook = &manager["lifecycle"]["preStop"]["exec"]["command"];
    assert_eq!(envoy["lifecycle"]["preStop"]["httpGet"]["path"], "/shutdown", "{form}");
    let port = envoy["lifecycle"]["preStop"]["httpGet"]["port"].to_string();
    assert_eq!(word(&manager["command"], "--serve-port="), port, "{form}");
    assert_eq!(word(&manager["command"], "--ready-file="), word(hook, "--ready-file="), "{form}");
    let admin = word(&pod["initContainers"][0]["command"], "--admin-address=");
    assert_eq!(word(hook, "--admin-address="), admin, "{form}");
    let timeout: u64 = word(hook, "--timeout=").trim_end_matches('s').parse().unwrap();
    assert!(timeout + 10 < pod["terminationGracePeriodSeconds"].as_u64().unwrap(), "{form}");
    assert!(manager.get("livenessProbe").is_none(), "{form}: a restart for it would drain an Envoy that is to stay");
}

/// The manifests, with another version in every place that has one.
fn manifests_of(version: &str) -> String {
    let version = |dash: &str| format!("v{}", version.replace('.', dash));
    let ours = |dash: &str| format!("v{}", env!("CARGO_PKG_VERSION").replace('.', dash));
    let text = std::fs::read_to_string(deploy(CERTGEN)).unwrap();
    text.replace(&ours("."), &version(".")).replace(&ours("-"), &version("-"))
}

#[tokio::test]
async fn a_newer_version_can_be_applied_over_an_older_one() {
    let api = ApiServer::start().await.unwrap();
    api.install([deploy("crds"), deploy(CERTGEN)]).await.unwrap();
    api.apply(&manifests_of("0.9.0")).await.unwrap();
    api.apply(&manifests_of("0.9.1")).await.unwrap();
    let jobs = Api::<Job>::namespaced(api.client().unwrap(), NAMESPACE);
    let mut images: Vec<String> = Vec::new();
    for job in jobs.list(&ListParams::default()).await.unwrap() {
        images.extend(job.spec.unwrap().template.spec.unwrap().containers.into_iter().filter_map(|it| it.image));
    }
    images.sort();
    let versions = [env!("CARGO_PKG_VERSION"), "0.9.0", "0.9.1"];
    assert_eq!(images, versions.map(|version| format!("ghcr.io/projectsesame/sesame:v{version}")));
}

async fn may(client: &kube::Client, right: &(&str, &str, &str), namespace: Option<&str>, name: Option<&str>) -> bool {
    let (verb, group, resource) = *right;
    let (resource, subresource) = resource.split_once('/').map_or((resource, None), |(it, sub)| (it, Some(sub)));
    let attributes = ResourceAttributes {
        verb: Some(verb.into()),
        group: Some(group.into()),
        resource: Some(resource.into()),
        subresource: subresource.map(Into::into),
        namespace: namespace.map(Into::into),
        name: name.map(Into::into),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..Default::default() };
    let api = Api::<SelfSubjectAccessReview>::all(client.clone());
    api.create(&PostParams::default(), &review).await.unwrap().status.unwrap().allowed
}

fn account(name: &str) -> String {
    format!("system:serviceaccount:{NAMESPACE}:{name}")
}

const GROUPS: [&str; 3] = ["system:serviceaccounts", "system:serviceaccounts:projectsesame", "system:authenticated"];

fn certgen(kubeconfig: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sesame"));
    command.args(["certgen", "--kube", "--kubeconfig"]).arg(kubeconfig).args(more).env_clear().output().unwrap()
}

#[tokio::test]
async fn an_api_server_takes_them_and_gives_these_rights_alone() {
    let api = ApiServer::shared().await.unwrap();
    api.install([deploy("crds"), deploy(DEPLOYMENT), deploy(CERTGEN)]).await.unwrap();

    let sesame = api.client_as(&account("sesame"), &GROUPS).unwrap();
    for (verb, group, resource) in granted("ClusterRole", "sesame") {
        assert!(may(&sesame, &(&verb, &group, &resource), Some("shop"), None).await, "{verb} {group} {resource}");
    }
    for (verb, group, resource) in granted("Role", "sesame-leader-election") {
        // The right to create cannot be bound to a name.
        let (right, name) = ((&*verb, &*group, &*resource), (verb != "create").then_some("leader-elect"));
        assert!(may(&sesame, &right, Some(NAMESPACE), name).await, "{right:?}");
        assert!(!may(&sesame, &right, Some("shop"), name).await, "{right:?}");
    }
    for (verb, group, resource) in granted("Role", "sesame-configuration") {
        let right = (&*verb, &*group, &*resource);
        assert!(may(&sesame, &right, Some(NAMESPACE), None).await, "{right:?}");
        assert!(!may(&sesame, &right, Some("shop"), None).await, "{right:?}");
    }
    for (verb, group, resource) in granted("Role", "sesame-certificates") {
        let (right, name) = ((&*verb, &*group, &*resource), (verb != "create").then_some("sesame-ca"));
        assert!(may(&sesame, &right, Some(NAMESPACE), name).await, "{right:?}");
    }
    for right in [("create", "", "secrets"), ("update", "", "secrets")] {
        assert!(!may(&sesame, &right, Some("shop"), Some("sesame-ca")).await, "{right:?}");
    }
    // Nobody else may read the key of the CA.
    for other in ["envoy", "sesame-certgen"] {
        let other = api.client_as(&account(other), &GROUPS).unwrap();
        assert!(!may(&other, &("get", "", "secrets"), Some(NAMESPACE), Some("sesame-ca")).await);
    }
    for right in [
        ("update", "", "secrets"),
        ("delete", "", "secrets"),
        ("create", "", "configmaps"),
        ("list", "", "pods"),
        ("create", "", "pods"),
        ("update", "networking.k8s.io", "ingresses"),
        ("patch", "networking.k8s.io", "ingresses"),
        ("delete", "coordination.k8s.io", "leases"),
        ("get", "rbac.authorization.k8s.io", "clusterroles"),
    ] {
        assert!(!may(&sesame, &right, Some(NAMESPACE), None).await, "{right:?}");
    }
    let envoy = api.client_as(&account("envoy"), &GROUPS).unwrap();
    assert!(!may(&envoy, &("get", "", "secrets"), Some(NAMESPACE), Some("envoycert")).await);

    // The Job's work, with the Job's rights: made once, left alone, made anew when told so.
    let kubeconfig = api.kubeconfig_as(&account("sesame-certgen"), &GROUPS).unwrap();
    let secrets = Api::<Secret>::namespaced(api.client().unwrap(), NAMESPACE);
    let mut versions = Vec::new();
    for more in [&[][..], &[], &["--overwrite"]] {
        let output = certgen(&kubeconfig, more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        versions.push(secrets.get("sesamecert").await.unwrap().metadata.resource_version);
    }
    assert_eq!(versions[0], versions[1]);
    assert_ne!(versions[1], versions[2]);
    assert!(secrets.get("envoycert").await.unwrap().data.unwrap().contains_key("ca.crt"));
}

/// The manifests have the rights that the program prints.
#[test]
fn the_rights_are_those_of_sesame_rbac() {
    let printed = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_sesame")).arg("rbac").args(words).env_clear().output().unwrap();
        serde_saphyr::from_multiple::<Value>(std::str::from_utf8(&output.stdout).unwrap()).unwrap()
    };
    let issuing = printed(&["--issue-certificates"]);
    let printed = printed(&[]);
    assert!(printed.len() > 4 && issuing.len() == printed.len() + 2);
    for role in issuing {
        assert!(documents().contains(&role), "{role}");
    }
    for role in printed {
        assert!(documents_of(CERTGEN).contains(&role), "{role}");
    }
}

/// Pods of the manifests in a namespace that enforces the restricted standard: an API server takes all but Envoy's with host
/// ports, and has nothing else against those.
#[tokio::test]
async fn pods_keep_to_the_restricted_standard_but_for_host_ports() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("restricted").await.unwrap();
    let label = json!({ "metadata": { "labels": { "pod-security.kubernetes.io/enforce": "restricted" } } });
    let namespaces = Api::<Namespace>::all(api.client().unwrap());
    namespaces.patch(&namespace, &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    let pods = Api::<Pod>::namespaced(api.client().unwrap(), &namespace);
    let accounts = Api::<ServiceAccount>::namespaced(api.client().unwrap(), &namespace);
    for name in ["sesame", "sesame-certgen", "envoy"] {
        let account: ServiceAccount = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
        accounts.create(&PostParams::default(), &account).await.unwrap();
    }
    for (form, object) in FORMS.into_iter().flat_map(|form| documents_of(form).into_iter().map(move |it| (form, it))) {
        let Some(template) = object["spec"].get("template") else { continue };
        let mut pod = template.clone();
        pod["metadata"]["name"] = json!("tried");
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let answer = pods.create(&PostParams { dry_run: true, ..PostParams::default() }, &pod).await;
        match (object["kind"] == "DaemonSet", answer) {
            (false, Ok(_)) => {}
            (true, Err(kube::Error::Api(status))) => {
                let only = "\": hostPort (container \"envoy\" uses hostPorts 443, 80)";
                assert!(status.message.ends_with(only), "{form}: {}", status.message);
            }
            (_, answer) => panic!("{form} {}: {answer:?}", object["kind"]),
        }
    }
}
