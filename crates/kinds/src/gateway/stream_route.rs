//! TLSRoute, TCPRoute and UDPRoute, `gateway.networking.k8s.io/v1` (and `v1alpha2`, `v1alpha3` where they are served).

use super::{
    reference::{ParentReference, WeightedBackend},
    route_spec::RouteSpec,
};
use crate::{Checked, List, Meta, Status};
use serde::Deserialize;

/// Where TLS connections go, by the server name that the client asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TlsRoute {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: RouteSpec<StreamRule>,
    /// Its status.
    #[serde(default)]
    pub status: Status,
}

/// Where TCP connections go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TcpRoute {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: StreamRouteSpec,
    /// Its status.
    #[serde(default)]
    pub status: Status,
}

/// Where UDP datagrams go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct UdpRoute {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: StreamRouteSpec,
    /// Its status.
    #[serde(default)]
    pub status: Status,
}

/// The specification of a TCPRoute or UDPRoute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamRouteSpec {
    /// What it attaches to.
    #[serde(default)]
    pub parent_refs: List<ParentReference>,
    /// Whether it attaches to default Gateways (experimental).
    #[serde(default)]
    pub use_default_gateways: Checked<Option<Box<str>>>,
    /// The rules: exactly one.
    #[serde(default)]
    pub rules: List<StreamRule>,
}

/// The backends of connections or datagrams.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamRule {
    /// Its name.
    pub name: Option<Box<str>>,
    /// The backends.
    #[serde(default)]
    pub backend_refs: List<WeightedBackend>,
}
