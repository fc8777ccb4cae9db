#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, SystemTime};

use kube::ResourceExt;

use super::*;
use crate::issue::Request;
use crate::yaml;

fn certificates() -> Certificates {
    Certificates::issue(&Request {
        namespace: "gateways".to_owned(),
        fleet: None,
        lifetime: Duration::from_secs(3600),
        now: SystemTime::now(),
    })
    .unwrap()
}

/// Name, type and entries of each Secret.
fn outline(secrets: &[Secret]) -> Vec<(String, String, Vec<String>)> {
    secrets
        .iter()
        .map(|secret| {
            let entries = secret.data.as_ref().unwrap().keys().cloned().collect();
            (secret.name_any(), secret.type_.clone().unwrap(), entries)
        })
        .collect()
}

fn row(name: &str, kind: &str, entries: &[&str]) -> (String, String, Vec<String>) {
    (name.to_owned(), kind.to_owned(), entries.iter().map(|entry| (*entry).to_owned()).collect())
}

#[test]
fn compact_secrets_carry_the_ca_each() {
    let secrets = secrets(&certificates(), "gateways", Format::Compact, "");
    let entries = ["ca.crt", "tls.crt", "tls.key"];
    assert_eq!(outline(&secrets), [row("sesamecert", TLS, &entries), row("envoycert", TLS, &entries)]);
    assert!(secrets.iter().all(|secret| secret.namespace().as_deref() == Some("gateways")));
}

#[test]
fn legacy_secrets_have_the_ca_apart() {
    let secrets = secrets(&certificates(), "gateways", Format::Legacy, "-v2");
    assert_eq!(
        outline(&secrets),
        [
            row("cacert-v2", "Opaque", &["cacert.pem"]),
            row("sesamecert-v2", TLS, &["tls.crt", "tls.key"]),
            row("envoycert-v2", TLS, &["tls.crt", "tls.key"]),
        ]
    );
}

#[test]
fn yaml_reads_back_as_the_same_secrets() {
    let certificates = certificates();
    for format in [Format::Compact, Format::Legacy] {
        let secrets = secrets(&certificates, "gateways", format, "");
        let text = yaml::render(&secrets).unwrap();
        assert_eq!(text.matches("kind: Secret").count(), secrets.len(), "{text}");
        let read: Vec<Secret> =
            text.split("---\n").skip(1).map(|document| serde_saphyr::from_str(document).unwrap()).collect();
        assert_eq!(read, secrets);
    }
}
