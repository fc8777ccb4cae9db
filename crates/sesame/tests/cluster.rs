//! The manifests in `deploy` on a real Kubernetes of two nodes, with no more rights than they give: the shortest scenarios of
//! `make e2e`, on one cluster, and after them those that `SESAME_TEST_SCENARIOS` names, with commas.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::{Installation, NAMESPACE, Scenario};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams};
use testbed::cluster::{self, Cluster};
use testbed::eventually;

const LIMIT: Duration = Duration::from_secs(120);

async fn run(installation: &Installation, names: &[&str]) {
    for scenario in Scenario::chosen(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap() {
        if names.contains(&scenario.name) {
            let row = scenario.run(installation).await;
            assert!(row.is_good(), "{}: {:?} {:#?}", row.name, row.error, row.traffic);
            eprintln!("{}", e2e::table(&[row]));
        }
    }
}

/// The rights that docs/operate.md names for the operators' commands.
const OPERATOR: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: sesame-operator, namespace: projectsesame}
rules:
- apiGroups: ['']
  resources: [pods]
  verbs: [get, list]
- apiGroups: ['']
  resources: [pods/portforward]
  verbs: [get, create]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: sesame-operator, namespace: projectsesame}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: sesame-operator}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: operator}]
";

/// The operators' commands by port-forward, through the API server and a kubelet to the loopback of the controllers, with no more
/// rights than they need.
async fn operate(cluster: &Cluster) {
    let sesame = async |words: &[&str], kubeconfig: &Path| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_sesame"));
        let output = command.args(words).arg("--kubeconfig").arg(kubeconfig).output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    cluster.apply_yaml(OPERATOR).await.unwrap();
    let admin = cluster.kubeconfig().to_owned();
    let operator = match cluster.api() {
        Ok(api) => api.kubeconfig_as("operator", &["system:authenticated"]).unwrap(),
        Err(_) => admin.clone(),
    };
    let in_step = async || match sesame(&["status", "-o", "json"], &operator).await {
        (0, status, _) => Ok(serde_json::from_str::<serde_json::Value>(&status).unwrap()),
        (code, out, err) => Err(format!("{code}: {out} {err}")),
    };
    let status = eventually("everything to be in step", LIMIT, in_step).await.unwrap();
    assert_eq!(status["replicas"].as_array().unwrap().len(), 2, "{status}");
    assert_eq!((&status["fleets"][0]["proxies"], &status["fleets"][0]["in_step"]), (&2.into(), &2.into()), "{status}");
    let (code, dump, err) = sesame(&["dump", "-o", "json"], &operator).await;
    let dump: serde_json::Value = serde_json::from_str(&dump).unwrap_or_else(|error| panic!("{code}: {error}: {err}"));
    assert!(!dump["fleets"][0]["resources"].as_array().unwrap().is_empty());
    let (code, certificates, err) = sesame(&["certs"], &operator).await;
    assert!(code == 0 && certificates.matches("xds server").count() == 2, "{code}: {certificates} {err}");
    let (code, checks, err) = sesame(&["precheck", "--host-ports", "8099"], &admin).await;
    assert!(code == 0 && checks.contains("another installation?"), "{code}: {checks} {err}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.tar.gz");
    let (code, _, err) = sesame(&["bug-report", "-f", file.to_str().unwrap()], &admin).await;
    assert_eq!(code, 0, "{err}");
    let mut bundle = String::new();
    let mut archive = flate2::read::GzDecoder::new(std::fs::File::open(&file).unwrap());
    std::io::Read::read_to_string(&mut archive, &mut bundle).unwrap();
    for part in ["first build complete", "cluster/nodes.json", "config_dump.json", "sesame_batches_total"] {
        assert!(bundle.contains(part), "{part} is not in the bundle");
    }
    assert!(!bundle.contains("PRIVATE KEY"));
    let secrets = Api::<Secret>::namespaced(cluster.client().unwrap(), NAMESPACE);
    let secrets = secrets.list(&ListParams::default()).await.unwrap().items;
    assert!(secrets.iter().any(|secret| secret.metadata.name.as_deref() == Some("sesame-ca")), "{secrets:#?}");
    for Secret { metadata, data, .. } in secrets {
        for (entry, value) in data.unwrap_or_default() {
            let (text, encoded) = (String::from_utf8_lossy(&value.0), STANDARD.encode(&value.0));
            // In JSON a text of several lines is on one, so each is looked for.
            let lines = text.lines().filter(|line| !line.starts_with("-----"));
            for part in lines.chain([encoded.as_str()]).filter(|part| part.len() >= 16) {
                assert!(!bundle.contains(part), "{entry} of the Secret {:?} is in the bundle", metadata.name);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_lives_through_a_rollout_and_the_death_of_its_leader_with_the_rights_of_its_manifests() {
    if !cluster::available() {
        return;
    }
    let mut installation = Installation::start(Path::new(env!("CARGO_BIN_EXE_sesame")), None, |_| {}).await.unwrap();
    // Other tests run beside this one; `make e2e` checks the bound of a quiet machine.
    installation.first_request = Duration::from_secs(180);
    run(&installation, &["install"]).await;
    operate(&installation.cluster).await;
    run(&installation, &["controller-rollout", "leader-kill", "isolation"]).await;
    let more = std::env::var("SESAME_TEST_SCENARIOS").unwrap_or_default();
    let more: Vec<&str> = more.split(',').filter(|name| !name.is_empty()).collect();
    if !more.is_empty() {
        run(&installation, &more).await;
    }
    installation.stop().await.unwrap();
}
