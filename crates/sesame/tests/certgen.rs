//! `sesame certgen` as a process: files, YAML, and Secrets in a real cluster.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt};
use testbed::ApiServer;

fn certgen(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sesame")).arg("certgen").args(args).env_clear().output().unwrap()
}

fn succeeds(args: &[&str]) -> String {
    let output = certgen(args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn fails(args: &[&str]) -> String {
    let output = certgen(args);
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn somewhere_must_be_named() {
    let text = fails(&[]);
    assert!(text.starts_with("error[SES1001]: no output is given: use --kube, --yaml or --pem"), "{text}");
}

#[test]
fn files_are_private_and_kept_unless_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    succeeds(&["--pem", path]);
    let key = folder.path().join("sesamekey.pem");
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let first = fs::read_to_string(&key).unwrap();

    let text = fails(&["--pem", path]);
    assert!(text.contains("error[SES1010]: failed to write the files: ") && text.contains("exists already"), "{text}");
    assert!(text.contains("--overwrite"), "{text}");
    assert_eq!(fs::read_to_string(&key).unwrap(), first);

    succeeds(&["--pem", "--overwrite", path]);
    assert_ne!(fs::read_to_string(&key).unwrap(), first);
}

#[test]
fn yaml_goes_to_standard_output_alone() {
    let text = succeeds(&["--yaml", "--namespace=gateways", "--secrets-format=legacy", "--secrets-name-suffix=-1"]);
    let names: Vec<String> = text
        .split("---\n")
        .skip(1)
        .map(|document| serde_saphyr::from_str::<Secret>(document).unwrap())
        .map(|secret| format!("{}/{}", secret.namespace().unwrap(), secret.name_any()))
        .collect();
    assert_eq!(names, ["gateways/cacert-1", "gateways/sesamecert-1", "gateways/envoycert-1"]);
}

#[test]
fn no_object_may_refer_to_the_secrets_that_it_writes() {
    for format in ["legacy", "compact"] {
        let text = succeeds(&["--yaml", &format!("--secrets-format={format}"), "--secrets-name-suffix=-1"]);
        let names: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("name: ")).collect();
        assert!(names.len() >= 2, "{text}");
        for name in names.iter().copied().chain([certgen::secret::CACHE_KEY, certgen::store::CA]) {
            assert!(resolve::reserved::is_reserved_name(name), "{name}");
        }
    }
}

#[tokio::test]
async fn secrets_arrive_in_the_cluster_of_the_kubeconfig() {
    let server = ApiServer::shared().await.unwrap();
    let namespace = server.namespace("certgen").await.unwrap();
    let kubeconfig = server.kubeconfig().unwrap();
    let args = ["--kube", "--kubeconfig", kubeconfig.to_str().unwrap(), "--namespace", &namespace];
    let run = |extra: &'static [&'static str]| {
        let args: Vec<String> = args.iter().chain(extra).map(|arg| (*arg).to_owned()).collect();
        tokio::task::spawn_blocking(move || succeeds(&args.iter().map(String::as_str).collect::<Vec<_>>()))
    };
    run(&[]).await.unwrap();
    let api: Api<Secret> = Api::namespaced(server.client().unwrap(), &namespace);
    let first = api.get("envoycert").await.unwrap();
    assert_eq!(first.type_.as_deref(), Some("kubernetes.io/tls"));
    let key = api.get("sesame-cache-key").await.unwrap().data.unwrap();
    assert_eq!(key["cache.key"].0.len(), 64);

    run(&[]).await.unwrap();
    assert_eq!(api.get("envoycert").await.unwrap().data, first.data, "a set that is there stays");
    run(&["--overwrite"]).await.unwrap();
    assert_ne!(api.get("envoycert").await.unwrap().data, first.data);
    let after = api.get("sesame-cache-key").await.unwrap().data.unwrap();
    assert_eq!(after, key, "the key of the disk cache survives the certificates");

    let text = fails(&["--kube", "--kubeconfig=/nowhere"]);
    assert!(text.starts_with("error[SES1011]: failed to connect to the cluster: /nowhere cannot be used: "), "{text}");
}
