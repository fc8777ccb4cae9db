//! HTTPRoute, `gateway.networking.k8s.io/v1` and `v1beta1`.

use super::{filter::Filter, route_spec::RouteSpec};
use crate::{Checked, List, Meta, Status, open_enum::open_enum};
use serde::Deserialize;

/// Routes of HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct HttpRoute {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: RouteSpec<HttpRouteRule>,
    /// Its status.
    #[serde(default)]
    pub status: Status,
}

/// A rule: which requests, what is changed about them, and where they go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRouteRule {
    /// Its name.
    pub name: Option<Box<str>>,
    /// The matches, of which one must hold; every request if empty.
    #[serde(default)]
    pub matches: List<HttpRouteMatch>,
    /// The filters.
    #[serde(default)]
    pub filters: List<Filter>,
    /// The backends.
    #[serde(default)]
    pub backend_refs: List<HttpBackend>,
    /// The timeouts.
    #[serde(default)]
    pub timeouts: Checked<Option<Box<Timeouts>>>,
    /// The retries.
    #[serde(default)]
    pub retry: Checked<Option<Box<Retry>>>,
    /// Session persistence (experimental).
    #[serde(default)]
    pub session_persistence: Checked<Option<Box<SessionPersistence>>>,
}

/// What a request must fulfil.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRouteMatch {
    /// The path; every one if absent.
    pub path: Option<PathMatch>,
    /// The headers.
    #[serde(default)]
    pub headers: Box<[ValueMatch]>,
    /// The query parameters.
    #[serde(default)]
    pub query_params: Box<[ValueMatch]>,
    /// The method.
    pub method: Option<Box<str>>,
}

/// A path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct PathMatch {
    /// How it is compared; `PathPrefix` if absent.
    pub r#type: Option<PathMatchType>,
    /// The path; `/` if absent.
    pub value: Option<Box<str>>,
}

open_enum! {
    /// How a path is compared.
    PathMatchType {
        /// The whole path.
        Exact = "Exact",
        /// The first elements of the path.
        PathPrefix = "PathPrefix",
        /// By a regular expression.
        RegularExpression = "RegularExpression",
    }
}

/// A header or query parameter with its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ValueMatch {
    /// How the value is compared; `Exact` if absent.
    pub r#type: Option<ValueMatchType>,
    /// The name.
    pub name: Box<str>,
    /// The value.
    pub value: Box<str>,
}

open_enum! {
    /// How a value is compared.
    ValueMatchType {
        /// The whole value.
        Exact = "Exact",
        /// By a regular expression.
        RegularExpression = "RegularExpression",
    }
}

/// A backend with its share and filters of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct HttpBackend {
    /// The group; the core group if absent.
    pub group: Option<Box<str>>,
    /// The kind; `Service` if absent.
    pub kind: Option<Box<str>>,
    /// The namespace; that of the route if absent.
    pub namespace: Option<Box<str>>,
    /// The name.
    pub name: Box<str>,
    /// The port; required for a Service.
    pub port: Option<i64>,
    /// The share; 1 if absent.
    pub weight: Option<i64>,
    /// Filters for requests that go here.
    #[serde(default)]
    pub filters: List<Filter>,
}

/// Timeouts, as durations such as `10s`; `0s` is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeouts {
    /// For the whole request, retries included.
    pub request: Option<Box<str>>,
    /// For each try.
    pub backend_request: Option<Box<str>>,
}

/// Retries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Retry {
    /// The status codes that are tried again.
    #[serde(default)]
    pub codes: Box<[i64]>,
    /// How many times; 1 if absent.
    pub attempts: Option<i64>,
    /// The time between tries.
    pub backoff: Option<Box<str>>,
}

/// Session persistence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionPersistence {
    /// By cookie or header; `Cookie` if absent.
    pub r#type: Option<Box<str>>,
    /// The cookie.
    pub cookie: Option<SessionCookie>,
    /// The header.
    pub header: Option<SessionHeader>,
    /// When a session ends.
    pub absolute_timeout: Option<Box<str>>,
}

/// The cookie of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionCookie {
    /// The name.
    pub name: Option<Box<str>>,
    /// The path; `/` if absent.
    pub path: Option<Box<str>>,
    /// `Session` or `Permanent`.
    pub lifetime_type: Option<Box<str>>,
}

/// The header of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SessionHeader {
    /// The name.
    pub name: Box<str>,
}
