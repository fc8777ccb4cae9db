//! Secret, `v1`.
//!
//! Its content is decoded from base64 here, entry by entry, and never printed: neither `Debug` nor any message shows it.

use crate::{
    Checked, Fault, Meta,
    text_map::{CheckedMap, FromText},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use std::{fmt, sync::Arc};

/// The type of a Secret with a certificate and its key.
pub const TLS: &str = "kubernetes.io/tls";
/// The type of a Secret that says nothing about its content.
pub const OPAQUE: &str = "Opaque";

/// Certificates and keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "SecretForm")]
pub struct Secret {
    /// Its names.
    pub meta: Meta,
    /// What should be in it; `Opaque` if absent.
    pub secret_type: Checked<Option<Box<str>>>,
    /// What is in it.
    pub data: CheckedMap<Content>,
}

impl Secret {
    /// An entry, if it is there.
    pub fn get(&self, key: &str) -> Result<Option<&[u8]>, &Fault> {
        Ok(self.data.get(key)?.map(Content::bytes))
    }

    /// The Secret with these entries set, whatever they were before.
    #[must_use]
    pub fn with(self, added: impl IntoIterator<Item = (Box<str>, Content)>) -> Self {
        let (mut entries, broken) = self.data.into_parts();
        entries.extend(added.into_iter().map(|(key, content)| (key, Checked::good(content))));
        Self { data: CheckedMap::new(entries, broken), ..self }
    }
}

/// The content of one entry.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Content(Arc<[u8]>);

impl Content {
    /// The content itself.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl FromText for Content {
    fn from_text(text: &str) -> Result<Self, &'static str> {
        // `base64` wraps its lines; the API server takes them so.
        let text: String = text.split_ascii_whitespace().collect();
        let bytes = BASE64_STANDARD.decode(text).map_err(|_| "expected base64: plain text belongs in `stringData`")?;
        Ok(Self(bytes.into()))
    }
}

/// A Secret as it is written: plain text may stand beside base64, and wins.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SecretForm {
    #[serde(default, rename = "metadata")]
    meta: Meta,
    #[serde(default, rename = "type")]
    secret_type: Checked<Option<Box<str>>>,
    #[serde(default)]
    data: CheckedMap<Content>,
    #[serde(default)]
    string_data: CheckedMap<Plain>,
}

struct Plain(Content);

impl FromText for Plain {
    fn from_text(text: &str) -> Result<Self, &'static str> {
        Ok(Self(text.as_bytes().into()))
    }
}

impl From<SecretForm> for Secret {
    fn from(form: SecretForm) -> Self {
        let SecretForm { meta, secret_type, data, string_data } = form;
        let (mut entries, broken) = data.into_parts();
        let (plain, plain_broken) = string_data.into_parts();
        entries.extend(plain.into_iter().map(|(key, value)| (key, value.map(|Plain(content)| content))));
        Self { meta, secret_type, data: CheckedMap::new(entries, broken.or(plain_broken)) }
    }
}

/// The fields of the API that nothing reads.
pub(crate) const UNREAD: &[(&str, &[&str])] = &[crate::meta::UNREAD, ("SecretForm", &["immutable"])];
