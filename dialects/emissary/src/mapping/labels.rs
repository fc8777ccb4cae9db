//! Labels of a Mapping: what the RateLimitService is asked about its requests.
//!
//! Only those of the domain of the RateLimitService count. Each group of a domain is one descriptor, of its parts in order, after those
//! that the Module has for the domain. A Mapping without labels has the Module's of the default domain alone.

use super::Work;
use crate::{EmissaryView, Problem, Problems};
use kinds::emissary::{mapping::labels::LabelSpecifier, module::ModuleSettings};
use model::{
    Code, HeaderName,
    route::{Descriptor, DescriptorEntry, GlobalRateLimit},
};
use std::{collections::BTreeMap, sync::Arc};

/// The domain where nothing is said.
const DOMAIN: &str = "ambassador";
/// The longest domain.
pub(crate) const LONGEST_DOMAIN: usize = 256;

/// What the Module says about labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultLabels {
    /// The domain of a RateLimitService that names none.
    pub domain: Arc<str>,
    /// What stands first in every group of a domain.
    by_domain: BTreeMap<Box<str>, Vec<DescriptorEntry>>,
}

impl Default for DefaultLabels {
    fn default() -> Self {
        Self { domain: DOMAIN.into(), by_domain: BTreeMap::new() }
    }
}

impl DefaultLabels {
    /// Reads them; what is not valid is told, and is as if it was not there.
    pub(super) fn read(written: &ModuleSettings, problems: &mut Problems<'_>) -> Self {
        let mut all = Self::default();
        let invalid = |key: &str, why: String| Problem::new(Code::ModuleValue, key, why);
        let key = "default_label_domain";
        match problems.optional(key, &written.default_label_domain).filter(|domain| !domain.is_empty()) {
            Some(domain) if !is_domain(domain) => problems.refuse(invalid(key, domain_rule())),
            Some(domain) => all.domain = (&**domain).into(),
            None => {}
        }
        for (domain, labels) in problems.read("default_labels", &written.default_labels).into_iter().flatten() {
            let key = format!("default_labels.{domain}");
            if labels.defaults.len() > MOST {
                problems.refuse(invalid(&key, format!("must have at most {MOST} labels")));
                continue;
            }
            let parts = labels.defaults.iter().enumerate();
            let entries =
                parts.map(|(index, part)| entry(part).map_err(|why| invalid(&format!("{key}.defaults[{index}]"), why)));
            if let Some(entries) = problems.parsed(entries.collect::<Result<Vec<_>, _>>()) {
                all.by_domain.insert(domain.clone(), entries);
            }
        }
        all
    }

    fn of(&self, domain: &str) -> &[DescriptorEntry] {
        self.by_domain.get(domain).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Whether a text may be a domain.
pub(crate) fn is_domain(text: &str) -> bool {
    text.len() <= LONGEST_DOMAIN && !text.chars().any(char::is_control)
}

/// What a domain must be.
pub(crate) fn domain_rule() -> String {
    format!("must have at most {LONGEST_DOMAIN} characters, and no control characters")
}

/// The most groups of a Mapping, and parts of a group: each request is asked about by all of them.
const MOST: usize = 32;
/// The longest key or value.
const LONGEST: usize = 1024;
/// The most text of all groups of a Mapping, the Module's labels among them: each route and each call has all of it.
const MOST_TEXT: usize = 16 * 1024;

/// Reads the labels; nothing where nobody is asked.
pub(super) fn read(work: &mut Work<'_, '_, impl EmissaryView>) -> Option<Arc<GlobalRateLimit>> {
    let labels = work.problems.read("labels", &work.object.spec.labels)?;
    let defaults = Arc::clone(&work.defaults);
    if labels.is_empty() {
        let service = work.view.rate_limit_service().filter(|service| service.domain == defaults.labels.domain)?;
        let entries = defaults.labels.of(&service.domain).to_vec();
        return (!entries.is_empty()).then(|| Arc::new(GlobalRateLimit { descriptors: vec![Descriptor { entries }] }));
    }
    let Some(service) = work.view.rate_limit_service() else {
        work.problems.no_effect("labels", "there is no RateLimitService; requests are not limited");
        return None;
    };
    for domain in labels.keys().filter(|domain| ***domain != *service.domain) {
        let why = format!("{} reads labels of the domain {}", service.object, service.domain);
        work.problems.no_effect(&format!("labels.{domain}"), &why);
    }
    let groups = labels.get(&*service.domain)?;
    if !service.is_usable {
        let why = format!("{} cannot be used, as its events say", service.object);
        work.problems.no_effect(&format!("labels.{}", service.domain), &why);
    }
    let mut descriptors = Vec::new();
    let groups = groups.iter().flat_map(|group| group.iter()).collect::<Vec<_>>();
    let field = format!("labels.{}", service.domain);
    if groups.len() > MOST {
        refuse(work, &field, format!("{} groups are more than {MOST}", groups.len()));
        return None;
    }
    for (name, parts) in groups {
        let field = format!("{field}.{name}");
        if parts.len() > MOST || parts.is_empty() {
            refuse(work, &field, format!("must have from 1 to {MOST} parts, not {}", parts.len()));
            continue;
        }
        let mut entries = defaults.labels.of(&service.domain).to_vec();
        for (index, part) in parts.iter().enumerate() {
            match entry(part) {
                Ok(entry) => entries.push(entry),
                Err(why) => refuse(work, &format!("{field}[{index}]"), why),
            }
        }
        descriptors.push(Descriptor { entries });
    }
    let limit = GlobalRateLimit { descriptors };
    let bytes = limit.bytes();
    if bytes > MOST_TEXT {
        refuse(
            work,
            &field,
            format!("{bytes} bytes, with the default labels of the Module, are more than {MOST_TEXT}"),
        );
    }
    (!limit.descriptors.is_empty() && !work.problems.is_refused()).then(|| Arc::new(limit))
}

fn refuse(work: &mut Work<'_, '_, impl EmissaryView>, field: &str, why: String) {
    work.problems.refuse(Problem::new(Code::MappingLabels, field, why));
}

fn entry(part: &LabelSpecifier) -> Result<DescriptorEntry, String> {
    let LabelSpecifier { source_cluster, destination_cluster, remote_address, request_headers, generic_key } = part;
    let found = match (source_cluster, destination_cluster, remote_address, request_headers, generic_key) {
        (Some(_), None, None, None, None) => DescriptorEntry::SourceCluster,
        (None, Some(_), None, None, None) => DescriptorEntry::DestinationCluster,
        (None, None, Some(_), None, None) => DescriptorEntry::RemoteAddress,
        (None, None, None, Some(header), None) => DescriptorEntry::Header {
            name: HeaderName::parse_matched(&header.header_name).map_err(|error| error.to_string())?,
            key: filled("key", &header.key)?,
            skip_if_absent: header.omit_if_not_present.unwrap_or_default(),
        },
        (None, None, None, None, Some(generic)) => {
            let key = generic.key.as_deref().filter(|key| !key.is_empty());
            DescriptorEntry::Generic {
                key: key.map(|key| filled("key", key)).transpose()?,
                value: filled("value", &generic.value)?,
            }
        }
        _ => {
            let why = "must have exactly one of source_cluster, destination_cluster, remote_address, request_headers and generic_key";
            return Err(why.to_owned());
        }
    };
    Ok(found)
}

fn filled(name: &str, text: &str) -> Result<Arc<str>, String> {
    match text.len() {
        1..=LONGEST => Ok(text.into()),
        found => Err(format!("{name} must have from 1 to {LONGEST} bytes, not {found}")),
    }
}
