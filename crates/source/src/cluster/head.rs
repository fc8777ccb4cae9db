//! What can be told of an object without decoding it: which it is, and which version of it.
//!
//! Everything but three fields is skipped over, so that an object that is known already costs hardly more than the look
//! at its bytes.

use crate::cluster::api::Failure;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use xxhash_rust::xxh3::xxh3_64;

/// The names and the version of an object.
#[derive(Debug, Deserialize)]
pub struct Head<'a> {
    #[serde(borrow, default)]
    pub metadata: HeadMeta<'a>,
}

/// See [`Head`].
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeadMeta<'a> {
    #[serde(borrow, default)]
    pub name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    pub resource_version: Cow<'a, str>,
}

impl<'a> Head<'a> {
    /// The head of an object. That there is none is no fault of the object: the API server makes it.
    pub fn of(object: &'a RawValue) -> Result<Head<'a>, Failure> {
        serde_json::from_str(object.get())
            .map_err(|error| Failure::Other(format!("an object has no metadata: {error}")))
    }

    /// The version as a number. Versions are compared for equality only.
    pub fn version(&self) -> u64 {
        let text = &*self.metadata.resource_version;
        text.parse().unwrap_or_else(|_| xxh3_64(text.as_bytes()))
    }
}

/// A page of a list.
#[derive(Debug, Deserialize)]
pub struct Page<'a> {
    #[serde(default)]
    pub metadata: PageMeta,
    #[serde(borrow, default)]
    pub items: Option<Vec<&'a RawValue>>,
}

/// See [`Page`].
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageMeta {
    #[serde(default)]
    pub resource_version: String,
    /// Where the next page begins; empty on the last.
    #[serde(default)]
    pub r#continue: String,
}

/// A line of a watch.
#[derive(Debug, Deserialize)]
pub struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub object: &'a RawValue,
}

/// What the API server says when it cannot do something.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub code: u16,
}

/// The kinds of a group.
#[derive(Debug, Deserialize)]
pub struct Kinds<'a> {
    #[serde(borrow, default)]
    pub resources: Vec<KindName<'a>>,
}

/// See [`Kinds`].
#[derive(Debug, Deserialize)]
pub struct KindName<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
}
