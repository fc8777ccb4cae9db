//! Rate limit labels: what the rate limit service is asked about.

use crate::emissary::Map;
use serde::{Deserialize, Serialize};

/// Labels by domain. Each label of a domain is a group of a name, of parts that are asked about together.
pub type Labels = Map<Box<[Map<Box<[LabelSpecifier]>>]>>;

/// One part of a label: exactly one of the fields should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct LabelSpecifier {
    /// The cluster that the request comes from.
    pub source_cluster: Option<FixedKey>,
    /// The cluster that the request goes to.
    pub destination_cluster: Option<FixedKey>,
    /// The client's address.
    pub remote_address: Option<FixedKey>,
    /// A header of the request.
    pub request_headers: Option<RequestHeader>,
    /// A constant.
    pub generic_key: Option<GenericKey>,
}

/// A part whose key is its own name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct FixedKey {
    /// The name of the part.
    pub key: Box<str>,
}

/// A header of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct RequestHeader {
    /// The key.
    pub key: Box<str>,
    /// The header.
    pub header_name: Box<str>,
    /// A request without the header is asked about without this part; otherwise not at all.
    pub omit_if_not_present: Option<bool>,
}

/// A constant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct GenericKey {
    /// The key; `generic_key` if absent.
    pub key: Option<Box<str>>,
    /// The value.
    pub value: Box<str>,
}
