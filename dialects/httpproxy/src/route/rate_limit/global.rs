//! What the rate limit service is asked about requests: `rateLimitPolicy.global`.
//!
//! A route's descriptors stand in place of the host's, and those of the host in place of the operator's. The service counts by
//! whatever it is asked, so that a tenant could use up the limit of another by writing its descriptors: an operator can have the
//! namespace of the object that wrote them put before the others.

use crate::{GlobalRateLimits, HttpProxyView, Rejection, Work, condition::headers, route::optional};
use kinds::{
    Checked,
    http_proxy::rate_limit::{self, RateLimitPolicy},
};
use model::{
    Code, FieldPath, HeaderName, ObjectRef,
    route::{Descriptor, DescriptorEntry, GlobalRateLimit},
};
use std::sync::Arc;

/// The key of the namespace before the entries of a descriptor.
const NAMESPACE: &str = "namespace";

/// What a policy says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Nothing: what stands above holds.
    Nothing,
    /// The service is not asked.
    Disabled,
    /// It is asked this.
    Descriptors(Arc<GlobalRateLimit>),
}

impl Said {
    /// What holds, where something stands above.
    pub fn or(self, above: Option<&Arc<GlobalRateLimit>>) -> Option<Arc<GlobalRateLimit>> {
        match self {
            Said::Nothing => above.cloned(),
            Said::Disabled => None,
            Said::Descriptors(limit) => Some(limit),
        }
    }
}

/// Reads the policy of a route or, with another code, of a host.
pub(crate) fn policy(
    work: &mut Work<'_, impl HttpProxyView>,
    subject: &ObjectRef,
    policy: &Checked<Option<Box<RateLimitPolicy>>>,
    field: &FieldPath,
    code: Code,
) -> Result<Said, Rejection> {
    let Some(global) = optional(policy)?.and_then(|policy| policy.global.as_deref()) else { return Ok(Said::Nothing) };
    let field = field.field("rateLimitPolicy").field("global");
    if global.disabled {
        return Ok(Said::Disabled);
    }
    let mut notes = Vec::new();
    let read = read(global, &field, code, &mut notes);
    notes.into_iter().for_each(|note| work.report(subject, note));
    let Some(mut limit) = read? else { return Ok(Said::Nothing) };
    let Some(settings) = &work.settings.global_rate_limits else {
        let why = "no effect: no rate limit service is configured";
        work.report(subject, Rejection::new(Code::RateLimitNoService, field, why));
        return Ok(Said::Nothing);
    };
    if settings.add_namespace {
        let first = DescriptorEntry::Generic { key: Some(NAMESPACE.into()), value: subject.namespace.clone() };
        limit.descriptors.iter_mut().for_each(|descriptor| descriptor.entries.insert(0, first.clone()));
    }
    look_at_service(work, subject, field);
    Ok(Said::Descriptors(Arc::new(limit)))
}

/// Tells an object that has a limit where the service cannot be used.
pub(crate) fn look_at_service(work: &mut Work<'_, impl HttpProxyView>, subject: &ObjectRef, field: FieldPath) {
    let Some(GlobalRateLimits { service: (namespace, name), .. }) = &work.settings.global_rate_limits else { return };
    match resolve::extension::find(work.view, namespace, name) {
        Err(no) if no.code != Code::SecretPending => {
            work.report(subject, Rejection::new(Code::RateLimitServiceUnusable, field, no.why));
        }
        Ok(_) | Err(_) => {}
    }
}

/// Reads the policy that holds for hosts that say nothing; nothing if it has no descriptors or is disabled.
pub fn default_policy(global: &rate_limit::GlobalRateLimit) -> Result<Option<GlobalRateLimit>, (FieldPath, Box<str>)> {
    if global.disabled {
        return Ok(None);
    }
    let found = read(global, &FieldPath::default(), Code::ConfigValue, &mut Vec::new());
    found.map_err(|no| (no.field, no.why))
}

/// The descriptors; nothing if there are none.
fn read(
    global: &rate_limit::GlobalRateLimit,
    field: &FieldPath,
    code: Code,
    notes: &mut Vec<Rejection>,
) -> Result<Option<GlobalRateLimit>, Rejection> {
    let mut descriptors = Vec::new();
    for (index, descriptor) in global.descriptors.iter().enumerate() {
        let field = field.field("descriptors").index(index).field("entries");
        let entries = descriptor.entries.iter().enumerate();
        let entries = entries.map(|(index, one)| entry(one, &field.index(index), code, notes));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        if entries.is_empty() {
            return Err(Rejection::new(code, field, "a descriptor must have at least one entry"));
        }
        descriptors.push(Descriptor { entries });
    }
    Ok((!descriptors.is_empty()).then_some(GlobalRateLimit { descriptors }))
}

fn entry(
    entry: &rate_limit::DescriptorEntry,
    field: &FieldPath,
    code: Code,
    notes: &mut Vec<Rejection>,
) -> Result<DescriptorEntry, Rejection> {
    let rate_limit::DescriptorEntry { generic_key, request_header, request_header_value_match, remote_address } = entry;
    match (generic_key, request_header, request_header_value_match, remote_address) {
        (Some(it), None, None, None) => {
            let field = field.field("genericKey");
            let key = it.key.as_deref().filter(|key| !key.is_empty()).map(Arc::from);
            Ok(DescriptorEntry::Generic { key, value: filled(&it.value, &field, "value", code)? })
        }
        (None, Some(it), None, None) => {
            let field = field.field("requestHeader");
            let name = HeaderName::parse_matched(&it.header_name)
                .map_err(|error| Rejection::new(code, field.field("headerName"), error.to_string()))?;
            let key = filled(&it.descriptor_key, &field, "descriptorKey", code)?;
            Ok(DescriptorEntry::Header { name, key, skip_if_absent: false })
        }
        (None, None, Some(it), None) => {
            let field = field.field("requestHeaderValueMatch");
            let conditions = it.headers.iter().enumerate();
            let conditions = conditions
                .map(|(index, one)| headers::condition(one, &field.field("headers").index(index), notes))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|no| Rejection { code, ..no })?;
            if conditions.is_empty() {
                return Err(Rejection::new(code, field.field("headers"), "at least one header is required"));
            }
            let (expected, value) = (it.expect_match.unwrap_or(true), filled(&it.value, &field, "value", code)?);
            Ok(DescriptorEntry::HeaderMatch { headers: conditions, expected, value })
        }
        (None, None, None, Some(_)) => Ok(DescriptorEntry::RemoteAddress),
        _ => {
            let why = "exactly one of genericKey, requestHeader, requestHeaderValueMatch and remoteAddress must be set";
            Err(Rejection::new(code, field.clone(), why))
        }
    }
}

/// A text that Envoy does not take empty.
fn filled(text: &str, field: &FieldPath, name: &str, code: Code) -> Result<Arc<str>, Rejection> {
    if text.is_empty() { Err(Rejection::new(code, field.field(name), "must not be empty")) } else { Ok(text.into()) }
}
