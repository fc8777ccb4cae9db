//! BackendTLSPolicy, `gateway.networking.k8s.io/v1` and `v1alpha3`.

use super::reference::LocalReference;
use crate::{Checked, List, Meta, Status, TextMap, open_enum::open_enum};
use serde::Deserialize;

/// TLS towards the backends of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct BackendTlsPolicy {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: BackendTlsPolicySpec,
    /// Its status.
    #[serde(default)]
    pub status: Status,
}

/// The specification of a BackendTLSPolicy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackendTlsPolicySpec {
    /// The Services.
    #[serde(default)]
    pub target_refs: List<PolicyTarget>,
    /// How a backend proves its identity.
    #[serde(default)]
    pub validation: Checked<BackendValidation>,
    /// Options of an implementation.
    #[serde(default)]
    pub options: TextMap,
}

/// A Service, or one of its ports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyTarget {
    /// The group.
    #[serde(default)]
    pub group: Checked<Box<str>>,
    /// The kind.
    #[serde(default)]
    pub kind: Checked<Box<str>>,
    /// The name.
    pub name: Box<str>,
    /// The name of a port; all of them if absent.
    #[serde(default)]
    pub section_name: Checked<Option<Box<str>>>,
}

/// How a backend proves its identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackendValidation {
    /// The server name that is sent, and the name that the certificate must have unless others are listed.
    #[serde(default)]
    pub hostname: Box<str>,
    /// The CA certificates that are trusted.
    #[serde(default)]
    pub ca_certificate_refs: List<LocalReference>,
    /// A well-known set of CA certificates: `System`.
    #[serde(rename = "wellKnownCACertificates")]
    pub well_known_ca_certificates: Option<Box<str>>,
    /// The names of which the certificate must have one.
    #[serde(default)]
    pub subject_alt_names: List<SubjectAltName>,
}

/// A name in a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SubjectAltName {
    /// Its type.
    pub r#type: Option<SubjectAltNameType>,
    /// A DNS name.
    pub hostname: Option<Box<str>>,
    /// A URI, such as a SPIFFE id.
    pub uri: Option<Box<str>>,
}

open_enum! {
    /// The type of a name in a certificate.
    SubjectAltNameType {
        /// A DNS name.
        Hostname = "Hostname",
        /// A URI.
        Uri = "URI",
    }
}
