//! Conditions about headers.

use crate::Rejection;
use kinds::http_proxy::HeaderCondition;
use model::{
    Code, FieldPath, HeaderName, HeaderValue, Regex,
    route::{HeaderMatch, StringMatch, ValueMatch},
};
use std::collections::BTreeSet;

/// How many bytes of text a condition has.
pub(crate) fn text(header: &HeaderCondition) -> usize {
    let HeaderCondition { name, contains, not_contains, exact, not_exact, regex, .. } = header;
    let texts = [contains, not_contains, exact, not_exact, regex].into_iter().flatten();
    name.len() + texts.map(|text| text.len()).sum::<usize>()
}

/// One condition. Of several operators the first of Contour's order counts, and the others are told.
pub(crate) fn condition(
    header: &HeaderCondition,
    field: &FieldPath,
    notes: &mut Vec<Rejection>,
) -> Result<HeaderMatch, Rejection> {
    let reject = |name: &str, why: String| Rejection::new(Code::ProxyRouteHeader, field.field(name), why);
    let name = HeaderName::parse_matched(&header.name).map_err(|error| reject("name", error.to_string()))?;
    let optional = |text: &Option<Box<str>>| text.clone().filter(|text| !text.is_empty());
    let operators = [
        ("present", header.present.then(Box::default)),
        ("notpresent", header.not_present.then(Box::default)),
        ("contains", optional(&header.contains)),
        ("notcontains", optional(&header.not_contains)),
        ("exact", optional(&header.exact)),
        ("notexact", optional(&header.not_exact)),
        ("regex", optional(&header.regex)),
    ];
    let mut used = operators.into_iter().filter_map(|(operator, text)| Some((operator, text?)));
    let Some((operator, text)) = used.next() else {
        return Err(reject("name", "an operator such as exact or present is missing".to_owned()));
    };
    for (other, _) in used {
        let why = format!("`{other}` has no effect together with `{operator}`");
        notes.push(Rejection::new(Code::ProxyIgnored, field.field(other), why));
    }
    HeaderValue::parse(&text).map_err(|error| reject(operator, error.to_string()))?;
    let value = match operator {
        "present" | "notpresent" => ValueMatch::Present,
        "regex" => {
            let regex = Regex::parse(&text).map_err(|error| reject(operator, error.to_string()))?;
            ValueMatch::Text { text: StringMatch::Regex(regex), ignore_case: false }
        }
        "contains" | "notcontains" => {
            ValueMatch::Text { text: StringMatch::Contains(text.into()), ignore_case: header.ignore_case }
        }
        _ => ValueMatch::Text { text: StringMatch::Exact(text.into()), ignore_case: header.ignore_case },
    };
    let invert = operator.starts_with("not");
    let valued = matches!(value, ValueMatch::Text { .. });
    if header.ignore_case
        && !matches!(value, ValueMatch::Text { text: StringMatch::Exact(_) | StringMatch::Contains(_), .. })
    {
        let why = format!("`ignoreCase` has no effect on `{operator}`");
        notes.push(Rejection::new(Code::ProxyIgnored, field.field("ignoreCase"), why));
    }
    if header.treat_missing_as_empty && !(invert && valued) {
        let why = format!("`treatMissingAsEmpty` has no effect on `{operator}`");
        notes.push(Rejection::new(Code::ProxyIgnored, field.field("treatMissingAsEmpty"), why));
    }
    Ok(HeaderMatch { name, invert, value, missing_is_empty: header.treat_missing_as_empty && invert && valued })
}

/// Whether a request can fulfil all of them.
pub(super) fn agree(headers: &[HeaderMatch]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for header in headers {
        let name = &header.name;
        let is_exact = matches!(header.value, ValueMatch::Text { text: StringMatch::Exact(_), .. });
        if is_exact && !header.invert && !seen.insert((name, None, true)) {
            return Err(format!("header {name} cannot have two exact values"));
        }
        seen.insert((name, Some(compared_with(&header.value)), header.invert));
    }
    for (name, value, invert) in &seen {
        if value.is_some() && seen.contains(&(name, *value, !invert)) {
            return Err(format!("conditions on header {name} contradict each other"));
        }
    }
    Ok(())
}

/// What a value is compared with, whatever its case: `a` and not `A` exclude each other as `a` and not `a` do.
fn compared_with(value: &ValueMatch) -> (&'static str, &str) {
    match value {
        ValueMatch::Present => ("present", ""),
        ValueMatch::Text { text, .. } => match text {
            StringMatch::Exact(text) => ("exact", text),
            StringMatch::Contains(text) => ("contains", text),
            StringMatch::Prefix(text) => ("prefix", text),
            StringMatch::Suffix(text) => ("suffix", text),
            StringMatch::Regex(regex) => ("regex", regex.as_str()),
        },
    }
}
