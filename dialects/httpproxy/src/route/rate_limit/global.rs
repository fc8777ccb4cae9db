//! What the rate limit service is asked about requests: `rateLimitPolicy.global`.
//!
//! A route's descriptors stand in place of the host's, and those of the host in place of the operator's. The service counts by
//! whatever it is asked, so that a tenant could use up the limit of another by writing its descriptors: an operator can have the
//! namespace of the object that wrote them put before the others.
//!
//! Each request of a route costs a question with all descriptors, and the service is everybody's: they are limited in number and length.

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

/// The most descriptors of a policy.
const MOST_DESCRIPTORS: usize = 64;
/// The most entries of a descriptor, and the most headers of an entry.
const MOST_ENTRIES: usize = 16;
/// The most text of all descriptors of a policy, in bytes: keys, values, and what headers are compared with.
const MOST_TEXT: usize = 8 * 1024;

/// The global policy of a route or host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GlobalPolicy {
    /// It has none: the policy of the host, or of the operator, is in effect.
    Inherit,
    /// The service is not asked.
    Disabled,
    /// It is asked this.
    Descriptors(Arc<GlobalRateLimit>),
}

impl GlobalPolicy {
    /// The limit in effect, given the one that it would inherit.
    pub fn or(self, inherited: Option<&Arc<GlobalRateLimit>>) -> Option<Arc<GlobalRateLimit>> {
        match self {
            GlobalPolicy::Inherit => inherited.cloned(),
            GlobalPolicy::Disabled => None,
            GlobalPolicy::Descriptors(limit) => Some(limit),
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
) -> Result<GlobalPolicy, Rejection> {
    let Some(global) = optional(policy)?.and_then(|policy| policy.global.as_deref()) else {
        return Ok(GlobalPolicy::Inherit);
    };
    let field = field.field("rateLimitPolicy").field("global");
    if global.disabled {
        return Ok(GlobalPolicy::Disabled);
    }
    let mut notes = Vec::new();
    let read = read(global, &field, code, &mut notes);
    notes.into_iter().for_each(|note| work.report(subject, note));
    let Some(mut limit) = read? else { return Ok(GlobalPolicy::Inherit) };
    let Some(settings) = &work.settings.global_rate_limits else {
        let why = "no effect: no rate limit service is configured";
        work.report(subject, Rejection::new(Code::RateLimitNoService, field, why));
        return Ok(GlobalPolicy::Inherit);
    };
    if settings.add_namespace {
        let first = DescriptorEntry::Generic { key: Some(NAMESPACE.into()), value: subject.namespace.clone() };
        limit.descriptors.iter_mut().for_each(|descriptor| descriptor.entries.insert(0, first.clone()));
    }
    look_at_service(work, subject, field);
    Ok(GlobalPolicy::Descriptors(Arc::new(limit)))
}

/// Tells an object that has a limit where the service cannot be used.
pub(crate) fn look_at_service(work: &mut Work<'_, impl HttpProxyView>, subject: &ObjectRef, field: FieldPath) {
    let Some(GlobalRateLimits { service: (namespace, name), .. }) = &work.settings.global_rate_limits else { return };
    match resolve::extension::find(work.view, namespace, name) {
        Err(rejection) if rejection.code != Code::SecretPending => {
            work.report(subject, Rejection::new(Code::RateLimitServiceUnusable, field, rejection.why));
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
    found.map_err(|rejection| (rejection.field, rejection.why))
}

/// The descriptors; nothing if there are none.
fn read(
    global: &rate_limit::GlobalRateLimit,
    field: &FieldPath,
    code: Code,
    notes: &mut Vec<Rejection>,
) -> Result<Option<GlobalRateLimit>, Rejection> {
    let mut descriptors = Vec::new();
    let at = field.field("descriptors");
    most(global.descriptors.len(), MOST_DESCRIPTORS, "descriptors", &at, code)?;
    for (index, descriptor) in global.descriptors.iter().enumerate() {
        let field = at.index(index).field("entries");
        most(descriptor.entries.len(), MOST_ENTRIES, "entries", &field, code)?;
        let entries = descriptor.entries.iter().enumerate();
        let entries = entries.map(|(index, one)| entry(one, &field.index(index), code, notes));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        if entries.is_empty() {
            return Err(Rejection::new(code, field, "a descriptor must have at least one entry"));
        }
        descriptors.push(Descriptor { entries });
    }
    let texts = global.descriptors.iter().flat_map(|descriptor| &descriptor.entries).map(text);
    most(texts.sum(), MOST_TEXT, "bytes of text", &at, code)?;
    Ok((!descriptors.is_empty()).then_some(GlobalRateLimit { descriptors }))
}

/// That there is too much of something.
fn most(found: usize, most: usize, what: &str, field: &FieldPath, code: Code) -> Result<(), Rejection> {
    if found <= most {
        return Ok(());
    }
    Err(Rejection::new(code, field.clone(), format!("{found} {what}; the limit is {most}")))
}

/// How many bytes of text an entry has.
fn text(entry: &rate_limit::DescriptorEntry) -> usize {
    let rate_limit::DescriptorEntry { generic_key, request_header, request_header_value_match, remote_address: _ } =
        entry;
    let of_key = generic_key.iter().map(|it| it.key.as_deref().unwrap_or_default().len() + it.value.len());
    let of_header = request_header.iter().map(|it| it.header_name.len() + it.descriptor_key.len());
    let of_match = request_header_value_match
        .iter()
        .map(|it| it.value.len() + it.headers.iter().map(headers::text).sum::<usize>());
    of_key.chain(of_header).chain(of_match).sum()
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
            most(it.headers.len(), MOST_ENTRIES, "headers", &field.field("headers"), code)?;
            let conditions = it.headers.iter().enumerate();
            let conditions = conditions
                .map(|(index, one)| headers::condition(one, &field.field("headers").index(index), notes))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|rejection| Rejection { code, ..rejection })?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::http_proxy::{
        HeaderCondition,
        rate_limit::{Descriptor, DescriptorEntry, GenericKey, RequestHeader, RequestHeaderValueMatch},
    };

    fn reported(entry: DescriptorEntry, count: usize) -> Option<String> {
        let descriptors = vec![Descriptor { entries: [entry].into() }; count].into();
        let global = rate_limit::GlobalRateLimit { disabled: false, descriptors };
        default_policy(&global).err().map(|(field, why)| format!("{field}: {why}"))
    }

    #[test]
    fn the_text_of_all_descriptors_is_limited() {
        let long = |length: usize| "x".repeat(length).into_boxed_str();
        let key = |length: usize| DescriptorEntry {
            generic_key: Some(GenericKey { key: Some("k".into()), value: long(length) }),
            ..Default::default()
        };
        assert_eq!(reported(key(1023), 8), None);
        assert_eq!(reported(key(1024), 8).as_deref(), Some("descriptors: 8200 bytes of text; the limit is 8192"));
        let header = RequestHeader { header_name: "x-a".into(), descriptor_key: long(8190) };
        let header = DescriptorEntry { request_header: Some(header), ..Default::default() };
        assert_eq!(reported(header, 1).as_deref(), Some("descriptors: 8193 bytes of text; the limit is 8192"));
        let condition = HeaderCondition { name: "x-a".into(), exact: Some(long(9000)), ..Default::default() };
        let compared = RequestHeaderValueMatch { headers: [condition].into(), expect_match: None, value: "v".into() };
        let compared = DescriptorEntry { request_header_value_match: Some(compared), ..Default::default() };
        assert_eq!(reported(compared, 1).as_deref(), Some("descriptors: 9004 bytes of text; the limit is 8192"));
    }
}
