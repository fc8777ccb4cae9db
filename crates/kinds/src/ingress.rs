//! Ingress, `networking.k8s.io/v1`.

use crate::{Checked, List, Meta, Status, open_enum::open_enum};
use serde::Deserialize;

/// Hosts and paths of HTTP, and the Services behind them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Ingress {
    /// Its names.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// What is asked for.
    #[serde(default)]
    pub spec: IngressSpec,
    /// Its status.
    #[serde(default)]
    pub status: Status,
}

/// What an Ingress asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IngressSpec {
    /// The class that says which controller it is for.
    #[serde(default)]
    pub ingress_class_name: Checked<Option<Box<str>>>,
    /// Where requests go that match no rule.
    #[serde(default)]
    pub default_backend: Checked<Option<Box<Backend>>>,
    /// Which hosts have TLS, with which certificate.
    #[serde(default)]
    pub tls: List<Tls>,
    /// The hosts and their paths.
    #[serde(default)]
    pub rules: List<Rule>,
}

/// The certificate of some hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// The hosts.
    #[serde(default)]
    pub hosts: List<Box<str>>,
    /// The Secret with certificate and key.
    pub secret_name: Option<Box<str>>,
}

/// The paths of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Rule {
    /// The host; every host if absent.
    pub host: Option<Box<str>>,
    /// The paths.
    #[serde(default)]
    pub http: HttpRule,
}

/// The paths of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct HttpRule {
    /// The paths.
    #[serde(default)]
    pub paths: List<HttpPath>,
}

/// One path and what is behind it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpPath {
    /// The path; all of them if absent.
    pub path: Option<Box<str>>,
    /// How the path is compared; the API demands it, older files lack it.
    pub path_type: Option<PathType>,
    /// What is behind it.
    pub backend: Option<Backend>,
}

open_enum! {
    /// How a path is compared with that of a request.
    PathType {
        /// Equal.
        Exact = "Exact",
        /// Equal, or longer by whole elements.
        Prefix = "Prefix",
        /// As the controller likes.
        ImplementationSpecific = "ImplementationSpecific",
    }
}

/// What is behind a path: one of the two should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Backend {
    /// A Service.
    pub service: Option<ServiceBackend>,
    /// An object of any kind.
    pub resource: Option<Box<ResourceBackend>>,
}

/// A port of a Service in the Ingress's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ServiceBackend {
    /// The Service.
    pub name: Box<str>,
    /// The port.
    #[serde(default)]
    pub port: ServiceBackendPort,
}

/// A port by name or number: one of the two should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ServiceBackendPort {
    /// The name.
    pub name: Option<Box<str>>,
    /// The number.
    pub number: Option<i32>,
}

/// An object of any kind in the Ingress's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceBackend {
    /// Its group; the core group if absent.
    pub api_group: Option<Box<str>>,
    /// Its kind.
    pub kind: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

/// The fields of the API that nothing reads.
pub(crate) const UNREAD: &[(&str, &[&str])] = &[crate::meta::UNREAD];
