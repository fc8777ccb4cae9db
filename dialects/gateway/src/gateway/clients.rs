//! Client certificates: `spec.tls.frontend` of a Gateway, for each of its HTTPS listeners.
//!
//! In: what the Gateway says about the port of a listener. Out: which client certificates the listener accepts, and why a reference
//! is not resolved. A CA that cannot be used is not trusted; a listener that has none left accepts no connection. The references are
//! the Gateway's, also where the listener is of a ListenerSet: a ReferenceGrant lets the Gateway use them.

use super::Unresolved;
use crate::{GatewayView, Listener};
use kinds::{
    Gateway,
    gateway::{
        reference::ObjectReference,
        spec::{FrontendValidation, FrontendValidationMode},
    },
    kind,
};
use model::{
    Code, FieldPath, ObjectRef, Verdict,
    cluster::CaBundle,
    tls::{ClientValidation, client_validation::ClientTrust},
};
use resolve::Rejection;
use std::sync::Arc;

/// The most references to CA certificates: what the API server takes.
const BUNDLES: usize = 16;
/// The reason of a reference that is not resolved.
const UNRESOLVED: &str = "InvalidCACertificateRef";

/// What a Gateway says about client certificates on a port.
pub(crate) struct Frontend<'g> {
    validation: &'g FrontendValidation,
    /// Where it says so.
    field: FieldPath,
    /// Whether clients without a valid certificate are let in, too.
    is_fallback: bool,
}

/// What a Gateway says about client certificates on a port; nothing if none are asked for there, and an error in words if that
/// cannot be told.
pub(crate) fn of_port(gateway: &Gateway, port: u16) -> Result<Option<Frontend<'_>>, String> {
    let unreadable = || "spec.tls.frontend of the Gateway cannot be read".to_owned();
    let Some(tls) = gateway.spec.tls.get().map_err(|_| unreadable())? else { return Ok(None) };
    let Some(frontend) = tls.frontend.get().map_err(|_| unreadable())? else { return Ok(None) };
    if frontend.per_port.faults().next().is_some() {
        return Err(unreadable());
    }
    let at = FieldPath::from("spec.tls.frontend");
    let own = frontend.per_port.good().find(|(_, entry)| entry.port == i64::from(port));
    let (settings, field) = match own {
        Some((index, entry)) => (Some(&entry.tls), at.field("perPort").index(index).field("tls")),
        None => (frontend.default.as_ref(), at.field("default")),
    };
    let Some(validation) = settings.and_then(|settings| settings.validation.as_ref()) else { return Ok(None) };
    let field = field.field("validation");
    let is_fallback = match &validation.mode {
        Some(FrontendValidationMode::AllowInsecureFallback) => true,
        Some(FrontendValidationMode::AllowValidOnly) | None => false,
        Some(FrontendValidationMode::Unknown(word)) => {
            return Err(format!(
                "{field}.mode of the Gateway is {word}, which is neither AllowValidOnly nor AllowInsecureFallback"
            ));
        }
    };
    Ok(Some(Frontend { validation, field, is_fallback }))
}

/// The fields in which a Gateway lets clients in without a valid certificate.
pub(crate) fn fallbacks(gateway: &Gateway) -> Vec<FieldPath> {
    let Some(Some(tls)) = gateway.spec.tls.ok() else { return Vec::new() };
    let Some(Some(frontend)) = tls.frontend.ok() else { return Vec::new() };
    let at = FieldPath::from("spec.tls.frontend");
    let default = frontend.default.iter().map(|settings| (settings, at.field("default")));
    let per_port = frontend.per_port.good();
    let per_port = per_port.map(|(index, entry)| (&entry.tls, at.field("perPort").index(index).field("tls")));
    let all = default.chain(per_port).filter_map(|(settings, field)| Some((settings.validation.as_ref()?, field)));
    all.filter(|(validation, _)| validation.mode == Some(FrontendValidationMode::AllowInsecureFallback))
        .map(|(_, field)| field.field("validation").field("mode"))
        .collect()
}

/// Which client certificates a listener accepts.
#[derive(Default)]
pub(crate) struct Clients {
    /// What is done with them; nothing if no CA can be used.
    pub validation: Option<Arc<ClientValidation>>,
    /// Why a reference is not resolved.
    pub unresolved: Option<Unresolved>,
    /// What is told about the references.
    pub verdicts: Vec<Verdict>,
    /// Whether a CA has not been read yet.
    pub is_pending: bool,
    /// Whether a reference is not permitted.
    pub is_forbidden: bool,
}

/// Looks the CAs up.
pub(crate) fn resolve(
    gateway: &ObjectRef,
    listener: &Listener,
    frontend: &Frontend<'_>,
    view: &mut impl GatewayView,
) -> Clients {
    let references = &frontend.validation.ca_certificate_refs;
    let at = frontend.field.field("caCertificateRefs");
    let (mut found, mut clients) = (Vec::new(), Clients::default());
    let refuse = |clients: &mut Clients, field: FieldPath, reason: &'static str, rejection: Rejection| {
        clients.is_pending |= rejection.code == Code::SecretPending;
        clients.is_forbidden |= rejection.code == Code::ReferenceNotPermitted;
        let why = format!("{field} of the Gateway: {}", rejection.why);
        clients.unresolved.get_or_insert(Unresolved { reason, code: rejection.code, why });
        // Whoever wrote a ListenerSet is told on it: the Gateway need not have a listener on the port.
        clients.verdicts.push(match listener.owner == *gateway {
            true => rejection.at(gateway, field),
            false => {
                let why = format!("{field} of {gateway}: {}", rejection.why);
                Verdict::new(rejection.code, listener.at("tls"), why).related_to(gateway.at(field))
            }
        });
    };
    if references.len() > BUNDLES || references.is_empty() {
        let why = format!("there are {} references, and there must be 1 to {BUNDLES}", references.len());
        refuse(&mut clients, at, UNRESOLVED, Rejection::new(Code::GatewayClientCa, why));
        return clients;
    }
    for (index, reference) in references.iter().enumerate() {
        let object = match reference.get() {
            Ok(reference) => one(gateway, reference, view),
            Err(fault) => Err((UNRESOLVED, Rejection::new(Code::GatewayClientCa, fault.why.clone()))),
        };
        match object {
            Ok(object) => found.push(object),
            Err((reason, rejection)) => refuse(&mut clients, at.index(index), reason, rejection),
        }
    }
    // One that is not known yet may be the one that signed the clients' certificates.
    if !clients.is_pending {
        clients.validation = CaBundle::of(found).map(|ca| validation(ca, frontend.is_fallback));
    }
    clients
}

fn validation(ca: CaBundle, is_fallback: bool) -> Arc<ClientValidation> {
    let trust = match is_fallback {
        true => ClientTrust::Unverified { ca: Some(ca) },
        false => ClientTrust::Signed { ca, crl: None },
    };
    Arc::new(ClientValidation { trust, is_required: !is_fallback, forward: None })
}

/// The object of a reference, if it may be used and holds CA certificates; else the reason of the condition, and the case.
fn one(
    gateway: &ObjectRef,
    reference: &ObjectReference,
    view: &mut impl GatewayView,
) -> Result<ObjectRef, (&'static str, Rejection)> {
    let (group, name) = (reference.group.as_deref().unwrap_or_default(), reference.kind.as_deref().unwrap_or_default());
    let kind = [kind::CONFIG_MAP, kind::SECRET].into_iter().find(|kind| (kind.group(), kind.name()) == (group, name));
    let Some(kind) = kind else {
        let why = format!("{name} {} is neither a ConfigMap nor a Secret", reference.name);
        return Err(("InvalidCACertificateKind", Rejection::new(Code::GatewayClientCa, why)));
    };
    let namespace = reference.namespace.as_deref().unwrap_or(&gateway.namespace);
    let id = ObjectRef::new(kind, namespace, &*reference.name);
    super::permitted(gateway, &id, view).map_err(|rejection| ("RefNotPermitted", rejection))?;
    resolve::trusted(view, namespace, &id).map_err(|rejection| {
        let code = match rejection.code {
            Code::SecretPending | Code::SecretReserved => rejection.code,
            _ => Code::GatewayClientCa,
        };
        (UNRESOLVED, Rejection { code, ..rejection })
    })?;
    Ok(id)
}
