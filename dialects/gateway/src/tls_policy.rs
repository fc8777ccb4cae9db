//! BackendTLSPolicy: TLS towards the backends of a Service, or of one of its ports by name.
//!
//! In: the policies that name a Service. Out: for a port, the server name and how the backend's certificate is validated. A policy
//! for the port comes before one for the whole Service, then the older one. A policy that is not valid is not passed over: its
//! backends are not used at all. Nor are ports without a policy beside one that names a port which is not there ([`target`]). Of several references to CA certificates those that are resolved are trusted.

mod target;

pub use target::{InEffect, TargetSection, in_effect, targets};

use crate::{
    GatewayView, Settings,
    status::conditions::{self, ACCEPTED, RESOLVED_REFS},
};
use kinds::{
    BackendTlsPolicy, Checked, List,
    gateway::{
        backend_tls_policy::{SubjectAltName as AltName, SubjectAltNameType},
        reference::LocalReference,
    },
    kind,
};
use model::{
    Code, Fqdn, ObjectRef, Translation, Verdict, VerdictList,
    cluster::{CaBundle, SubjectAltName, TrustedCa, Validation},
    status::{
        Acknowledgement, AtomicList, Condition, Entry, ListLayout, Scope, StatusFacts, StatusKind, StatusLayout,
        StatusValue,
    },
};
use resolve::{Rejection, Service};
use std::{borrow::Cow, collections::BTreeSet, sync::Arc, time::Duration};
use target::WrongTarget;

/// The most entries of the list of ancestors.
const ANCESTORS: usize = 16;
/// The longest URI that a certificate can be asked for.
const LONGEST_URI: usize = 253;

/// The most references to CA certificates: what the API server takes.
const BUNDLES: usize = 8;
/// The reason of a reference to CA certificates that is not resolved.
const UNRESOLVED: &str = "InvalidCACertificateRef";

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
pub fn of_port(view: &mut impl GatewayView, service: &Service, port: &str) -> Result<Option<UpstreamTls>, Rejection> {
    let reject = |code, policy: &ObjectRef, why: &str| {
        Rejection::new(code, format!("BackendTLSPolicy {}/{}: {why}", policy.namespace, policy.name))
    };
    let mut policies =
        view.policies_in_effect(&ObjectRef::new(kind::SERVICE, service.namespace.clone(), service.name.clone()));
    let own = match port {
        "" => None,
        port => policies.remove(&TargetSection::Port(port.into())),
    };
    if own.is_none()
        && let Some(policy) = policies.get(&TargetSection::Unreadable)
    {
        return Err(reject(Code::GatewayTlsPolicy, policy, "a targetRef is invalid and could refer to this port"));
    }
    let Some(id) = own.or_else(|| policies.remove(&TargetSection::Whole)) else {
        return match target::misplaced(&policies, service) {
            None => Ok(None),
            Some((name, policy)) => {
                let why = format!("the Service has no port named {name}, and the policy may be meant for this one");
                Err(reject(Code::GatewayTlsPolicyTarget, policy, &why))
            }
        };
    };
    let Some(policy) = view.tls_policy(&id) else { return Ok(None) };
    match read(&policy, view) {
        (Some(tls), _) => Ok(Some(tls)),
        (None, invalid) => {
            // What has not been read yet comes last.
            let (code, why) =
                invalid.first().map_or((Code::GatewayTlsPolicy, ""), |invalid| (invalid.code, &invalid.why));
            Err(reject(code, &id, why))
        }
    }
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
    code: Code,
    field: Cow<'static, str>,
    why: String,
}

impl Invalid {
    /// Whether that depends on a Secret that has not been read yet.
    fn is_pending(&self) -> bool {
        self.code == Code::SecretPending
    }

    fn value(field: impl Into<Cow<'static, str>>, why: impl Into<String>) -> Self {
        Self { accepted: "Invalid", resolved: None, code: Code::GatewayTlsPolicy, field: field.into(), why: why.into() }
    }

    fn ca(reason: &'static str, why: impl Into<String>) -> Self {
        let field = "spec.validation.caCertificateRefs";
        Self { accepted: "NoValidCACertificate", resolved: Some(reason), ..Self::value(field, why) }
    }
}

/// What a policy asks for, and everything that is wrong with it: nothing if it is not valid; where it is, references that are not
/// resolved beside one that is.
fn read(policy: &BackendTlsPolicy, view: &mut impl GatewayView) -> (Option<UpstreamTls>, Vec<Invalid>) {
    let written = match policy.spec.validation.get() {
        Ok(written) => written,
        Err(fault) => return (None, vec![Invalid::value("spec.validation", fault.to_string())]),
    };
    let mut invalid = Vec::new();
    if let Some(why) = target::too_many(policy) {
        invalid.push(Invalid::value("spec.targetRefs", why));
    }
    if let Some((option, _)) = policy.spec.options.iter().next() {
        invalid.push(Invalid::value("spec.options", format!("the option {option} is not supported")));
    }
    let hostname = Fqdn::parse(&written.hostname);
    let hostname =
        hostname.map_err(|error| invalid.push(Invalid::value("spec.validation.hostname", error.to_string())));
    let mut names = Vec::new();
    for (index, name) in written.subject_alt_names.iter().enumerate() {
        match subject_alt_name(name) {
            Ok(name) => names.push(name),
            Err(why) => invalid.push(Invalid::value(format!("spec.validation.subjectAltNames[{index}]"), why)),
        }
    }
    let mut unresolved = None;
    let ca = match (written.well_known_ca_certificates.as_deref(), written.ca_certificate_refs.is_empty()) {
        (Some("System"), true) => Ok(TrustedCa::System),
        (Some(other), true) => {
            let why = format!("must be System, not `{other}`");
            Err(Invalid::value("spec.validation.wellKnownCACertificates", why))
        }
        (None, false) => bundle(&policy.meta.namespace, &written.ca_certificate_refs, view).map(|(bundle, first)| {
            unresolved = first;
            TrustedCa::Bundle(bundle)
        }),
        _ => {
            let why = "exactly one of caCertificateRefs and wellKnownCACertificates must be set";
            Err(Invalid::value("spec.validation", why))
        }
    };
    let ca = ca.map_err(|wrong| invalid.push(wrong));
    match (hostname, ca) {
        (Ok(hostname), Ok(ca)) if invalid.is_empty() => {
            if names.is_empty() {
                names.push(SubjectAltName::Dns(hostname.as_str().into()));
            }
            let tls = UpstreamTls { server_name: hostname.as_str().into(), validation: Validation { ca, names } };
            (Some(tls), unresolved.into_iter().collect())
        }
        _ => {
            // What has not been read yet says nothing about what has: the rest is told first.
            invalid.sort_by_key(|invalid| invalid.is_pending());
            (None, invalid)
        }
    }
}

/// A name that the certificate of a backend may have, or why it is none.
fn subject_alt_name(name: &Checked<AltName>) -> Result<SubjectAltName, String> {
    let name = name.get().map_err(ToString::to_string)?;
    match (&name.r#type, &name.hostname, &name.uri) {
        (Some(SubjectAltNameType::Hostname), Some(text), None) => {
            Fqdn::parse(text.strip_prefix("*.").unwrap_or(text)).map_err(|error| error.to_string())?;
            Ok(SubjectAltName::Dns((&**text).into()))
        }
        (Some(SubjectAltNameType::Uri), None, Some(uri)) => {
            if !(1..=LONGEST_URI).contains(&uri.len()) || !uri.bytes().all(|b| b.is_ascii_graphic()) {
                return Err(format!("a URI has 1 to {LONGEST_URI} visible ASCII characters"));
            }
            Ok(SubjectAltName::Uri((&**uri).into()))
        }
        _ => Err("a name has a type, Hostname or URI, and the field of that type".to_owned()),
    }
}

/// The bundle of all references that are resolved, with the first that is not; an error if none is, or if one has not been read yet.
fn bundle(
    namespace: &Arc<str>,
    references: &List<LocalReference>,
    view: &mut impl GatewayView,
) -> Result<(CaBundle, Option<Invalid>), Invalid> {
    if references.len() > BUNDLES {
        let why = format!("there are {} references, and at most {BUNDLES} may be", references.len());
        return Err(Invalid::value("spec.validation.caCertificateRefs", why));
    }
    let (mut found, mut unresolved) = (Vec::new(), None);
    for (index, reference) in references.iter().enumerate() {
        match resolved(namespace, reference, view) {
            Ok(object) => found.push(object),
            Err(invalid) if invalid.is_pending() => return Err(invalid),
            Err(invalid) => {
                let why = format!("caCertificateRefs[{index}]: {}", invalid.why);
                unresolved.get_or_insert(Invalid { why, ..invalid });
            }
        }
    }
    match (CaBundle::of(found), unresolved) {
        (Some(bundle), unresolved) => Ok((bundle, unresolved)),
        (None, Some(unresolved)) => Err(unresolved),
        (None, None) => Err(Invalid::ca(UNRESOLVED, "caCertificateRefs is empty")),
    }
}

/// The object of a reference, if it holds CA certificates.
fn resolved(
    namespace: &Arc<str>,
    reference: &Checked<LocalReference>,
    view: &mut impl GatewayView,
) -> Result<ObjectRef, Invalid> {
    let reference = reference.get().map_err(|fault| Invalid::ca(UNRESOLVED, fault.why.clone()))?;
    let kind = [kind::CONFIG_MAP, kind::SECRET]
        .into_iter()
        .find(|kind| (kind.group(), kind.name()) == (&*reference.group, &*reference.kind));
    let Some(kind) = kind else {
        let why = format!("{} {} is neither a ConfigMap nor a Secret", reference.kind, reference.name);
        return Err(Invalid::ca("InvalidKind", why));
    };
    let object = ObjectRef::new(kind, namespace.clone(), &*reference.name);
    match resolve::trusted(view, namespace, &object) {
        Ok(()) => Ok(object),
        Err(rejection) => {
            let invalid = Invalid::ca(UNRESOLVED, rejection.why);
            let code = match rejection.code {
                Code::SecretPending | Code::SecretReserved => rejection.code,
                _ => invalid.code,
            };
            Err(Invalid { code, ..invalid })
        }
    }
}

/// What is said about a policy. It asks for nothing by itself: routes look it up. Which Gateways it is about is added when the
/// status is decided ([`complete`]).
pub fn translate(policy: &BackendTlsPolicy, view: &mut impl GatewayView, settings: &Settings) -> Translation {
    let subject = subject(policy);
    let mut verdicts = VerdictList::default();
    let wrong = target::wrong(policy, view);
    verdicts.extend(wrong.iter().map(|wrong| wrong.verdict(&subject)));
    let (tls, invalid) = read(policy, view);
    for invalid in &invalid {
        verdicts.push(Verdict::new(invalid.code, subject.at(&*invalid.field), invalid.why.as_str()));
    }
    let conflict = target::conflict(policy, view);
    if let Some(why) = &conflict {
        verdicts.push(Verdict::new(Code::GatewayTlsPolicyConflict, subject.at("spec.targetRefs"), why.as_str()));
    }
    let is_pending = tls.is_none() && invalid.iter().all(|invalid| invalid.is_pending());
    let identity = vec![("controllerName", StatusValue::text(&*settings.controller))];
    let conditions = conditions_of(tls.is_some(), &invalid, wrong.first(), conflict);
    let scope = Scope { conditions, ..Scope::default() };
    let facts = StatusFacts { object: Scope::default(), lists: vec![("ancestors", vec![Entry { identity, scope }])] };
    let pending = if is_pending { vec![subject.clone()] } else { Vec::new() };
    let configures: BTreeSet<_> = targets(policy).map(|(service, _)| service).collect();
    Translation {
        facts: Some(facts.into()),
        configures: configures.into_iter().collect(),
        pending,
        verdicts: verdicts.into_sorted(),
        ..Translation::empty(subject)
    }
}

fn conditions_of(
    is_valid: bool,
    invalid: &[Invalid],
    wrong_target: Option<&WrongTarget>,
    conflict: Option<String>,
) -> Vec<Condition> {
    let reason = invalid.first().filter(|_| !is_valid);
    let accepted = match (&conflict, reason, wrong_target) {
        (Some(why), ..) => conditions::refused(ACCEPTED, "Conflicted", Code::GatewayTlsPolicyConflict, why),
        (None, Some(first), _) => {
            let why: Vec<_> = invalid.iter().map(|invalid| format!("{}: {}", invalid.field, invalid.why)).collect();
            conditions::refused(ACCEPTED, first.accepted, first.code, why.join("; "))
        }
        (None, None, Some(wrong)) => {
            let why = format!("{}; the policy is in effect for its other targets", wrong.text());
            conditions::refused(ACCEPTED, wrong.reason, wrong.code, why)
        }
        (None, None, None) => conditions::accepted("The policy is in effect."),
    };
    let unresolved = invalid.iter().find_map(|invalid| Some((invalid.resolved?, invalid)));
    let resolved = match unresolved {
        Some((reason, invalid)) => conditions::refused(RESOLVED_REFS, reason, invalid.code, &invalid.why),
        None => conditions::resolved(),
    };
    vec![accepted, resolved]
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
