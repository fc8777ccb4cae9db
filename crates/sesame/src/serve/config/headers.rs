//! Keys about headers that are changed on the way to every backend, and back.

use super::row::{Row, rows};
use super::value::{BOOLEAN, Wrong, boolean, list, map, text};
use kinds::Node;
use model::MutableHeader;
use model::header::{HeaderError, HeaderFormat};
use model::route::HeaderChanges;
use std::collections::{BTreeMap, BTreeSet};

const SET: &str = "a map of names to values";
const REMOVE: &str = "a list of names";

/// Headers that are changed everywhere.
pub const HEADERS: &[Row] = rows! {
    works("policy.request-headers.set" = "policy.requestHeaders.set", SET, "{}", "headers set on requests to backends, unless the HTTPProxy sets or removes them", |c, n| c.pipeline.http_proxy.request_headers.set = values(n)?);
    works("policy.request-headers.remove" = "policy.requestHeaders.remove", REMOVE, "[]", "headers removed from requests to backends", |c, n| c.pipeline.http_proxy.request_headers.remove = names(n)?);
    works("policy.response-headers.set" = "policy.responseHeaders.set", SET, "{}", "headers set on responses of backends", |c, n| c.pipeline.http_proxy.response_headers.set = values(n)?);
    works("policy.response-headers.remove" = "policy.responseHeaders.remove", REMOVE, "[]", "headers removed from responses of backends", |c, n| c.pipeline.http_proxy.response_headers.remove = names(n)?);
    works("policy.applyToIngress" = "policy.applyToIngress", BOOLEAN, "false", "apply the header policies to Ingresses as well", |c, n| c.headers_on_ingresses = boolean(n)?);
};

/// The names that stand for the backend; here only their being known counts.
const OWN: [(&str, &str); 3] = [("CONTOUR_NAMESPACE", ""), ("CONTOUR_SERVICE_NAME", ""), ("CONTOUR_SERVICE_PORT", "")];

fn values(node: &Node<'_>) -> Result<BTreeMap<MutableHeader, Box<str>>, Wrong> {
    let entries = map(node, |key, value| {
        let value = text(value)?;
        let read = HeaderFormat::read(&value, &OWN).map_err(|error| Wrong::new(error.to_string()))?;
        if let Some(word) = read.plain.first() {
            let why = format!("dynamic value `%{word}%` is not supported; `%%` is a plain `%`");
            return Err(Wrong::new(why));
        }
        Ok((header(key)?, value.into()))
    })?;
    HeaderChanges::check_count(entries.len()).map_err(Wrong::new)?;
    let mut values = BTreeMap::new();
    for (name, value) in entries {
        if values.contains_key(&name) {
            return Err(Wrong::new(format!("the header {name} is set more than once")));
        }
        values.insert(name, value);
    }
    Ok(values)
}

fn names(node: &Node<'_>) -> Result<BTreeSet<MutableHeader>, Wrong> {
    let names = list(node, |item| header(&text(item)?))?;
    HeaderChanges::check_count(names.len()).map_err(Wrong::new)?;
    Ok(names.into_iter().collect())
}

fn header(text: &str) -> Result<MutableHeader, Wrong> {
    MutableHeader::parse(text).map_err(|error| match error {
        HeaderError::Host => Wrong::new("the header Host cannot be changed for all"),
        error => Wrong::new(error.to_string()),
    })
}
