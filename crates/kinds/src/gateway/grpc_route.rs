//! GRPCRoute, `gateway.networking.k8s.io/v1`.

use super::{
    filter::Filter,
    http_route::{HttpBackend, SessionPersistence, ValueMatch, ValueMatchType},
    route_spec::RouteSpec,
};
use crate::{Checked, List, Meta, Status};
use serde::Deserialize;

/// Routes of gRPC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GrpcRoute {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: RouteSpec<GrpcRouteRule>,
    /// Its status.
    #[serde(default)]
    pub status: Status,
}

/// A rule: which calls, what is changed about them, and where they go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrpcRouteRule {
    /// Its name.
    pub name: Option<Box<str>>,
    /// The matches, of which one must hold; every call if empty.
    #[serde(default)]
    pub matches: List<GrpcRouteMatch>,
    /// The filters.
    #[serde(default)]
    pub filters: List<Filter>,
    /// The backends.
    #[serde(default)]
    pub backend_refs: List<HttpBackend>,
    /// Session persistence (experimental).
    #[serde(default)]
    pub session_persistence: Checked<Option<Box<SessionPersistence>>>,
}

/// What a call must fulfil.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GrpcRouteMatch {
    /// The service and method; every one if absent.
    pub method: Option<MethodMatch>,
    /// The headers.
    #[serde(default)]
    pub headers: Box<[ValueMatch]>,
}

/// A service and method of gRPC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct MethodMatch {
    /// How they are compared; `Exact` if absent.
    pub r#type: Option<ValueMatchType>,
    /// The service; every one if absent.
    pub service: Option<Box<str>>,
    /// The method; every one if absent.
    pub method: Option<Box<str>>,
}
