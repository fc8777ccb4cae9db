//! The client certificate that proxies present to TLS backends: `spec.tls.backend.clientCertificateRef` of a Gateway.
//!
//! In: the reference. Out: the Secret, or why it cannot be used. Routes ask for it by the Gateway that they are attached to: where it
//! cannot be used, TLS backends of that Gateway are not used either.

use crate::GatewayView;
use kinds::{Gateway, kind};
use model::{Code, FieldPath, ObjectRef};
use resolve::Rejection;

/// The reason of a reference that is not resolved.
const UNRESOLVED: &str = "InvalidClientCertificateRef";

/// What backends are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendCertificate {
    /// The certificate of a Secret.
    Secret(ObjectRef),
    /// That of a Secret that has not been read yet.
    Pending,
    /// It cannot be used.
    Unusable(Unusable),
}

/// Why a client certificate cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The reason of the condition.
    pub reason: &'static str,
    /// The row of the table of codes.
    pub code: Code,
    /// The field.
    pub field: FieldPath,
    /// This very case.
    pub why: Box<str>,
}

impl BackendCertificate {
    /// Why it cannot be used, if so.
    pub fn unusable(&self) -> Option<&Unusable> {
        match self {
            BackendCertificate::Unusable(unusable) => Some(unusable),
            BackendCertificate::Secret(_) | BackendCertificate::Pending => None,
        }
    }

    /// Whether the owner of its Secret does not permit it, or no longer.
    pub fn is_forbidden(&self) -> bool {
        self.unusable().is_some_and(|unusable| unusable.code == Code::ReferenceNotPermitted)
    }
}

/// What backends of a Gateway are shown; nothing if it asks for nothing.
pub fn of(gateway: &Gateway, view: &mut impl GatewayView) -> Option<BackendCertificate> {
    let unusable = |reason, field: &str, rejection: Rejection| {
        let (code, field, why) = (rejection.code, field.into(), rejection.why);
        Some(BackendCertificate::Unusable(Unusable { reason, code, field, why }))
    };
    let unreadable = |field: &str, why: &str| {
        let why = format!("the client certificate for backends cannot be read: {why}");
        unusable(UNRESOLVED, field, Rejection::new(Code::GatewayClientCertificate, why))
    };
    let backend = match gateway.spec.tls.get() {
        Ok(None) => return None,
        Ok(Some(tls)) => match tls.backend.get() {
            Ok(backend) => backend.as_ref()?,
            Err(fault) => return unreadable("spec.tls.backend", &fault.why),
        },
        Err(fault) => return unreadable("spec.tls", &fault.why),
    };
    let reference = backend.client_certificate_ref.as_ref()?;
    let at = "spec.tls.backend.clientCertificateRef";
    let (group, name) = (reference.group.as_deref().unwrap_or_default(), reference.kind.as_deref().unwrap_or("Secret"));
    if (group, name) != (kind::SECRET.group(), kind::SECRET.name()) {
        let why = format!("{name} {} is not a Secret", reference.name);
        return unusable(UNRESOLVED, at, Rejection::new(Code::GatewayClientCertificate, why));
    }
    let own = ObjectRef::new(kind::GATEWAY, gateway.meta.namespace.clone(), gateway.meta.name.clone());
    let namespace = reference.namespace.as_deref().unwrap_or(&own.namespace);
    let id = ObjectRef::new(kind::SECRET, namespace, &*reference.name);
    if let Err(rejection) = super::permitted(&own, &id, view) {
        return unusable("RefNotPermitted", at, rejection);
    }
    match resolve::certificate(view, namespace, &id) {
        Ok(()) => Some(BackendCertificate::Secret(id)),
        Err(rejection) if rejection.code == Code::SecretPending => Some(BackendCertificate::Pending),
        Err(rejection) if rejection.code == Code::SecretReserved => unusable(UNRESOLVED, at, rejection),
        Err(rejection) => unusable(UNRESOLVED, at, Rejection { code: Code::GatewayClientCertificate, ..rejection }),
    }
}
