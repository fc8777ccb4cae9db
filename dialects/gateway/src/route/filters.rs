//! Filters of rules and backends. A filter that is not supported or cannot be read is never passed over: the rule, or the
//! backend, is not used.

use super::{
    INCOMPATIBLE_FILTERS, Rejection, Work, Wrong,
    backends::{self, Protocols},
    cors,
    headers::{self, Direction},
    redirect::{self, RedirectDraft},
};
use crate::GatewayView;
use kinds::{
    List,
    gateway::filter::{Filter, FilterType, RequestMirror, UrlRewrite},
};
use model::{
    Code, FieldPath, Fqdn, HeaderValue,
    route::{HeaderChanges, HostRewrite, Mirror, Path, Policy},
};

/// How a path is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathChange {
    /// As a whole.
    Whole(Path),
    /// The prefix that a match has.
    Prefix(Path),
}

/// The filters of a rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filters {
    pub policy: Policy,
    pub host: Option<HostRewrite>,
    pub rewrite: Option<PathChange>,
    pub redirect: Option<RedirectDraft>,
    pub mirrors: Vec<Mirror>,
}

/// The filters of a backend.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackendFilters {
    pub request: HeaderChanges,
    pub response: HeaderChanges,
    pub host: Option<HeaderValue>,
    pub rewrite: Option<PathChange>,
}

fn reject(field: &FieldPath, why: impl Into<Box<str>>) -> Rejection {
    Rejection::new(Code::GatewayRouteFilter, field.clone(), why)
}

fn incompatible(field: &FieldPath, why: impl Into<Box<str>>) -> Rejection {
    Rejection { reason: INCOMPATIBLE_FILTERS, ..reject(field, why) }
}

/// All filters of a list with their types, each type once but for mirrors.
fn typed<'l>(
    list: &'l List<Filter>,
    field: &FieldPath,
    wrong: &mut Wrong,
) -> Vec<(FieldPath, &'l FilterType, &'l Filter)> {
    let mut found: Vec<(FieldPath, &FilterType, &Filter)> = Vec::new();
    for (index, filter) in list.iter().enumerate() {
        let field = field.index(index);
        let filter = filter.get().map_err(|fault| Rejection::fault(Code::GatewayRouteFilter, fault));
        let Some(filter) = wrong.take(filter) else { continue };
        let of_type = filter.r#type.as_ref().ok_or_else(|| reject(&field.field("type"), "type must be set"));
        let Some(of_type) = wrong.take(of_type) else { continue };
        if *of_type != FilterType::RequestMirror && found.iter().any(|(_, other, _)| *other == of_type) {
            wrong.add(incompatible(&field, format!("conflicts with the preceding {of_type} filter")));
            continue;
        }
        found.push((field, of_type, filter));
    }
    found
}

/// The field of a filter that its type asks for.
fn payload<'l, T>(payload: &'l Option<Box<T>>, name: &str, field: &FieldPath) -> Result<&'l T, Rejection> {
    payload.as_deref().ok_or_else(|| reject(field, format!("{name} must be set")))
}

fn unsupported(of_type: &FilterType, field: &FieldPath) -> Rejection {
    reject(&field.field("type"), format!("filters of type {of_type} are not supported here"))
}

/// The filters of a rule. Where one is wrong none is used, so what is left out here does not matter.
pub(crate) fn of_rule(
    work: &mut Work<'_, impl GatewayView>,
    list: &List<Filter>,
    field: &FieldPath,
    protocols: Protocols,
    wrong: &mut Wrong,
) -> Filters {
    let mut filters = Filters::default();
    let (mut own_host, mut rewritten_host) = (None, None);
    for (field, of_type, filter) in typed(list, field, wrong) {
        match of_type {
            FilterType::RequestHeaderModifier => {
                let field = field.field("requestHeaderModifier");
                let written = wrong.take(payload(&filter.request_header_modifier, "requestHeaderModifier", &field));
                let changes = written.map(|written| headers::changes(written, Direction::Request, &field, wrong));
                (filters.policy.request_headers, own_host) = changes.unwrap_or_default();
            }
            FilterType::ResponseHeaderModifier => {
                let field = field.field("responseHeaderModifier");
                let written = wrong.take(payload(&filter.response_header_modifier, "responseHeaderModifier", &field));
                let changes = written.map(|written| headers::changes(written, Direction::Response, &field, wrong));
                filters.policy.response_headers = changes.unwrap_or_default().0;
            }
            FilterType::RequestMirror => {
                let field = field.field("requestMirror");
                let written = wrong.take(payload(&filter.request_mirror, "requestMirror", &field));
                let mirror = written.and_then(|written| wrong.take(mirror(work, written, &field, protocols)));
                filters.mirrors.extend(mirror.flatten());
            }
            FilterType::RequestRedirect if protocols == Protocols::Http => {
                let field = field.field("requestRedirect");
                let written = wrong.take(payload(&filter.request_redirect, "requestRedirect", &field));
                filters.redirect = written.map(|written| redirect::redirect(written, &field, wrong));
            }
            FilterType::UrlRewrite if protocols == Protocols::Http => {
                let field = field.field("urlRewrite");
                let written = wrong.take(payload(&filter.url_rewrite, "urlRewrite", &field));
                let rewrite = written.map(|written| url_rewrite(written, &field, wrong));
                (rewritten_host, filters.rewrite) = rewrite.unwrap_or_default();
            }
            FilterType::Cors if protocols == Protocols::Http => {
                let field = field.field("cors");
                let written = wrong.take(payload(&filter.cors, "cors", &field));
                filters.policy.cors = written.map(|written| cors::policy(written, &field, wrong).into());
            }
            other => wrong.add(unsupported(other, &field)),
        }
    }
    let rewrites = rewritten_host.is_some() || filters.rewrite.is_some();
    if filters.redirect.is_some() && rewrites {
        wrong.add(incompatible(field, "RequestRedirect and URLRewrite exclude each other"));
    }
    if own_host.is_some() && rewritten_host.is_some() {
        let why = "RequestHeaderModifier and URLRewrite both set the host";
        wrong.add(incompatible(field, why));
    }
    filters.host = own_host.or(rewritten_host).map(HostRewrite::Literal);
    filters
}

/// The filters of a backend: what can be done for each backend by itself.
pub(crate) fn of_backend(list: &List<Filter>, field: &FieldPath, wrong: &mut Wrong) -> BackendFilters {
    let mut filters = BackendFilters::default();
    let mut rewritten_host = None;
    for (field, of_type, filter) in typed(list, field, wrong) {
        match of_type {
            FilterType::RequestHeaderModifier => {
                let field = field.field("requestHeaderModifier");
                let written = wrong.take(payload(&filter.request_header_modifier, "requestHeaderModifier", &field));
                let changes = written.map(|written| headers::changes(written, Direction::Request, &field, wrong));
                (filters.request, filters.host) = changes.unwrap_or_default();
            }
            FilterType::ResponseHeaderModifier => {
                let field = field.field("responseHeaderModifier");
                let written = wrong.take(payload(&filter.response_header_modifier, "responseHeaderModifier", &field));
                let changes = written.map(|written| headers::changes(written, Direction::Response, &field, wrong));
                filters.response = changes.unwrap_or_default().0;
            }
            FilterType::UrlRewrite => {
                let field = field.field("urlRewrite");
                let written = wrong.take(payload(&filter.url_rewrite, "urlRewrite", &field));
                let rewrite = written.map(|written| url_rewrite(written, &field, wrong));
                (rewritten_host, filters.rewrite) = rewrite.unwrap_or_default();
            }
            other => wrong.add(unsupported(other, &field)),
        }
    }
    if filters.host.is_some() && rewritten_host.is_some() {
        let why = "RequestHeaderModifier and URLRewrite both set the host";
        wrong.add(incompatible(field, why));
    }
    filters.host = filters.host.or(rewritten_host);
    filters
}

fn url_rewrite(
    written: &UrlRewrite,
    field: &FieldPath,
    wrong: &mut Wrong,
) -> (Option<HeaderValue>, Option<PathChange>) {
    let host = written.hostname.as_deref().map(|name| {
        let name = Fqdn::parse(name).map_err(|error| reject(&field.field("hostname"), error.to_string()))?;
        HeaderValue::parse(name.as_str()).map_err(|error| reject(&field.field("hostname"), error.to_string()))
    });
    let path = written.path.as_ref().map(|path| redirect::path_change(path, &field.field("path")));
    (wrong.take(host.transpose()).flatten(), wrong.take(path.transpose()).flatten())
}

/// A mirror; nothing where its backend cannot be used, which is told as any reference that is not resolved.
fn mirror(
    work: &mut Work<'_, impl GatewayView>,
    written: &RequestMirror,
    field: &FieldPath,
    protocols: Protocols,
) -> Result<Option<Mirror>, Rejection> {
    const ALL: i64 = 1_000_000;
    let per_million = match (written.percent, &written.fraction) {
        (Some(_), Some(_)) => return Err(reject(field, "percent and fraction exclude each other")),
        (None, None) => ALL,
        (Some(percent), None) => {
            let percent = Some(percent).filter(|percent| (0..=100).contains(percent));
            percent.ok_or_else(|| reject(&field.field("percent"), "must be from 0 to 100"))? * (ALL / 100)
        }
        (None, Some(fraction)) => {
            let (numerator, denominator) = (fraction.numerator, fraction.denominator.unwrap_or(100));
            if numerator < 0 || denominator <= 0 || numerator > denominator || denominator > i64::from(i32::MAX) {
                let why = "numerator is from 0 to denominator, and denominator from 1 to 2147483647";
                return Err(reject(&field.field("fraction"), why));
            }
            // What is asked for is not less than what can be told from nothing.
            if numerator == 0 { 0 } else { (numerator * ALL / denominator).max(1) }
        }
    };
    let reference = backends::Reference::from(&written.backend_ref);
    let found = backends::resolve(work, &reference, &field.field("backendRef"), protocols);
    let Some(cluster) = backends::used(work, found) else { return Ok(None) };
    let per_million = u32::try_from(per_million).unwrap_or_default();
    Ok((per_million > 0).then_some(Mirror { cluster, per_million, keeps_host: true }))
}
