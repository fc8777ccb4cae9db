//! Which requests a Mapping is for: path, host, method, headers, query parameters; and how long all of that is, which is the order in
//! which Mappings are tried.

use super::Work;
use crate::{EmissaryView, Problem, hostname};
use kinds::emissary::mapping::MappingSpec;
use model::{
    Code, HeaderName, HeaderValue, Host, Regex,
    route::{
        Conditions, HeaderMatch, HostCondition, HostNames, LONGEST_PARAMETER, Lengths, Path, PathMatch, QueryMatch,
        StringMatch, ValueMatch,
    },
};

/// What a Mapping matches.
pub(super) struct Matched {
    pub path: PathMatch,
    pub conditions: Conditions,
    /// The names that it is for; nothing where Hosts have to select it.
    pub hosts: Option<Host>,
    pub lengths: Lengths,
}

/// The most conditions of a Mapping.
const MOST: usize = 64;

/// Reads the match; nothing where there is no telling which requests are meant.
pub(super) fn read(work: &mut Work<'_, '_, impl EmissaryView>) -> Option<Matched> {
    let mut lengths = Lengths::default();
    let path = path(work, &mut lengths);
    let mut headers = Vec::new();
    let host = host(work, &mut lengths);
    method(work, &mut headers, &mut lengths);
    let of_headers = of_headers(work, &mut headers, &mut lengths);
    let query = query(work, &mut lengths);
    let (hosts, mut condition) = host?;
    // What is said about `:authority` is a host name, like that of the field.
    let (mut hosts, authority) = (hosts, of_headers?);
    if let Some(found) = authority {
        match condition {
            None => {
                hosts = hosts.map(|_| found.host.clone()).or(Some(found.host));
                condition = found.condition;
            }
            Some(_) => {
                let name = HeaderName::authority();
                let text = StringMatch::Exact(found.condition.map_or_else(String::new, |it| it.to_string()).into());
                let value = ValueMatch::Text { text, ignore_case: true };
                headers.push(HeaderMatch { name, invert: false, value, missing_is_empty: false });
            }
        }
    }
    let query = query?;
    if headers.len() + query.len() > MOST {
        let why = format!("{} headers and query parameters are more than {MOST}", headers.len() + query.len());
        work.problems.refuse(Problem::new(Code::MappingMatch, "headers", why));
        headers.truncate(MOST);
    }
    let conditions = Conditions { headers, query, host: condition }.sorted();
    Some(Matched { path: path?, conditions, hosts, lengths })
}

fn length(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}

/// Adds the length of a name and its value; a pattern counts one more.
fn add(sum: &mut u32, name: &str, value: &str, is_regex: bool) {
    let value = if value.is_empty() { 1 } else { length(value) };
    *sum = sum.saturating_add(length(name)).saturating_add(value).saturating_add(is_regex.into());
}

fn path(work: &mut Work<'_, '_, impl EmissaryView>, lengths: &mut Lengths) -> Option<PathMatch> {
    let MappingSpec { prefix, prefix_regex, prefix_exact, case_sensitive, .. } = &work.object.spec;
    let is_regex = work.problems.optional("prefix_regex", prefix_regex).copied().unwrap_or_default();
    let is_exact = work.problems.optional("prefix_exact", prefix_exact).copied().unwrap_or_default();
    let has_case = work.problems.optional("case_sensitive", case_sensitive).copied().unwrap_or(true);
    let is_read = prefix.ok().is_some();
    let text = match work.problems.optional("prefix", prefix) {
        Some(text) if !text.is_empty() => text,
        _ => {
            if is_read {
                work.problems.refuse(Problem::new(Code::MappingMatch, "prefix", "prefix is missing"));
            }
            return None;
        }
    };
    lengths.path = length(text);
    let reject = |why: String| Problem::new(Code::MappingMatch, "prefix", why);
    let found = if is_regex {
        if !has_case {
            work.problems.no_effect("case_sensitive", "use (?i) in the regular expression instead");
        }
        Regex::parse(text).map(PathMatch::Regex).map_err(|error| reject(error.to_string()))
    } else {
        Path::parse(text).map_err(|error| reject(error.to_string())).map(|path| match (is_exact, has_case) {
            (true, true) => PathMatch::Exact(path),
            (true, false) => PathMatch::ExactIgnoreCase(path),
            (false, true) => PathMatch::Prefix(path),
            (false, false) => PathMatch::PrefixIgnoreCase(path),
        })
    };
    work.problems.parsed(found)
}

/// The names that it is for, and the condition about them; nothing at all where the field cannot be read.
#[allow(clippy::type_complexity, reason = "two things that belong together for one line")]
fn host(
    work: &mut Work<'_, '_, impl EmissaryView>,
    lengths: &mut Lengths,
) -> Option<(Option<Host>, Option<HostCondition>)> {
    let MappingSpec { hostname, host, host_regex, .. } = &work.object.spec;
    let is_regex = work.problems.optional("host_regex", host_regex).copied().unwrap_or_default();
    work.problems.read("hostname", hostname)?;
    work.problems.read("host", host)?;
    let named = hostname.ok().and_then(Option::as_deref).filter(|name| !name.is_empty());
    let deprecated = host.ok().and_then(Option::as_deref).filter(|name| !name.is_empty());
    if named.is_some() && deprecated.is_some() {
        let why = "Cannot specify both hostname and host. Using hostname and ignoring host.";
        work.problems.no_effect("host", why);
    }
    let (field, text) = match (named, deprecated) {
        (Some(text), _) => ("hostname", text),
        (None, Some(text)) => ("host", text),
        (None, None) => return Some((None, None)),
    };
    if field == "host" && is_regex {
        add(&mut lengths.headers, ":authority", text, true);
        let found = Regex::parse(text).map_err(|error| Problem::new(Code::MappingMatch, "host", error.to_string()));
        let regex = work.problems.parsed(found)?;
        return Some((Some(Host::Any), Some(HostCondition { names: HostNames::Regex(regex), port: None })));
    }
    add(&mut lengths.headers, ":authority", text, false);
    let found = match hostname::parse(text) {
        Ok(_) if field == "host" && text.contains('*') => {
            Err(format!("host exact-match {text} contains *, which cannot match anything."))
        }
        found => found,
    };
    let found = found.map_err(|why| Problem::new(Code::EmissaryHostname, field, why));
    work.problems.parsed(found).map(|found| (Some(found.host), found.condition))
}

fn method(work: &mut Work<'_, '_, impl EmissaryView>, headers: &mut Vec<HeaderMatch>, lengths: &mut Lengths) {
    let MappingSpec { method, method_regex, .. } = &work.object.spec;
    let is_regex = work.problems.optional("method_regex", method_regex).copied().unwrap_or_default();
    let Some(text) = work.problems.optional("method", method).filter(|text| !text.is_empty()) else { return };
    add(&mut lengths.headers, ":method", text, is_regex);
    let found = value(text, is_regex).map_err(|why| Problem::new(Code::MappingMatch, "method", why));
    if let (Some(value), Ok(name)) = (work.problems.parsed(found), HeaderName::parse_matched(":method")) {
        headers.push(HeaderMatch { name, invert: false, value, missing_is_empty: false });
    }
}

/// The conditions about headers; what is said about `:authority` is given back.
#[allow(clippy::option_option, reason = "nothing where a field cannot be read, or nothing said")]
fn of_headers(
    work: &mut Work<'_, '_, impl EmissaryView>,
    headers: &mut Vec<HeaderMatch>,
    lengths: &mut Lengths,
) -> Option<Option<hostname::Hostname>> {
    let MappingSpec { headers: exact, regex_headers, .. } = &work.object.spec;
    let mut authority = None;
    for (field, written, is_regex) in [("headers", exact, false), ("regex_headers", regex_headers, true)] {
        for (name, text) in work.problems.read(field, written)? {
            add(&mut lengths.headers, name, text, is_regex);
            let path = format!("{field}.{name}");
            if !is_regex && matches!(&*name.to_ascii_lowercase(), ":authority" | "host") {
                let found = hostname::parse(text).map_err(|why| Problem::new(Code::EmissaryHostname, &path, why));
                authority = work.problems.parsed(found).or(authority);
                continue;
            }
            let name = HeaderName::parse_matched(name).map_err(|error| error.to_string());
            let found = name.and_then(|name| Ok((name, value(text, is_regex)?)));
            let found = found.map_err(|why| Problem::new(Code::MappingMatch, &path, why));
            if let Some((name, value)) = work.problems.parsed(found) {
                headers.push(HeaderMatch { name, invert: false, value, missing_is_empty: false });
            }
        }
    }
    Some(authority)
}

fn query(work: &mut Work<'_, '_, impl EmissaryView>, lengths: &mut Lengths) -> Option<Vec<QueryMatch>> {
    let MappingSpec { query_parameters, regex_query_parameters, .. } = &work.object.spec;
    let mut query = Vec::new();
    let fields =
        [("query_parameters", query_parameters, false), ("regex_query_parameters", regex_query_parameters, true)];
    for (field, written, is_regex) in fields {
        for (name, text) in work.problems.read(field, written)? {
            add(&mut lengths.query, name, text, is_regex);
            let path = format!("{field}.{name}");
            let found = match name.len() {
                1..=LONGEST_PARAMETER => value(text, is_regex),
                _ => Err(format!("the name of a query parameter has 1 to {LONGEST_PARAMETER} bytes")),
            };
            let found = found.map_err(|why| Problem::new(Code::MappingMatch, &path, why));
            if let Some(value) = work.problems.parsed(found) {
                query.push(QueryMatch { name: (&**name).into(), value });
            }
        }
    }
    Some(query)
}

/// The value of a header, a method or a query parameter.
fn value(text: &str, is_regex: bool) -> Result<ValueMatch, String> {
    // A header that may have any value must be there.
    if is_regex && text == ".*" {
        return Ok(ValueMatch::Present);
    }
    let text = if is_regex {
        StringMatch::Regex(Regex::parse(text).map_err(|error| error.to_string())?)
    } else if text.is_empty() {
        return Err("the value is empty; a value that may be anything is `.*` in regex_headers".to_owned());
    } else {
        StringMatch::Exact(HeaderValue::parse(text).map_err(|error| error.to_string())?.as_str().into())
    };
    Ok(ValueMatch::Text { text, ignore_case: false })
}
