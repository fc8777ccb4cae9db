//! Changes of headers, and CORS.

use super::Work;
use crate::{EmissaryView, Problem, Problems, duration};
use kinds::{
    Checked,
    emissary::{
        Map,
        mapping::{AddedHeader, Cors as Written, MappingSpec},
    },
};
use model::{
    Code, MutableHeader,
    header::{HeaderFormat, only_request_header},
    route::{
        Cors, HeaderChanges, Policy, StringMatch,
        cors::{AllowedOrigin, HeaderToken},
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// The policies of a Mapping; nothing, and a verdict, where something of them cannot be served.
pub(super) fn policy(work: &mut Work<'_, '_, impl EmissaryView>) -> Option<Policy> {
    let (spec, defaults) = (&work.object.spec, Arc::clone(&work.defaults));
    let MappingSpec { add_request_headers, remove_request_headers, cors: written, .. } = spec;
    let mut request_headers = HeaderChanges::default();
    let added = added(work.problems, "add_request_headers", add_request_headers);
    let removed = removed(work.problems, "remove_request_headers", remove_request_headers);
    change(&mut request_headers, &defaults.request_headers, added, removed);
    linkerd(work, &mut request_headers);
    let mut response_headers = HeaderChanges::default();
    let added = self::added(work.problems, "add_response_headers", &spec.add_response_headers);
    let removed = self::removed(work.problems, "remove_response_headers", &spec.remove_response_headers);
    added.iter().for_each(|added| report_request_values(work.problems, "add_response_headers", added));
    change(&mut response_headers, &defaults.response_headers, added, removed);
    let cors = match work.problems.optional("cors", written) {
        None => defaults.cors.clone(),
        Some(written) => Some(Arc::new(cors(work.problems, written)?)),
    };
    Some(Policy {
        request_headers,
        response_headers,
        cors,
        ip_filter: defaults.ip_filter.clone(),
        rejects_escaped_slashes: defaults.rejects_escaped_slashes,
        runs_script: defaults.runs_script,
        ..Policy::default()
    })
}

/// Values of request headers in responses are empty there.
pub(crate) fn report_request_values(problems: &mut Problems<'_>, field: &str, changes: &HeaderChanges) {
    for (name, value) in changes.set.iter().chain(&changes.add) {
        if let Some(header) = only_request_header(value.as_str()) {
            let why = format!("{name} has a value of the request header {header}, which responses do not have");
            problems.no_effect(field, &why);
        }
    }
}

/// Headers that are added, and those that are set; nothing where the field is not there.
type AddedHeaders = Option<HeaderChanges>;

/// What the Module says about headers where a Mapping does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultHeaders {
    /// The headers that are added and set.
    pub added: Option<HeaderChanges>,
    /// The headers that are removed.
    pub removed: Option<Vec<MutableHeader>>,
}

fn change(
    changes: &mut HeaderChanges,
    defaults: &DefaultHeaders,
    added: AddedHeaders,
    removed: Option<Vec<MutableHeader>>,
) {
    if let Some(added) = added.or_else(|| defaults.added.clone()) {
        changes.set = added.set;
        changes.add = added.add;
    }
    changes.remove = removed.or_else(|| defaults.removed.clone()).unwrap_or_default();
}

/// Headers that a field adds or sets.
pub(crate) fn added(
    problems: &mut Problems<'_>,
    field: &str,
    written: &Checked<Option<Map<AddedHeader>>>,
) -> AddedHeaders {
    let (mut set, mut add) = (BTreeMap::new(), BTreeMap::new());
    let written = problems.optional(field, written)?;
    check_count(problems, field, written.len())?;
    for (name, header) in written {
        let field = format!("{field}.{name}");
        let reject = |why: String| Problem::new(Code::MappingPolicy, &field, why);
        let parsed = MutableHeader::parse(name).map_err(|error| reject(error.to_string()));
        let parsed = parsed.and_then(|name| {
            let value = HeaderFormat::read(&header.value, &[]).map_err(|error| reject(error.to_string()))?;
            Ok((name, value))
        });
        let Some((name, value)) = problems.parsed(parsed) else { continue };
        if !value.plain.is_empty() {
            let why = format!("{} is literal text: Envoy has no such operator", value.plain.join(", "));
            problems.no_effect(&field, &why);
        }
        let changes = if header.append.unwrap_or(true) { &mut add } else { &mut set };
        changes.insert(name, value.format);
    }
    Some(HeaderChanges { set: set.into_iter().collect(), add: add.into_iter().collect(), remove: Vec::new() })
}

/// Headers that a field removes.
pub(crate) fn removed(
    problems: &mut Problems<'_>,
    field: &str,
    written: &Checked<Option<Box<[Box<str>]>>>,
) -> Option<Vec<MutableHeader>> {
    let mut remove = BTreeSet::new();
    let written = problems.optional(field, written)?;
    check_count(problems, field, written.len())?;
    for name in written {
        let found = MutableHeader::parse(name);
        let found = found.map_err(|error| Problem::new(Code::MappingPolicy, field, error.to_string()));
        remove.extend(problems.parsed(found));
    }
    Some(remove.into_iter().collect())
}

/// Refuses more headers than a list may have.
fn check_count(problems: &mut Problems<'_>, field: &str, count: usize) -> Option<()> {
    problems.parsed(HeaderChanges::check_count(count).map_err(|why| Problem::new(Code::MappingPolicy, field, why)))
}

/// `l5d-dst-override`, by which Linkerd knows the service.
fn linkerd(work: &mut Work<'_, '_, impl EmissaryView>, changes: &mut HeaderChanges) {
    let MappingSpec { add_linkerd_headers, service, .. } = &work.object.spec;
    let own = work.problems.optional("add_linkerd_headers", add_linkerd_headers).copied();
    if !own.unwrap_or(work.defaults.linkerd) {
        return;
    }
    let written = service.ok().and_then(Option::as_deref).and_then(|text| super::service::parse(text).ok());
    let Some(written) = written else { return };
    let port = written.port.unwrap_or(if written.is_https { 443 } else { 80 });
    let host = match written.host.contains(['.', ':']) {
        true => written.host,
        false => format!("{}.{}", written.host, super::service::namespace(work)).into(),
    };
    let name = MutableHeader::parse("l5d-dst-override");
    let value = HeaderFormat::read(&format!("{host}:{port}"), &[]);
    if let (Ok(name), Ok(value)) = (name, value) {
        changes.set.retain(|(own, _)| *own != name);
        changes.set.push((name, value.format));
        changes.set.sort();
    }
}

/// The CORS policy.
pub(crate) fn cors(problems: &mut Problems<'_>, written: &Written) -> Option<Cors> {
    let reject = |name: &str, why: String| Problem::new(Code::MappingPolicy, &format!("cors.{name}"), why);
    if written.origins.is_empty() {
        problems.refuse(reject("origins", "must have at least one origin".to_owned()));
        return None;
    }
    let origins = written.origins.iter().map(|text| match &**text {
        "*" => Ok(AllowedOrigin::Any),
        text if text.is_empty() || text.bytes().any(|b| b <= 0x20 || b == 0x7f) => {
            Err(reject("origins", format!("`{}` is not an origin", text.escape_debug())))
        }
        text => Ok(AllowedOrigin::Matching(StringMatch::Exact(text.into()))),
    });
    let origins = origins.collect::<Result<Vec<_>, _>>();
    let tokens = |name: &str, list: &[Box<str>]| {
        let tokens = list.iter().flat_map(|text| text.split(',')).map(str::trim).filter(|text| !text.is_empty());
        let tokens = tokens.map(HeaderToken::parse);
        tokens.collect::<Result<Vec<_>, _>>().map_err(|error| reject(name, error.to_string()))
    };
    let max_age = written.max_age.as_deref().filter(|text| !text.is_empty()).map(|text| {
        let seconds = text.parse::<u64>().map_err(|_| reject("max_age", "must be a number of seconds".to_owned()));
        let span = seconds.map(Duration::from_secs);
        span.map(|span| duration::at_most_a_year(problems, "cors.max_age", span, &format!("{text} s")))
    });
    let found = origins.and_then(|origins| {
        Ok(Cors {
            origins,
            methods: tokens("methods", &written.methods)?,
            headers: tokens("headers", &written.headers)?,
            exposed: tokens("exposed_headers", &written.exposed_headers)?,
            credentials: written.credentials.unwrap_or_default(),
            max_age: max_age.transpose()?,
            private_network: false,
            forwards_other_preflights: true,
        })
    });
    problems.parsed(found)
}
