//! The part of an address after `?`.

use axum::http::Uri;
use std::collections::BTreeMap;

/// What was asked for, by name; of a name that comes twice the last holds.
pub(super) struct Query(BTreeMap<String, String>);

impl From<&Uri> for Query {
    fn from(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }
}

impl Query {
    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Whether a value is the one that was asked for, if one was.
    pub fn fits(&self, name: &str, value: &str) -> bool {
        self.get(name).is_none_or(|wanted| wanted == value)
    }

    /// How many are wanted, at most `most`.
    pub fn limit(&self, most: usize) -> usize {
        self.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(most).min(most)
    }
}
