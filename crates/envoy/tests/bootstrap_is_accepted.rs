//! The bootstrap is one that the real Envoy takes, whatever was chosen.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;

use envoy::bootstrap::{Bootstrap, CertificateFiles, DnsFamily, Node, Overload, Stats, Tls, Token, XdsServer};
use envoy_api::json;
use model::FleetName;

fn chosen(folder: &Path) -> Bootstrap {
    Bootstrap {
        node: Node {
            id: Some("envoy-1".to_owned()),
            cluster: Some("gateways".to_owned()),
            fleet: Some(FleetName::new("gateways", "public")),
        },
        server: XdsServer {
            host: "127.0.0.1".to_owned(),
            port: 8001,
            dns_family: DnsFamily::Auto,
            namespace: Some("gateways".to_owned()),
        },
        tls: None,
        admin_socket: folder.join("admin.sock"),
        overload: Overload::default(),
        stats: Stats::Lean,
    }
}

/// PEM files of a self-signed certificate: enough for Envoy to load.
fn pem_files(folder: &Path, resources_dir: bool) -> Tls {
    let certified = rcgen::generate_simple_self_signed(vec!["envoy".to_owned()]).unwrap();
    let tls = CertificateFiles {
        ca: folder.join("ca.crt"),
        certificate: folder.join("tls.crt"),
        key: folder.join("tls.key"),
        resources_dir: resources_dir.then(|| folder.join("resources")),
    };
    fs::write(&tls.ca, certified.cert.pem()).unwrap();
    fs::write(&tls.certificate, certified.cert.pem()).unwrap();
    fs::write(&tls.key, certified.signing_key.serialize_pem()).unwrap();
    Tls::Certificate(tls)
}

/// Writes what was rendered and lets Envoy judge it. Deprecated fields are a failure, too.
fn validate(folder: &Path, bootstrap: &Bootstrap) {
    let rendered = bootstrap.render();
    let path = folder.join("bootstrap.json");
    fs::write(&path, json::to_json(&rendered.bootstrap).unwrap().to_string()).unwrap();
    for (file, content) in rendered.files {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content.to_string()).unwrap();
    }
    let output = Command::new(parts::program("envoy").unwrap())
        .args(["--mode", "validate", "--log-level", "warning", "--config-path"])
        .arg(&path)
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "Envoy refused the bootstrap:\n{log}");
    assert!(!log.contains("deprecated"), "Envoy warns of deprecated fields:\n{log}");
}

#[test]
fn without_tls() {
    let folder = tempfile::tempdir().unwrap();
    validate(folder.path(), &chosen(folder.path()));
}

#[test]
fn with_a_dns_name_and_every_limit() {
    let folder = tempfile::tempdir().unwrap();
    let mut bootstrap = chosen(folder.path());
    bootstrap.server.host = "sesame.gateways.svc".to_owned();
    bootstrap.server.dns_family = DnsFamily::All;
    bootstrap.overload = Overload { max_heap: Some(1 << 30), max_downstream_connections: Some(10_000) };
    validate(folder.path(), &bootstrap);
}

#[test]
fn with_all_statistics() {
    let folder = tempfile::tempdir().unwrap();
    validate(folder.path(), &Bootstrap { stats: Stats::Full, ..chosen(folder.path()) });
}

#[test]
fn with_tls_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let tls = Some(pem_files(folder.path(), false));
    validate(folder.path(), &Bootstrap { tls, ..chosen(folder.path()) });
}

#[test]
fn with_tls_from_watched_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let tls = Some(pem_files(folder.path(), true));
    validate(folder.path(), &Bootstrap { tls, ..chosen(folder.path()) });
}

#[test]
fn with_a_token() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("token"), "secret").unwrap();
    let certified = rcgen::generate_simple_self_signed(vec!["sesame".to_owned()]).unwrap();
    let token = Token {
        ca: certified.cert.pem(),
        ca_expirations: vec![1_924_992_000, 1_956_528_000],
        file: folder.path().join("token"),
        resources_dir: folder.path().join("resources"),
    };
    validate(folder.path(), &Bootstrap { tls: Some(Tls::Token(token)), ..chosen(folder.path()) });
}
