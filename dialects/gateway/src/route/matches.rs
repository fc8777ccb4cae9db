//! The matches of an HTTPRoute: path, method, headers and query parameters.

use super::{Rejection, Wrong};
use kinds::gateway::http_route::{self, HttpRouteMatch, PathMatchType, ValueMatchType};
use model::{
    Code, FieldPath, HeaderName, Regex,
    route::{Conditions, HeaderMatch, LONGEST_PARAMETER, Path, PathMatch, QueryMatch, StringMatch, ValueMatch},
};
use std::collections::BTreeSet;

/// The requests of a match: their path, and what they must fulfil besides.
pub(crate) type Requests = (PathMatch, Conditions);

/// The requests of a rule without matches: all of them.
pub(crate) fn everything() -> Requests {
    (PathMatch::Prefix(Path::root()), Conditions::default())
}

/// Reads a match.
pub(crate) fn http(written: &HttpRouteMatch, field: &FieldPath, wrong: &mut Wrong) -> Option<Requests> {
    let path = match &written.path {
        Some(path) => wrong.take(path_match(path, &field.field("path"))),
        None => Some(PathMatch::Prefix(Path::root())),
    };
    let mut headers = headers(&written.headers, &field.field("headers"), wrong);
    if let Some(method) = &written.method {
        headers.extend(wrong.take(method_match(method, &field.field("method"))));
    }
    let query = query(&written.query_params, &field.field("queryParams"), wrong);
    Some((path?, Conditions { headers, query, host: None }.sorted()))
}

fn reject(field: &FieldPath, why: impl Into<Box<str>>) -> Rejection {
    Rejection::new(Code::GatewayRouteMatch, field.clone(), why)
}

fn path_match(written: &http_route::PathMatch, field: &FieldPath) -> Result<PathMatch, Rejection> {
    let text = written.value.as_deref().unwrap_or("/");
    let value = field.field("value");
    let path = || Path::parse(text).map_err(|error| reject(&value, error.to_string()));
    match written.r#type.as_ref().unwrap_or(&PathMatchType::PathPrefix) {
        PathMatchType::Exact => path().map(PathMatch::Exact),
        PathMatchType::PathPrefix => path().map(|path| PathMatch::below(&path)),
        PathMatchType::RegularExpression => regex(text, &value).map(PathMatch::Regex),
        PathMatchType::Unknown(word) => Err(reject(
            &field.field("type"),
            format!("must be one of Exact, PathPrefix and RegularExpression, not {word}"),
        )),
    }
}

fn regex(text: &str, field: &FieldPath) -> Result<Regex, Rejection> {
    Regex::parse(text).map_err(|error| reject(field, error.to_string()))
}

/// A method is a header to the proxy.
fn method_match(method: &str, field: &FieldPath) -> Result<HeaderMatch, Rejection> {
    if HeaderName::parse(method).is_err() {
        return Err(reject(field, format!("`{}` is not a method", method.escape_debug())));
    }
    Ok(header(HeaderName::parse_matched(":method").map_err(|error| reject(field, error.to_string()))?, exact(method)))
}

fn exact(text: &str) -> ValueMatch {
    ValueMatch::Text { text: StringMatch::Exact(text.into()), ignore_case: false }
}

/// A condition about a header.
pub(crate) fn header(name: HeaderName, value: ValueMatch) -> HeaderMatch {
    HeaderMatch { name, invert: false, value, missing_is_empty: false }
}

/// Conditions about headers. Of several for one header the first counts, as the API says.
pub(crate) fn headers(written: &[http_route::ValueMatch], field: &FieldPath, wrong: &mut Wrong) -> Vec<HeaderMatch> {
    let mut seen = BTreeSet::new();
    let mut conditions = Vec::new();
    for (index, entry) in written.iter().enumerate() {
        let field = field.index(index);
        let name = HeaderName::parse(&entry.name).and_then(|name| HeaderName::parse_matched(name.as_str()));
        let name = wrong.take(name.map_err(|error| reject(&field.field("name"), error.to_string())));
        if name.as_ref().is_none_or(|name| seen.insert(name.clone())) {
            let value = wrong.take(value(entry, &field));
            conditions.extend(name.zip(value).map(|(name, value)| header(name, value)));
        }
    }
    conditions
}

/// Conditions about query parameters; of several for one parameter the first counts.
fn query(written: &[http_route::ValueMatch], field: &FieldPath, wrong: &mut Wrong) -> Vec<QueryMatch> {
    let mut seen = BTreeSet::new();
    let mut conditions = Vec::new();
    for (index, entry) in written.iter().enumerate() {
        let field = field.index(index);
        if !(1..=LONGEST_PARAMETER).contains(&entry.name.len()) {
            let why = format!("the name of a query parameter has 1 to {LONGEST_PARAMETER} bytes");
            wrong.add(reject(&field.field("name"), why));
        }
        if seen.insert(&entry.name) {
            let value = wrong.take(value(entry, &field));
            conditions.extend(value.map(|value| QueryMatch { name: (&*entry.name).into(), value }));
        }
    }
    conditions
}

fn value(written: &http_route::ValueMatch, field: &FieldPath) -> Result<ValueMatch, Rejection> {
    match written.r#type.as_ref().unwrap_or(&ValueMatchType::Exact) {
        ValueMatchType::Exact => Ok(exact(&written.value)),
        ValueMatchType::RegularExpression => {
            let regex = regex(&written.value, &field.field("value"))?;
            Ok(ValueMatch::Text { text: StringMatch::Regex(regex), ignore_case: false })
        }
        ValueMatchType::Unknown(word) => {
            Err(reject(&field.field("type"), format!("{word} is neither Exact nor RegularExpression")))
        }
    }
}
