//! How many requests are taken.

use super::{HeaderCondition, route::HeaderValue};
use crate::open_enum::open_enum;
use serde::Deserialize;

/// How many requests are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct RateLimitPolicy {
    /// By each proxy for itself.
    pub local: Option<Box<LocalRateLimit>>,
    /// By a service that all proxies ask.
    pub global: Option<Box<GlobalRateLimit>>,
}

/// How many requests each proxy takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalRateLimit {
    /// So many.
    #[serde(default)]
    pub requests: i64,
    /// In this time.
    pub unit: Option<Unit>,
    /// So many more at once.
    pub burst: Option<i64>,
    /// The status of an answer to one too many; 429 if absent.
    pub response_status_code: Option<i64>,
    /// Headers of that answer.
    #[serde(default)]
    pub response_headers_to_add: Box<[HeaderValue]>,
}

open_enum! {
    /// A span in which requests are counted.
    Unit {
        /// A second.
        Second = "second",
        /// A minute.
        Minute = "minute",
        /// An hour.
        Hour = "hour",
    }
}

/// What is asked of the rate limit service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GlobalRateLimit {
    /// It is not asked, whatever stands above.
    #[serde(default)]
    pub disabled: bool,
    /// The questions.
    #[serde(default)]
    pub descriptors: Box<[Descriptor]>,
}

/// One question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Descriptor {
    /// Its parts.
    #[serde(default)]
    pub entries: Box<[DescriptorEntry]>,
}

/// A part of a question: one of the four should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DescriptorEntry {
    /// A fixed text.
    pub generic_key: Option<GenericKey>,
    /// The value of a header.
    pub request_header: Option<RequestHeader>,
    /// A fixed text, if headers are as they should be.
    pub request_header_value_match: Option<RequestHeaderValueMatch>,
    /// The client's address.
    pub remote_address: Option<RemoteAddress>,
}

/// A fixed text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GenericKey {
    /// Its key.
    pub key: Option<Box<str>>,
    /// The text.
    #[serde(default)]
    pub value: Box<str>,
}

/// The value of a header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestHeader {
    /// The header.
    #[serde(default)]
    pub header_name: Box<str>,
    /// The key.
    #[serde(default)]
    pub descriptor_key: Box<str>,
}

/// A fixed text, if headers are as they should be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestHeaderValueMatch {
    /// What the headers should be.
    #[serde(default)]
    pub headers: Box<[HeaderCondition]>,
    /// Or should not be; they should if absent.
    pub expect_match: Option<bool>,
    /// The text.
    #[serde(default)]
    pub value: Box<str>,
}

/// The client's address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct RemoteAddress {}
