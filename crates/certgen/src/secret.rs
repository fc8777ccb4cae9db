//! The certificates as Kubernetes Secrets.

#[cfg(test)]
mod tests;

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

fn entries(pair: &Pair) -> BTreeMap<String, ByteString> {
    [("tls.crt".to_owned(), bytes(&pair.certificate)), ("tls.key".to_owned(), bytes(&pair.key))].into()
}

fn bytes(text: &str) -> ByteString {
    ByteString(text.as_bytes().to_owned())
}
