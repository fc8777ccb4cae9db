//! Which requests: paths, headers and query parameters.

use serde::Deserialize;

/// One condition of several that must all hold; it may say something about each part of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The path begins with this text.
    pub prefix: Option<Box<str>>,
    /// The path is this text.
    pub exact: Option<Box<str>>,
    /// The whole path matches this pattern.
    pub regex: Option<Box<str>>,
    /// About a header.
    pub header: Option<Box<HeaderCondition>>,
    /// About a query parameter.
    pub query_parameter: Option<Box<QueryParameterCondition>>,
}

/// A condition about a header; one of the operators should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeaderCondition {
    /// The header.
    #[serde(default)]
    pub name: Box<str>,
    /// It is there.
    #[serde(default)]
    pub present: bool,
    /// It is not there.
    #[serde(default, rename = "notpresent")]
    pub not_present: bool,
    /// Its value has this text in it.
    pub contains: Option<Box<str>>,
    /// Its value does not have this text in it.
    #[serde(rename = "notcontains")]
    pub not_contains: Option<Box<str>>,
    /// Its value is this text.
    pub exact: Option<Box<str>>,
    /// Its value is not this text.
    #[serde(rename = "notexact")]
    pub not_exact: Option<Box<str>>,
    /// Its whole value matches this pattern.
    pub regex: Option<Box<str>>,
    /// Upper and lower case are the same.
    #[serde(default)]
    pub ignore_case: bool,
    /// A header that is not there is an empty one.
    #[serde(default)]
    pub treat_missing_as_empty: bool,
}

/// A condition about a query parameter; one of the operators should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryParameterCondition {
    /// The parameter.
    #[serde(default)]
    pub name: Box<str>,
    /// Its value is this text.
    pub exact: Option<Box<str>>,
    /// Its value begins with this text.
    pub prefix: Option<Box<str>>,
    /// Its value ends with this text.
    pub suffix: Option<Box<str>>,
    /// Its whole value matches this pattern.
    pub regex: Option<Box<str>>,
    /// Its value has this text in it.
    pub contains: Option<Box<str>>,
    /// It is there.
    #[serde(default)]
    pub present: bool,
    /// Upper and lower case are the same.
    #[serde(default)]
    pub ignore_case: bool,
}
