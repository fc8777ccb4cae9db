//! The certificates that a listener shows, and those that it asks clients for.

use super::{Unresolved, clients::Clients};
use crate::{GatewayView, Listener, Settings};
use kinds::{
    gateway::{listener, reference::ObjectReference},
    kind,
};
use model::{
    Code, FieldPath, ObjectRef, Verdict,
    tls::{CertificateRef, Termination},
};
use resolve::Rejection;

/// What clients of a listener are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The certificates that can be used; nothing if there is none, or if clients cannot be asked for theirs.
    pub termination: Option<Termination>,
    /// Why a reference is not resolved.
    pub unresolved: Option<Unresolved>,
    /// What is told about the references.
    pub verdicts: Vec<Verdict>,
    /// Whether a Secret has not been read yet.
    pub is_pending: bool,
    /// Whether a reference is not permitted: what was in effect with it is not kept for the sake of another that is pending.
    pub is_forbidden: bool,
    /// Whether clients are to be asked for certificates, and there is no CA to verify them with.
    pub lacks_ca: bool,
}

impl Shown {
    /// Asks clients for certificates.
    #[must_use]
    pub(crate) fn asking(mut self, clients: Clients) -> Self {
        let Clients { validation, unresolved, verdicts, is_pending, is_forbidden } = clients;
        self.is_pending |= is_pending;
        self.is_forbidden |= is_forbidden;
        self.unresolved = self.unresolved.or(unresolved);
        self.verdicts.extend(verdicts);
        self.lacks_ca = validation.is_none() && !is_pending;
        self.termination =
            self.termination.and_then(|termination| Some(Termination { clients: Some(validation?), ..termination }));
        self
    }

    /// Whether the listener is to be as it was, because something that it refers to has not been read yet.
    pub fn is_kept(&self) -> bool {
        self.is_pending && !self.is_forbidden
    }
}

/// What routes must know about the certificates of a listener, if their hosts have connections of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenerTls {
    /// The certificates that can be used; nothing if there is none.
    pub termination: Option<Termination>,
    /// Whether a Secret has not been read yet.
    pub is_pending: bool,
}

/// The certificates of a listener that terminates TLS, looked up by its owner.
pub fn of(listener: &Listener, view: &mut impl GatewayView, settings: &Settings) -> ListenerTls {
    let spec = |listeners: &kinds::List<listener::Listener>| listeners.get(listener.index)?.ok().cloned();
    let spec = if listener.owner.kind == kind::GATEWAY {
        view.gateway(&listener.owner).and_then(|gateway| spec(&gateway.spec.listeners))
    } else {
        view.listener_set(&listener.owner).and_then(|set| spec(&set.spec.listeners))
    };
    let shown = spec.map(|spec| resolve(listener, &spec, view, settings)).unwrap_or_default();
    ListenerTls { is_pending: shown.is_kept(), termination: shown.termination }
}

/// The certificates of a listener that terminates TLS.
pub(crate) fn resolve(
    listener: &Listener,
    spec: &listener::Listener,
    view: &mut impl GatewayView,
    settings: &Settings,
) -> Shown {
    let mut shown = Shown::default();
    let Some(Some(tls)) = spec.tls.ok() else { return shown };
    let field = |index: usize| {
        FieldPath::from("spec.listeners").index(listener.index).field("tls").field("certificateRefs").index(index)
    };
    let mut certificates = Vec::new();
    for (index, reference) in tls.certificate_refs.iter().enumerate() {
        let found = match reference.get() {
            Ok(reference) => one(listener, reference, view),
            Err(fault) => {
                Err(("InvalidCertificateRef", Rejection::new(Code::GatewayCertificateRef, fault.why.clone())))
            }
        };
        match found {
            Ok(id) => {
                let certificate = view.certificate(&id);
                let not_for = certificate.as_deref().and_then(|it| it.as_ref().ok()?.not_for(&id, &listener.host));
                shown.verdicts.extend(not_for.map(|rejection| rejection.at(&listener.owner, field(index))));
                certificates.push(CertificateRef::Secret(id));
            }
            Err((_, rejection)) if rejection.code == Code::SecretNotFound && settings.self_signed => {
                let rejection = Rejection { code: Code::CertificateSelfSigned, ..rejection };
                shown.verdicts.push(rejection.at(&listener.owner, field(index)));
                certificates.push(CertificateRef::SelfSigned(listener.host.clone()));
            }
            Err((reason, rejection)) => {
                // A listener whose Secret is under way is taken for what it was; see the crate `pipeline`.
                shown.is_pending |= rejection.code == Code::SecretPending;
                shown.is_forbidden |= rejection.code == Code::ReferenceNotPermitted;
                shown.verdicts.push(rejection.at(&listener.owner, field(index)));
                let why = format!("certificateRefs[{index}]: {}", rejection.why);
                shown.unresolved.get_or_insert(Unresolved { reason, code: rejection.code, why });
            }
        }
    }
    if tls.certificate_refs.is_empty() {
        let rejection = Rejection::new(Code::GatewayCertificateRef, "certificateRefs is empty");
        shown
            .verdicts
            .push(rejection.at(&listener.owner, FieldPath::from("spec.listeners").index(listener.index).field("tls")));
        let (reason, code, why) = ("InvalidCertificateRef", rejection.code, rejection.why.to_string());
        shown.unresolved = Some(Unresolved { reason, code, why });
    }
    certificates.dedup();
    let mut certificates = certificates.into_iter();
    shown.termination = certificates
        .next()
        .map(|first| Termination { additional: certificates.collect(), ..Termination::new(first, settings.tls) });
    shown
}

/// The Secret of a reference, if it may be used and has a certificate; else the reason of the condition, and the case.
fn one(
    listener: &Listener,
    reference: &ObjectReference,
    view: &mut impl GatewayView,
) -> Result<ObjectRef, (&'static str, Rejection)> {
    let invalid = |rejection: Rejection| ("InvalidCertificateRef", rejection);
    let (group, kind) = (reference.group.as_deref().unwrap_or_default(), reference.kind.as_deref().unwrap_or("Secret"));
    if (group, kind) != (kind::SECRET.group(), kind::SECRET.name()) {
        let group = if group.is_empty() { "the core group" } else { group };
        let why = format!("{kind} {} of {group} is not a Secret", reference.name);
        return Err(invalid(Rejection::new(Code::GatewayCertificateRef, why)));
    }
    let owner = &listener.owner;
    let namespace = reference.namespace.as_deref().unwrap_or(&owner.namespace);
    let id = ObjectRef::new(kind::SECRET, namespace, &*reference.name);
    if !resolve::grant::permits(view, owner.kind, &owner.namespace, &id) {
        let why =
            format!("no ReferenceGrant in namespace {namespace} lets a {} of {} use {id}", owner.kind, owner.namespace);
        return Err(("RefNotPermitted", Rejection::new(Code::ReferenceNotPermitted, why)));
    }
    resolve::certificate(view, namespace, &id).map_err(invalid)?;
    Ok(id)
}
