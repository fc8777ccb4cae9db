//! The targets of a BackendTLSPolicy: Services, or ports of them by name.
//!
//! In: `targetRefs`, and the Services that they name. Out: which policy is in effect for which ports, and what is wrong with a target.
//! A policy for a port that the Service does not have is in effect nowhere. It was written to protect a port, and nobody can tell which:
//! ports of the Service that no policy is for are not used as long as it is there. A policy with more targets than the API server takes is
//! not valid, and for each Service that it names as a whole: which of its targets those are is not looked for in each of them.

use super::subject;
use crate::GatewayView;
use kinds::{BackendTlsPolicy, gateway::backend_tls_policy::PolicyTarget, kind};
use model::{Code, ObjectRef, Verdict};
use resolve::Service;
use std::{collections::BTreeMap, sync::Arc};

/// The most targets: what the API server takes.
const TARGETS: usize = 16;

/// The policy that is in effect for each section of a Service.
pub type InEffect = BTreeMap<TargetSection, ObjectRef>;

/// What of a Service a policy is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetSection {
    /// A port, by its name.
    Port(Box<str>),
    /// All ports that no other policy is for.
    Whole,
    /// A port that cannot be read: any that no other policy is for by its name. The policy might protect it, so it is not used.
    Unreadable,
}

impl TargetSection {
    /// How a message goes on after the Service.
    fn port(&self) -> String {
        match self {
            TargetSection::Port(name) => format!(", port {name}"),
            TargetSection::Whole | TargetSection::Unreadable => String::new(),
        }
    }
}

/// The Services that a policy names, with what of each it is for.
pub fn targets(policy: &BackendTlsPolicy) -> impl Iterator<Item = (ObjectRef, TargetSection)> {
    let are_too_many = too_many(policy).is_some();
    policy.spec.target_refs.good().filter(|(_, target)| is_service(target)).map(move |(_, target)| {
        let service = ObjectRef::new(kind::SERVICE, policy.meta.namespace.clone(), &*target.name);
        (service, if are_too_many { TargetSection::Whole } else { section(target) })
    })
}

/// That there are more targets than a policy may have.
pub(super) fn too_many(policy: &BackendTlsPolicy) -> Option<String> {
    let count = policy.spec.target_refs.len();
    (count > TARGETS).then(|| format!("there are {count} targets, and at most {TARGETS} may be"))
}

/// What of its Service a target is for.
fn section(target: &PolicyTarget) -> TargetSection {
    let is_read = target.group.ok().is_some() && target.kind.ok().is_some();
    match target.section_name.get() {
        Ok(Some(name)) if is_read && !name.is_empty() => TargetSection::Port(name.clone()),
        Ok(_) if is_read => TargetSection::Whole,
        _ => TargetSection::Unreadable,
    }
}

/// Whether a target is a Service, as far as it can be read.
fn is_service(target: &PolicyTarget) -> bool {
    target.group.ok().is_none_or(|group| **group == *kind::SERVICE.group())
        && target.kind.ok().is_none_or(|kind| **kind == *kind::SERVICE.name())
}

/// What is wrong with a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WrongTarget {
    /// The reason of the condition `Accepted`.
    pub reason: &'static str,
    /// The row of the table of codes.
    pub code: Code,
    field: String,
    why: String,
    /// The Service, where it does not exist.
    absent: Option<ObjectRef>,
}

impl WrongTarget {
    fn invalid(field: impl Into<String>, why: impl Into<String>) -> Self {
        let (field, why) = (field.into(), why.into());
        Self { reason: "Invalid", code: Code::GatewayTlsPolicy, field, why, absent: None }
    }

    fn missing(field: String, why: String) -> Self {
        Self { reason: "TargetNotFound", code: Code::GatewayTlsPolicyTarget, ..Self::invalid(field, why) }
    }

    /// What is told about it.
    pub fn verdict(&self, policy: &ObjectRef) -> Verdict {
        let verdict = Verdict::new(self.code, policy.at(self.field.as_str()), self.why.as_str());
        verdict.related_to(self.absent.as_ref().map(|absent| absent.at("")))
    }

    /// The field and the case.
    pub fn text(&self) -> String {
        format!("{}: {}", self.field, self.why)
    }
}

/// What is wrong with the targets.
pub(super) fn wrong(policy: &BackendTlsPolicy, view: &mut impl GatewayView) -> Vec<WrongTarget> {
    if too_many(policy).is_some() {
        return Vec::new();
    }
    let faults = policy.spec.target_refs.faults();
    let mut wrong: Vec<_> = faults.map(|fault| WrongTarget::invalid(&*fault.path, &*fault.why)).collect();
    for (index, target) in policy.spec.target_refs.good() {
        let field = format!("spec.targetRefs[{index}]");
        let faults = [target.group.fault(), target.kind.fault(), target.section_name.fault()];
        let faults: Vec<_> = faults.into_iter().flatten().collect();
        wrong.extend(faults.iter().map(|fault| WrongTarget::invalid(&*fault.path, &*fault.why)));
        if !is_service(target) {
            wrong.push(WrongTarget::invalid(field, format!("{} is not a Service", target.name)));
        } else if faults.is_empty() {
            wrong.extend(missing(policy, target, field, view));
        }
    }
    wrong
}

/// That a Service, or the port of it that a target names, does not exist.
fn missing(
    policy: &BackendTlsPolicy,
    target: &PolicyTarget,
    field: String,
    view: &mut impl GatewayView,
) -> Option<WrongTarget> {
    let id = ObjectRef::new(kind::SERVICE, policy.meta.namespace.clone(), &*target.name);
    let Some(service) = view.service(&id.namespace, &id.name) else {
        let why = format!("{id} does not exist");
        return Some(WrongTarget { absent: Some(id), ..WrongTarget::missing(format!("{field}.name"), why) });
    };
    match section(target) {
        TargetSection::Port(name) if !has_port(&service, &name) => {
            let why = format!("{id} has no port named {name}; ports of it that no other policy is for are not used");
            Some(WrongTarget::missing(format!("{field}.sectionName"), why))
        }
        _ => None,
    }
}

fn has_port(service: &Service, name: &str) -> bool {
    service.ports.iter().any(|port| *port.name == *name)
}

/// A policy for a port that the Service does not have, and the name of that port.
pub(super) fn misplaced<'p>(policies: &'p InEffect, service: &Service) -> Option<(&'p str, &'p ObjectRef)> {
    policies.iter().find_map(|(section, policy)| match section {
        TargetSection::Port(name) if !has_port(service, name) => Some((&**name, policy)),
        _ => None,
    })
}

/// The policy that is in effect for each section of a Service: the oldest of those that name it.
pub fn in_effect<'p>(service: &ObjectRef, policies: impl IntoIterator<Item = &'p Arc<BackendTlsPolicy>>) -> InEffect {
    let mut found: BTreeMap<TargetSection, &BackendTlsPolicy> = BTreeMap::new();
    let age =
        |policy: &BackendTlsPolicy| (policy.meta.created, policy.meta.namespace.clone(), policy.meta.name.clone());
    for policy in policies {
        let sections: Vec<_> = match too_many(policy) {
            Some(_) => vec![TargetSection::Whole],
            None => targets(policy).filter(|(target, _)| target == service).map(|(_, section)| section).collect(),
        };
        for section in sections {
            let in_effect = found.entry(section).or_insert(policy);
            if age(policy) < age(in_effect) {
                *in_effect = policy;
            }
        }
    }
    found.into_iter().map(|(section, policy)| (section, subject(policy))).collect()
}

/// Why another policy counts for all targets of this one, if so.
pub(super) fn conflict(policy: &BackendTlsPolicy, view: &mut impl GatewayView) -> Option<String> {
    let mut lost = None;
    if too_many(policy).is_some() {
        return lost;
    }
    for (service, section) in targets(policy) {
        match view.policies_in_effect(&service).remove(&section) {
            Some(other) if other.name != policy.meta.name => {
                let why = format!("{service}{} has BackendTLSPolicy {}, which comes first", section.port(), other.name);
                lost.get_or_insert(why);
            }
            _ => return None,
        }
    }
    lost
}
