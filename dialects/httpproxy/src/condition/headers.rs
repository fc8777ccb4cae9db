//! Conditions about headers.

use crate::Rejection;
use kinds::http_proxy::HeaderCondition;
use model::{
    Code, FieldPath, HeaderName, HeaderValue, Regex,
    route::{HeaderMatch, Test, TextMatch},
};
use std::collections::BTreeSet;

/// One condition. Of several operators the first of Contour's order counts, and the others are told.
pub(super) fn condition(
    header: &HeaderCondition,
    field: &FieldPath,
    notes: &mut Vec<Rejection>,
) -> Result<HeaderMatch, Rejection> {
    let no = |name: &str, why: String| Rejection::new(Code::ProxyRouteHeader, field.field(name), why);
    let name = HeaderName::parse_matched(&header.name).map_err(|error| no("name", error.to_string()))?;
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
        return Err(no("name", "an operator such as exact or present is missing".to_owned()));
    };
    for (other, _) in used {
        let why = format!("`{other}` has no effect together with `{operator}`");
        notes.push(Rejection::new(Code::ProxyIgnored, field.field(other), why));
    }
    HeaderValue::parse(&text).map_err(|error| no(operator, error.to_string()))?;
    let test = match operator {
        "present" | "notpresent" => Test::Present,
        "regex" => {
            let regex = Regex::parse(&text).map_err(|error| no(operator, error.to_string()))?;
            Test::Text { text: TextMatch::Regex(regex), ignore_case: false }
        }
        "contains" | "notcontains" => {
            Test::Text { text: TextMatch::Contains(text.into()), ignore_case: header.ignore_case }
        }
        _ => Test::Text { text: TextMatch::Exact(text.into()), ignore_case: header.ignore_case },
    };
    let invert = operator.starts_with("not");
    let valued = matches!(test, Test::Text { .. });
    if header.ignore_case && !matches!(test, Test::Text { text: TextMatch::Exact(_) | TextMatch::Contains(_), .. }) {
        let why = format!("`ignoreCase` has no effect on `{operator}`");
        notes.push(Rejection::new(Code::ProxyIgnored, field.field("ignoreCase"), why));
    }
    if header.treat_missing_as_empty && !(invert && valued) {
        let why = format!("`treatMissingAsEmpty` has no effect on `{operator}`");
        notes.push(Rejection::new(Code::ProxyIgnored, field.field("treatMissingAsEmpty"), why));
    }
    Ok(HeaderMatch { name, invert, test, missing_is_empty: header.treat_missing_as_empty && invert && valued })
}

/// Whether a request can fulfil all of them.
pub(super) fn agree(headers: &[HeaderMatch]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for header in headers {
        let name = &header.name;
        let is_exact = matches!(header.test, Test::Text { text: TextMatch::Exact(_), .. });
        if is_exact && !header.invert && !seen.insert((name, None, true)) {
            return Err(format!("header {name} cannot have two exact values"));
        }
        seen.insert((name, Some(tested(&header.test)), header.invert));
    }
    for (name, test, invert) in &seen {
        if test.is_some() && seen.contains(&(name, *test, !invert)) {
            return Err(format!("conditions on header {name} contradict each other"));
        }
    }
    Ok(())
}

/// What is tested, without how case is taken: `a` and not `A` are as good as `a` and not `a`.
fn tested(test: &Test) -> (&'static str, &str) {
    match test {
        Test::Present => ("present", ""),
        Test::Text { text, .. } => match text {
            TextMatch::Exact(text) => ("exact", text),
            TextMatch::Contains(text) => ("contains", text),
            TextMatch::Prefix(text) => ("prefix", text),
            TextMatch::Suffix(text) => ("suffix", text),
            TextMatch::Regex(regex) => ("regex", regex.as_str()),
        },
    }
}
