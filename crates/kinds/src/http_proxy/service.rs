//! A backend of a route or of a TCP proxy.

use super::route::{CookieRewritePolicy, HeadersPolicy};
use crate::Checked;
use serde::Deserialize;

/// A port of a Service in the proxy's namespace, and how it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// The Service.
    pub name: Box<str>,
    /// The port.
    pub port: i64,
    /// The port that is probed, if another.
    pub health_port: Option<i64>,
    /// What is spoken, if it is not what the Service says.
    pub protocol: Option<Box<str>>,
    /// Its share.
    pub weight: Option<i64>,
    /// It gets copies of requests, and nobody waits for its answers.
    #[serde(default)]
    pub mirror: bool,
    /// Whom to trust.
    #[serde(default)]
    pub validation: Checked<Option<Box<UpstreamValidation>>>,
    /// What is changed about the headers of a request.
    #[serde(default)]
    pub request_headers_policy: Checked<Option<Box<HeadersPolicy>>>,
    /// What is changed about the headers of an answer.
    #[serde(default)]
    pub response_headers_policy: Checked<Option<Box<HeadersPolicy>>>,
    /// What is changed about the cookies of an answer.
    #[serde(default)]
    pub cookie_rewrite_policies: Checked<Option<Box<[CookieRewritePolicy]>>>,
    /// How new endpoints are eased in.
    #[serde(default)]
    pub slow_start_policy: Checked<Option<Box<SlowStartPolicy>>>,
}

/// Whom to trust behind a TLS connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamValidation {
    /// The Secret with the CA: `name` or `namespace/name`.
    #[serde(default)]
    pub ca_secret: Box<str>,
    /// The name that the certificate must have.
    #[serde(default)]
    pub subject_name: Box<str>,
    /// The names of which it must have one; the first is `subject_name`.
    #[serde(default)]
    pub subject_names: Box<[Box<str>]>,
}

/// How new endpoints are eased in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SlowStartPolicy {
    /// For how long.
    #[serde(default)]
    pub window: Box<str>,
    /// How fast; `1.0`, in even steps, if absent.
    pub aggression: Option<Box<str>>,
    /// The share to begin with; 10 if absent.
    pub min_weight_percent: Option<i64>,
}
