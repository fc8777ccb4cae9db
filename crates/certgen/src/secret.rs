//! The certificates as Kubernetes Secrets, and those as YAML for `kubectl apply` or a repository of sealed files.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::issue::{Certificates, Pair};

/// The type of a Secret with `tls.crt` and `tls.key`.
const TLS: &str = "kubernetes.io/tls";

/// How the set is spread over Secrets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Two Secrets, each with the CA in `ca.crt`: what every part of Sesame reads.
    #[default]
    Compact,
    /// The CA in a Secret of its own, `cacert` with the entry `cacert.pem`, as Contour had it at first.
    Legacy,
}

/// The Secrets of a set, in the order in which they are written.
pub fn secrets(certificates: &Certificates, namespace: &str, format: Format, name_suffix: &str) -> Vec<Secret> {
    let named = |name: &str, kind: &str, data: BTreeMap<String, ByteString>| Secret {
        metadata: ObjectMeta {
            name: Some(format!("{name}{name_suffix}")),
            namespace: Some(namespace.to_owned()),
            labels: Some([("app".to_owned(), "sesame".to_owned())].into()),
            ..Default::default()
        },
        type_: Some(kind.to_owned()),
        data: Some(data),
        ..Default::default()
    };
    let pairs = [("sesamecert", &certificates.server), ("envoycert", &certificates.envoy)];
    match format {
        Format::Compact => pairs
            .map(|(name, pair)| {
                let mut data = entries(pair);
                data.insert("ca.crt".to_owned(), bytes(&certificates.ca));
                named(name, TLS, data)
            })
            .into(),
        Format::Legacy => {
            let ca = named("cacert", "Opaque", [("cacert.pem".to_owned(), bytes(&certificates.ca))].into());
            let pairs = pairs.map(|(name, pair)| named(name, TLS, entries(pair)));
            [ca].into_iter().chain(pairs).collect()
        }
    }
}

/// The name of the Secret with the key of the disk cache.
pub const CACHE_KEY: &str = "sesame-cache-key";

/// A Secret with a new key for the disk cache, in the entry `cache.key`.
pub fn cache_key(namespace: &str) -> Secret {
    let mut key = [0; 32];
    aws_lc_rs::rand::fill(&mut key).expect("the system has random numbers");
    let text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    Secret {
        metadata: ObjectMeta {
            name: Some(CACHE_KEY.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some([("app".to_owned(), "sesame".to_owned())].into()),
            ..Default::default()
        },
        type_: Some("Opaque".to_owned()),
        data: Some([("cache.key".to_owned(), bytes(&text))].into()),
        ..Default::default()
    }
}

fn entries(pair: &Pair) -> BTreeMap<String, ByteString> {
    [("tls.crt".to_owned(), bytes(&pair.certificate)), ("tls.key".to_owned(), bytes(&pair.key))].into()
}

fn bytes(text: &str) -> ByteString {
    ByteString(text.as_bytes().to_owned())
}

/// The Secrets as YAML, one document for each.
pub fn yaml(secrets: &[Secret]) -> Result<String, serde_saphyr::ser::Error> {
    let mut text = String::new();
    for secret in secrets {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(secret)?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use kube::ResourceExt;

    use super::*;
    use crate::issue::tests::certificates;

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
            let text = yaml(&secrets).unwrap();
            assert_eq!(text.matches("kind: Secret").count(), secrets.len(), "{text}");
            let read: Vec<Secret> =
                text.split("---\n").skip(1).map(|document| serde_saphyr::from_str(document).unwrap()).collect();
            assert_eq!(read, secrets);
        }
    }
}
