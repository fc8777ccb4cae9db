//! BackendTLSPolicy: TLS towards the backends of a Service, or of one of its ports by name.
//!
//! In: the policies that name a Service. Out: for a port, the server name and how the backend's certificate is validated. A policy
//! for the port comes before one for the whole Service, then the older one. A policy that is not valid is not passed over: its
//! backends are not used at all.

use crate::{
    GatewayView, Settings,
    status::conditions::{self, ACCEPTED, RESOLVED_REFS},
};
use kinds::{
    BackendTlsPolicy,
    gateway::backend_tls_policy::{PolicyTarget, SubjectAltNameType},
    kind,
};
use model::{
    Code, Fqdn, ObjectRef, Translation, Verdict, VerdictList,
    cluster::{SubjectAltName, TrustedCa, Validation},
    status::{
        Acknowledgement, AtomicList, Condition, Entry, ListLayout, Scope, StatusFacts, StatusKind, StatusLayout,
        StatusValue, Truth,
    },
};
use resolve::Rejection;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The most entries of the list of ancestors.
const ANCESTORS: usize = 16;
/// The longest URI that a certificate can be asked for.
const LONGEST_URI: usize = 253;

/// The status of BackendTLSPolicies.
pub const STATUS: StatusKind = StatusKind {
    layout: StatusLayout {
        lists: &[ListLayout {
            field: "ancestors",
            fields: &[],
            conditions: &[ACCEPTED, RESOLVED_REFS],
            atomic: Some(AtomicList { owner: "controllerName", limit: ANCESTORS }),
        }],
        ..StatusLayout::EMPTY
    },
    facts: |input| input.translated.cloned().unwrap_or_default(),
    acknowledgement: Acknowledgement::Awaited,
    interval: Duration::ZERO,
};

/// TLS towards a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamTls {
    /// The server name of the handshake.
    pub server_name: Arc<str>,
    /// How the certificate is validated.
    pub validation: Validation,
}

/// The TLS of a port of a Service, if a policy asks for it.
pub fn of_port(view: &mut impl GatewayView, service: &ObjectRef, port: &str) -> Result<Option<UpstreamTls>, Rejection> {
    let own = if port.is_empty() { None } else { view.policy_in_effect(service, Some(port)) };
    let policy = own.or_else(|| view.policy_in_effect(service, None));
    let Some(policy) = policy.and_then(|policy| view.tls_policy(&policy)) else { return Ok(None) };
    read(&policy, view).map(Some).map_err(|invalid| {
        let code = if invalid.is_pending { Code::SecretPending } else { Code::GatewayTlsPolicy };
        Rejection::new(
            code,
            format!("BackendTLSPolicy {}/{}: {}", policy.meta.namespace, policy.meta.name, invalid.why),
        )
    })
}

/// The Services that a policy names, with the port by name.
pub fn targets(policy: &BackendTlsPolicy) -> impl Iterator<Item = (ObjectRef, Option<&str>)> {
    let is_service =
        |target: &PolicyTarget| (&*target.group, &*target.kind) == (kind::SERVICE.group(), kind::SERVICE.name());
    policy.spec.target_refs.good().filter(move |(_, target)| is_service(target)).map(|(_, target)| {
        let service = ObjectRef::new(kind::SERVICE, policy.meta.namespace.clone(), &*target.name);
        (service, target.section_name.as_deref().filter(|name| !name.is_empty()))
    })
}

/// The policy that is in effect for each section of a Service: the oldest of those that name it.
pub fn in_effect<'p>(
    service: &ObjectRef,
    policies: impl IntoIterator<Item = &'p Arc<BackendTlsPolicy>>,
) -> BTreeMap<Option<Box<str>>, ObjectRef> {
    let mut found: BTreeMap<Option<Box<str>>, &BackendTlsPolicy> = BTreeMap::new();
    let age =
        |policy: &BackendTlsPolicy| (policy.meta.created, policy.meta.namespace.clone(), policy.meta.name.clone());
    for policy in policies {
        for (_, section) in targets(policy).filter(|(target, _)| target == service) {
            let in_effect = found.entry(section.map(Into::into)).or_insert(policy);
            if age(policy) < age(in_effect) {
                *in_effect = policy;
            }
        }
    }
    found.into_iter().map(|(section, policy)| (section, subject(policy))).collect()
}

/// The policy, by name.
fn subject(policy: &BackendTlsPolicy) -> ObjectRef {
    ObjectRef::new(kind::BACKEND_TLS_POLICY, policy.meta.namespace.clone(), policy.meta.name.clone())
}

/// Why a policy is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Invalid {
    /// The reason of the condition `Accepted`.
    accepted: &'static str,
    /// The reason of the condition `ResolvedRefs`, where a reference is to blame.
    resolved: Option<&'static str>,
    field: &'static str,
    why: String,
    is_pending: bool,
}

impl Invalid {
    fn value(field: &'static str, why: impl Into<String>) -> Self {
        Self { accepted: "Invalid", resolved: None, field, why: why.into(), is_pending: false }
    }

    fn ca(reason: &'static str, why: impl Into<String>) -> Self {
        let field = "spec.validation.caCertificateRefs";
        Self { accepted: "NoValidCACertificate", resolved: Some(reason), ..Self::value(field, why) }
    }
}

/// What a policy asks for, or why it is not valid.
fn read(policy: &BackendTlsPolicy, view: &mut impl GatewayView) -> Result<UpstreamTls, Invalid> {
    let field = "spec.validation";
    let written = policy.spec.validation.get().map_err(|fault| Invalid::value(field, fault.to_string()))?;
    if let Some((option, _)) = policy.spec.options.iter().next() {
        return Err(Invalid::value("spec.options", format!("the option {option} is not supported")));
    }
    let hostname = Fqdn::parse(&written.hostname);
    let hostname = hostname.map_err(|error| Invalid::value("spec.validation.hostname", error.to_string()))?;
    let mut names = Vec::new();
    for name in written.subject_alt_names.iter() {
        let wrong = |why: String| Invalid::value("spec.validation.subjectAltNames", why);
        let name = name.get().map_err(|fault| wrong(fault.to_string()))?;
        names.push(match (&name.r#type, &name.hostname, &name.uri) {
            (Some(SubjectAltNameType::Hostname), Some(text), None) => {
                let parsed = Fqdn::parse(text.strip_prefix("*.").unwrap_or(text));
                parsed.map_err(|error| wrong(error.to_string()))?;
                SubjectAltName::Dns((&**text).into())
            }
            (Some(SubjectAltNameType::Uri), None, Some(uri)) => {
                if !(1..=LONGEST_URI).contains(&uri.len()) || !uri.bytes().all(|b| b.is_ascii_graphic()) {
                    return Err(wrong(format!("a URI has 1 to {LONGEST_URI} visible ASCII characters")));
                }
                SubjectAltName::Uri((&**uri).into())
            }
            _ => return Err(wrong("a name has a type, Hostname or URI, and the field of that type".to_owned())),
        });
    }
    if names.is_empty() {
        names.push(SubjectAltName::Dns(hostname.as_str().into()));
    }
    let ca = match (written.well_known_ca_certificates.as_deref(), written.ca_certificate_refs.is_empty()) {
        (Some("System"), true) => TrustedCa::System,
        (Some(other), true) => {
            let why = format!("must be System, not `{other}`");
            return Err(Invalid::value("spec.validation.wellKnownCACertificates", why));
        }
        (None, false) => TrustedCa::Bundle(bundle(policy, view)?),
        _ => {
            let why = "exactly one of caCertificateRefs and wellKnownCACertificates must be set";
            return Err(Invalid::value("spec.validation", why));
        }
    };
    Ok(UpstreamTls { server_name: hostname.as_str().into(), validation: Validation { ca, names } })
}

/// The object with the CA bundle.
fn bundle(policy: &BackendTlsPolicy, view: &mut impl GatewayView) -> Result<ObjectRef, Invalid> {
    const UNRESOLVED: &str = "InvalidCACertificateRef";
    let validation = policy.spec.validation.get().map_err(|fault| Invalid::ca(UNRESOLVED, fault.to_string()))?;
    let references = &validation.ca_certificate_refs;
    let mut found = Vec::new();
    for reference in references.iter() {
        let reference = reference.get().map_err(|fault| Invalid::ca(UNRESOLVED, fault.to_string()))?;
        let kind = [kind::CONFIG_MAP, kind::SECRET]
            .into_iter()
            .find(|kind| (kind.group(), kind.name()) == (&*reference.group, &*reference.kind));
        let Some(kind) = kind else {
            let why = format!("{} {} is neither a ConfigMap nor a Secret", reference.kind, reference.name);
            return Err(Invalid::ca("InvalidKind", why));
        };
        found.push(ObjectRef::new(kind, policy.meta.namespace.clone(), &*reference.name));
    }
    let [only] = &found[..] else {
        return Err(Invalid::ca(
            UNRESOLVED,
            "only one reference is supported; put all certificates into one ConfigMap",
        ));
    };
    resolve::trusted(view, &policy.meta.namespace, only)
        .map_err(|no| Invalid { is_pending: no.code == Code::SecretPending, ..Invalid::ca(UNRESOLVED, no.why) })?;
    Ok(only.clone())
}

/// What is said about a policy. It asks for nothing by itself: routes look it up. Which Gateways it is about is added when the
/// status is decided ([`complete`]).
pub fn translate(policy: &BackendTlsPolicy, view: &mut impl GatewayView, settings: &Settings) -> Translation {
    let subject = subject(policy);
    let mut verdicts = VerdictList::default();
    for fault in policy.spec.target_refs.faults() {
        verdicts.push(Verdict::new(Code::GatewayTlsPolicy, subject.at(&*fault.path), fault.why.clone()));
    }
    let found = read(policy, view);
    if let Err(invalid) = &found {
        let code = if invalid.is_pending { Code::SecretPending } else { Code::GatewayTlsPolicy };
        verdicts.push(Verdict::new(code, subject.at(invalid.field), invalid.why.as_str()));
    }
    let conflict = conflict(policy, view);
    if let Some(why) = &conflict {
        verdicts.push(Verdict::new(Code::GatewayTlsPolicyConflict, subject.at("spec.targetRefs"), why.as_str()));
    }
    let is_pending = found.as_ref().is_err_and(|invalid| invalid.is_pending);
    let identity = vec![("controllerName", StatusValue::text(&*settings.controller))];
    let scope = Scope { conditions: conditions_of(found.err(), conflict), ..Scope::default() };
    let facts = StatusFacts { object: Scope::default(), lists: vec![("ancestors", vec![Entry { identity, scope }])] };
    let pending = if is_pending { vec![subject.clone()] } else { Vec::new() };
    Translation { facts: Some(facts.into()), pending, verdicts: verdicts.into_sorted(), ..Translation::empty(subject) }
}

fn conditions_of(invalid: Option<Invalid>, conflict: Option<String>) -> Vec<Condition> {
    let accepted = match (&conflict, &invalid) {
        (Some(why), _) => conditions::new(ACCEPTED, Truth::False, "Conflicted", why.as_str()),
        (None, Some(invalid)) => {
            let why = format!("{}: {}", invalid.field, invalid.why);
            conditions::new(ACCEPTED, Truth::False, invalid.accepted, why)
        }
        (None, None) => conditions::accepted("The policy is in effect."),
    };
    let resolved = match invalid {
        Some(Invalid { resolved: Some(reason), why, .. }) => conditions::new(RESOLVED_REFS, Truth::False, reason, why),
        _ => conditions::resolved(),
    };
    vec![accepted, resolved]
}

/// Why another policy counts for all targets of this one, if so.
fn conflict(policy: &BackendTlsPolicy, view: &mut impl GatewayView) -> Option<String> {
    let mut lost = None;
    for (service, section) in targets(policy) {
        match view.policy_in_effect(&service, section) {
            Some(other) if other.name != policy.meta.name => {
                let section = section.map_or_else(String::new, |name| format!(", port {name}"));
                let why = format!("{service}{section} has the older BackendTLSPolicy {}", other.name);
                lost.get_or_insert(why);
            }
            _ => return None,
        }
    }
    lost
}

/// The facts of a policy for each Gateway whose routes use one of its Services.
#[must_use]
pub fn complete(facts: &StatusFacts, gateways: impl IntoIterator<Item = ObjectRef>) -> StatusFacts {
    let template = facts.lists.iter().flat_map(|(_, entries)| entries).next();
    let entry = |gateway: ObjectRef, template: &Entry| {
        let fields = [
            ("group", kind::GATEWAY.group()),
            ("kind", kind::GATEWAY.name()),
            ("namespace", &*gateway.namespace),
            ("name", &*gateway.name),
        ];
        let reference = fields.into_iter().map(|(field, text)| (field, StatusValue::text(text))).collect();
        let own = ("ancestorRef", StatusValue::Record(reference));
        let identity = std::iter::once(own).chain(template.identity.clone()).collect();
        Entry { identity, scope: template.scope.clone() }
    };
    let entries = gateways.into_iter().zip(template.into_iter().cycle()).take(ANCESTORS);
    let entries = entries.map(|(gateway, template)| entry(gateway, template)).collect();
    StatusFacts { object: Scope::default(), lists: vec![("ancestors", entries)] }
}
