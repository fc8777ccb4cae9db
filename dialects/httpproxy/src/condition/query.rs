//! Conditions about query parameters.

use crate::Rejection;
use kinds::http_proxy::QueryParameterCondition;
use model::{
    Code, FieldPath, Regex,
    route::{LONGEST_PARAMETER, QueryMatch, StringMatch, ValueMatch},
};
use std::collections::BTreeSet;

/// One condition. Of several operators the first counts, and the others are told.
pub(super) fn condition(
    query: &QueryParameterCondition,
    field: &FieldPath,
    notes: &mut Vec<Rejection>,
) -> Result<QueryMatch, Rejection> {
    let reject = |name: &str, why: String| Rejection::new(Code::ProxyRouteQuery, field.field(name), why);
    if query.name.is_empty() || query.name.len() > LONGEST_PARAMETER {
        return Err(reject("name", format!("the name must have 1 to {LONGEST_PARAMETER} bytes")));
    }
    let optional = |text: &Option<Box<str>>| text.clone().filter(|text| !text.is_empty());
    let operators = [
        ("exact", optional(&query.exact)),
        ("prefix", optional(&query.prefix)),
        ("suffix", optional(&query.suffix)),
        ("regex", optional(&query.regex)),
        ("contains", optional(&query.contains)),
        ("present", query.present.then(Box::default)),
    ];
    let mut used = operators.into_iter().filter_map(|(operator, text)| Some((operator, text?)));
    let Some((operator, text)) = used.next() else {
        return Err(reject("name", "an operator such as exact or present is missing".to_owned()));
    };
    for (other, _) in used {
        let why = format!("`{other}` has no effect together with `{operator}`");
        notes.push(Rejection::new(Code::ProxyIgnored, field.field(other), why));
    }
    let text = match operator {
        "exact" => StringMatch::Exact(text.into()),
        "prefix" => StringMatch::Prefix(text.into()),
        "suffix" => StringMatch::Suffix(text.into()),
        "contains" => StringMatch::Contains(text.into()),
        "regex" => StringMatch::Regex(Regex::parse(&text).map_err(|error| reject(operator, error.to_string()))?),
        _ => return Ok(QueryMatch { name: (&*query.name).into(), value: ValueMatch::Present }),
    };
    let ignore_case = query.ignore_case && operator != "regex";
    if query.ignore_case != ignore_case {
        let why = "`ignoreCase` has no effect on `regex`";
        notes.push(Rejection::new(Code::ProxyIgnored, field.field("ignoreCase"), why));
    }
    Ok(QueryMatch { name: (&*query.name).into(), value: ValueMatch::Text { text, ignore_case } })
}

/// Whether a request can fulfil all of them.
pub(super) fn agree(query: &[QueryMatch]) -> Result<(), String> {
    let mut exact = BTreeSet::new();
    for condition in query {
        let is_exact = matches!(condition.value, ValueMatch::Text { text: StringMatch::Exact(_), .. });
        if is_exact && !exact.insert(&condition.name) {
            return Err(format!("parameter {} cannot have two exact values", condition.name));
        }
    }
    Ok(())
}
