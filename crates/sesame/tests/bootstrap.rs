//! `sesame bootstrap` as a process: flags and environment, Contour's names included, to files that Envoy takes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::process::{Command, Output};

use certgen::rotation::Certificate;
use serde_json::{Value, json};
use testbed::Envoy;
use testbed::certs::Ca;

fn sesame(args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sesame"));
    command.arg("bootstrap").args(args).env_clear().envs(env.iter().copied());
    command.output().unwrap()
}

/// The bootstrap on standard output.
fn printed(args: &[&str], env: &[(&str, &str)]) -> Value {
    let output = sesame(&[&["-"], args].concat(), env);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(args: &[&str]) -> String {
    let output = sesame(&[&["-"], args].concat(), &[]);
    assert!(!output.status.success());
    assert!(output.stdout.is_empty(), "nothing is printed beside an error");
    String::from_utf8(output.stderr).unwrap()
}

fn xds_cluster(bootstrap: &Value) -> &Value {
    &bootstrap["static_resources"]["clusters"][0]
}

#[tokio::test]
async fn without_flags_it_is_what_envoy_takes() {
    let bootstrap = printed(&[], &[]);
    assert_eq!(xds_cluster(&bootstrap)["alt_stat_name"], "projectsesame_sesame_8001");
    assert_eq!(bootstrap["admin"]["address"]["pipe"]["path"], "/admin/admin.sock");
    Envoy::validate(bootstrap).await.unwrap();
}

#[tokio::test]
async fn every_flag_of_contours_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let ca = Ca::new("ca");
    let leaf = ca.leaf("envoy").make();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let (ca, certificate, key) =
        (file("ca.crt", ca.pem()), file("tls.crt", leaf.chain_pem()), file("tls.key", leaf.key_pem()));
    let path = folder.path().join("made/bootstrap.json");
    let resources = folder.path().join("resources");
    let admin = folder.path().join("admin.sock");
    let output = sesame(
        &[
            path.to_str().unwrap(),
            "--admin-address",
            admin.to_str().unwrap(),
            "--admin-port=9001",
            "--dns-lookup-family=v4",
            "--envoy-cafile",
            &ca,
            "--envoy-cert-file",
            &certificate,
            "--envoy-key-file",
            &key,
            "--namespace=gateways",
            "--overload-downstream-max-conn=1000",
            "--overload-max-heap=1000000000",
            "--resources-dir",
            resources.to_str().unwrap(),
            "--xds-address=sesame.gateways",
            "--xds-port=18001",
            "--xds-resource-version=v3",
            "--log-format=json",
        ],
        &[],
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let warning: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert!(warning["message"].as_str().unwrap().starts_with("--admin-port has no effect"));

    let bootstrap: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(xds_cluster(&bootstrap)["dns_lookup_family"], "V4_ONLY");
    let address = &xds_cluster(&bootstrap)["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"];
    assert_eq!(address["socket_address"], json!({"address": "sesame.gateways", "port_value": 18001}));
    for file in ["sds/xds-tls-certificate.json", "sds/xds-validation-context.json"] {
        assert!(resources.join(file).exists(), "{file}");
    }
    Envoy::validate(bootstrap).await.unwrap();
}

#[test]
fn files_and_names_come_from_the_environment_too() {
    let files = [("ENVOY_CAFILE", "/c/ca.crt"), ("ENVOY_CERT_FILE", "/c/tls.crt"), ("ENVOY_KEY_FILE", "/c/tls.key")];
    let bootstrap = printed(&[], &[&files[..], &[("CONTOUR_NAMESPACE", "projectcontour")]].concat());
    assert_eq!(xds_cluster(&bootstrap)["alt_stat_name"], "projectcontour_sesame_8001");
    let tls = &xds_cluster(&bootstrap)["transport_socket"]["typed_config"]["common_tls_context"];
    assert_eq!(tls["tls_certificates"][0]["certificate_chain"]["filename"], "/c/tls.crt");

    let both = [("CONTOUR_NAMESPACE", "projectcontour"), ("SESAME_NAMESPACE", "gateways")];
    assert_eq!(xds_cluster(&printed(&[], &both))["alt_stat_name"], "gateways_sesame_8001", "ours wins");

    let node = printed(&[], &[("SESAME_NODE_ID", "envoy-1"), ("SESAME_FLEET", "team-a/public")])["node"].clone();
    assert_eq!(node, json!({"id": "envoy-1", "metadata": {"sesame.fleet": "team-a/public"}}));
}

#[tokio::test]
async fn a_token_stands_in_for_a_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let resources = format!("--resources-dir={}", folder.path().join("resources").display());
    let token = format!("--envoy-token-file={}", folder.path().join("token").display());
    fs::write(folder.path().join("token"), "hush").unwrap();
    let bundle = [Ca::new("next").pem(), Ca::new("ca").pem()].concat();
    let bootstrap = printed(
        &[&token, &resources, "--fleet=shop/edge", "--node-id=a", "--node-cluster=b"],
        &[("ENVOY_CA", bundle.as_str())],
    );
    let context = &xds_cluster(&bootstrap)["transport_socket"]["typed_config"]["common_tls_context"];
    assert_eq!(context["validation_context"]["trusted_ca"]["inline_string"], bundle);
    assert!(context.get("tls_certificates").is_none());
    let sds = fs::read_to_string(folder.path().join("resources/sds/xds-token.json")).unwrap();
    assert!(sds.contains("watched_directory") && !sds.contains("hush"), "it points to the token: {sds}");
    let [next, current] = &Certificate::all(&bundle).unwrap()[..] else { panic!("two CAs") };
    let expirations = format!("{},{}", next.expires, current.expires);
    let metadata = json!({"sesame.fleet": "shop/edge", "sesame.ca-expirations": expirations});
    assert_eq!(bootstrap["node"]["metadata"], metadata);
    Envoy::validate(bootstrap).await.unwrap();
    for args in
        [&[token.as_str()][..], &[&token, &resources], &[&token, &resources, "--envoy-ca=x", "--envoy-cert-file=y"]]
    {
        refused(args);
    }
}

#[test]
fn what_cannot_be_is_refused_in_plain_words() {
    let half = refused(&["--envoy-cafile=/c/ca.crt"]);
    assert!(
        half.starts_with("error[SES1001]: --envoy-cafile, --envoy-cert-file and --envoy-key-file go together"),
        "{half}"
    );
    assert!(refused(&["--admin-address=0.0.0.0:9001"]).contains("Unix socket only"));
    assert!(refused(&["--fleet=public"]).contains("NAMESPACE/NAME"));
    assert!(refused(&["--xds-resource-version=v2"]).contains("v3"));
    let output = sesame(&["/proc/nowhere/bootstrap.json"], &[]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("error[SES1003]: /proc/nowhere/bootstrap.json cannot be written: "), "{text}");
}
