//! Filters of rules and backends. A filter that is not supported or cannot be read is never passed over: the rule, or the
//! backend, is not used.

use super::{
    INCOMPATIBLE_FILTERS, Rejection, Work,
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

fn no(field: &FieldPath, why: impl Into<Box<str>>) -> Rejection {
    Rejection::new(Code::GatewayRouteFilter, field.clone(), why)
}

fn incompatible(field: &FieldPath, why: impl Into<Box<str>>) -> Rejection {
    Rejection { reason: INCOMPATIBLE_FILTERS, ..no(field, why) }
}

/// All filters of a list with their types, each type once but for mirrors.
fn typed<'l>(
    list: &'l List<Filter>,
    field: &FieldPath,
) -> Result<Vec<(FieldPath, &'l FilterType, &'l Filter)>, Rejection> {
    let mut found: Vec<(FieldPath, &FilterType, &Filter)> = Vec::new();
    for (index, filter) in list.iter().enumerate() {
        let field = field.index(index);
        let filter = filter.get().map_err(|fault| Rejection::fault(Code::GatewayRouteFilter, fault))?;
        let of_type = filter.r#type.as_ref().ok_or_else(|| no(&field.field("type"), "type must be set"))?;
        if *of_type != FilterType::RequestMirror && found.iter().any(|(_, other, _)| *other == of_type) {
            return Err(incompatible(&field, format!("a filter of type {of_type} stands before it")));
        }
        found.push((field, of_type, filter));
    }
    Ok(found)
}

/// The field of a filter that its type asks for.
fn payload<'l, T>(payload: &'l Option<Box<T>>, name: &str, field: &FieldPath) -> Result<&'l T, Rejection> {
    payload.as_deref().ok_or_else(|| no(field, format!("{name} must be set")))
}

fn unsupported(of_type: &FilterType, field: &FieldPath) -> Rejection {
    no(&field.field("type"), format!("filters of type {of_type} are not supported here"))
}

/// The filters of a rule.
pub(crate) fn of_rule(
    work: &mut Work<'_, impl GatewayView>,
    list: &List<Filter>,
    field: &FieldPath,
    protocols: Protocols,
) -> Result<Filters, Rejection> {
    let mut filters = Filters::default();
    let (mut own_host, mut rewritten_host) = (None, None);
    for (field, of_type, filter) in typed(list, field)? {
        match of_type {
            FilterType::RequestHeaderModifier => {
                let field = field.field("requestHeaderModifier");
                let written = payload(&filter.request_header_modifier, "requestHeaderModifier", &field)?;
                let (changes, host) = headers::changes(written, Direction::Request, &field)?;
                (filters.policy.request_headers, own_host) = (changes, host);
            }
            FilterType::ResponseHeaderModifier => {
                let field = field.field("responseHeaderModifier");
                let written = payload(&filter.response_header_modifier, "responseHeaderModifier", &field)?;
                filters.policy.response_headers = headers::changes(written, Direction::Response, &field)?.0;
            }
            FilterType::RequestMirror => {
                let field = field.field("requestMirror");
                let written = payload(&filter.request_mirror, "requestMirror", &field)?;
                filters.mirrors.extend(mirror(work, written, &field, protocols)?);
            }
            FilterType::RequestRedirect if protocols == Protocols::Http => {
                let field = field.field("requestRedirect");
                let written = payload(&filter.request_redirect, "requestRedirect", &field)?;
                filters.redirect = Some(redirect::redirect(written, &field)?);
            }
            FilterType::UrlRewrite if protocols == Protocols::Http => {
                let field = field.field("urlRewrite");
                let written = payload(&filter.url_rewrite, "urlRewrite", &field)?;
                (rewritten_host, filters.rewrite) = url_rewrite(written, &field)?;
            }
            FilterType::Cors if protocols == Protocols::Http => {
                let field = field.field("cors");
                filters.policy.cors = Some(cors::policy(payload(&filter.cors, "cors", &field)?, &field)?.into());
            }
            other => return Err(unsupported(other, &field)),
        }
    }
    let rewrites = rewritten_host.is_some() || filters.rewrite.is_some();
    if filters.redirect.is_some() && rewrites {
        return Err(incompatible(field, "RequestRedirect and URLRewrite exclude each other"));
    }
    if own_host.is_some() && rewritten_host.is_some() {
        let why = "RequestHeaderModifier and URLRewrite both set the host";
        return Err(incompatible(field, why));
    }
    filters.host = own_host.or(rewritten_host).map(HostRewrite::Literal);
    Ok(filters)
}

/// The filters of a backend: what can be done for each backend by itself.
pub(crate) fn of_backend(list: &List<Filter>, field: &FieldPath) -> Result<BackendFilters, Rejection> {
    let mut filters = BackendFilters::default();
    let mut rewritten_host = None;
    for (field, of_type, filter) in typed(list, field)? {
        match of_type {
            FilterType::RequestHeaderModifier => {
                let field = field.field("requestHeaderModifier");
                let written = payload(&filter.request_header_modifier, "requestHeaderModifier", &field)?;
                (filters.request, filters.host) = headers::changes(written, Direction::Request, &field)?;
            }
            FilterType::ResponseHeaderModifier => {
                let field = field.field("responseHeaderModifier");
                let written = payload(&filter.response_header_modifier, "responseHeaderModifier", &field)?;
                filters.response = headers::changes(written, Direction::Response, &field)?.0;
            }
            FilterType::UrlRewrite => {
                let field = field.field("urlRewrite");
                let written = payload(&filter.url_rewrite, "urlRewrite", &field)?;
                (rewritten_host, filters.rewrite) = url_rewrite(written, &field)?;
            }
            other => return Err(unsupported(other, &field)),
        }
    }
    if filters.host.is_some() && rewritten_host.is_some() {
        let why = "RequestHeaderModifier and URLRewrite both set the host";
        return Err(incompatible(field, why));
    }
    filters.host = filters.host.or(rewritten_host);
    Ok(filters)
}

fn url_rewrite(
    written: &UrlRewrite,
    field: &FieldPath,
) -> Result<(Option<HeaderValue>, Option<PathChange>), Rejection> {
    let host = written.hostname.as_deref().map(|name| {
        let name = Fqdn::parse(name).map_err(|error| no(&field.field("hostname"), error.to_string()))?;
        HeaderValue::parse(name.as_str()).map_err(|error| no(&field.field("hostname"), error.to_string()))
    });
    let path = written.path.as_ref().map(|path| redirect::path_change(path, &field.field("path")));
    Ok((host.transpose()?, path.transpose()?))
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
        (Some(_), Some(_)) => return Err(no(field, "percent and fraction exclude each other")),
        (None, None) => ALL,
        (Some(percent), None) => {
            let percent = Some(percent).filter(|percent| (0..=100).contains(percent));
            percent.ok_or_else(|| no(&field.field("percent"), "must be from 0 to 100"))? * (ALL / 100)
        }
        (None, Some(fraction)) => {
            let (numerator, denominator) = (fraction.numerator, fraction.denominator.unwrap_or(100));
            if numerator < 0 || denominator <= 0 || numerator > denominator || denominator > i64::from(i32::MAX) {
                let why = "numerator is from 0 to denominator, and denominator from 1 to 2147483647";
                return Err(no(&field.field("fraction"), why));
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
