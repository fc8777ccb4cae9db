//! A Gateway: what is wrong with it as a whole, and what its own listeners ask for.

pub mod backend_certificate;
pub(crate) mod clients;
mod overlap;
pub mod pieces;
pub mod tls;

use crate::{
    GatewayView, Settings, class, fleet, not_ours,
    status::{LISTENERS_ARE_VALID, conditions},
};
use backend_certificate::BackendCertificate;
use conditions::{ACCEPTED, INSECURE_FRONTEND, PROGRAMMED, RESOLVED_REFS};
use kinds::{Gateway, gateway::spec::AddressType, kind};
use model::{
    Code, FleetId, ObjectRef, Translation, Verdict, VerdictList,
    status::{Condition, Scope, Truth},
    translation::PendingPart,
};
use pieces::Pieces;
use resolve::{Rejection, annotation::foreign};
use std::net::IpAddr;

/// Why nothing of a Gateway is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAccepted {
    /// The reason of the condition `Accepted`.
    pub reason: &'static str,
    /// The row of the table of codes.
    pub code: Code,
    /// The field.
    pub field: String,
    /// This very case.
    pub why: String,
}

/// Why a reference of a listener is not resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// The reason of the condition `ResolvedRefs`.
    pub reason: &'static str,
    /// The row of the table of codes.
    pub code: Code,
    /// This very case.
    pub why: String,
}

/// The Gateway, by name.
fn subject(gateway: &Gateway) -> ObjectRef {
    ObjectRef::new(kind::GATEWAY, gateway.meta.namespace.clone(), gateway.meta.name.clone())
}

/// Why nothing of a Gateway is served, if so.
pub fn refusal(gateway: &Gateway, view: &mut impl GatewayView, settings: &Settings) -> Option<NotAccepted> {
    let protection = foreign::look(&gateway.meta, &subject(gateway)).verdicts;
    if let Some(Verdict { code, origin, message, .. }) = crate::unprotected(&protection, settings) {
        let (field, why) = (origin.field.to_string(), message.to_string());
        return Some(NotAccepted { reason: "Invalid", code: *code, field, why });
    }
    let refuse =
        |reason, code, field: &str, why: String| Some(NotAccepted { reason, code, field: field.to_owned(), why });
    let class = gateway.spec.gateway_class_name.ok().and_then(|name| view.class(name.as_deref()?));
    if let Some(why) = class.and_then(|class| class::refused(&class)) {
        let why = format!("the GatewayClass is not accepted: {why}");
        return refuse("Invalid", Code::GatewayClassNotAccepted, "spec.gatewayClassName", why);
    }
    let parameters = "spec.infrastructure.parametersRef";
    match gateway.spec.infrastructure.get() {
        Ok(Some(infrastructure)) => {
            if let Some(named) = &infrastructure.parameters_ref {
                let why =
                    format!("parameters are not supported, but parametersRef names {} {}", named.kind, named.name);
                return refuse("InvalidParameters", Code::GatewayParameters, parameters, why);
            }
        }
        Ok(None) => {}
        Err(fault) => return refuse("InvalidParameters", Code::GatewayParameters, parameters, fault.why.to_string()),
    }
    for (index, address) in gateway.spec.addresses.iter().enumerate() {
        let field = format!("spec.addresses[{index}]");
        let why = match address.get() {
            Err(fault) => Some(fault.why.to_string()),
            Ok(address) => match (&address.r#type, &address.routability) {
                (Some(AddressType::Unknown(word)), _) => Some(format!("addresses of type {word} are not supported")),
                (_, Some(routability)) if !routability.is_empty() => {
                    Some(format!("routability {routability} is not supported"))
                }
                _ => None,
            },
        };
        if let Some(why) = why {
            return refuse("UnsupportedAddress", Code::GatewayAddress, &field, why);
        }
    }
    None
}

/// What a Gateway asks for; nothing if it is not ours.
pub fn translate(gateway: &Gateway, view: &mut impl GatewayView, settings: &Settings) -> Option<Translation> {
    let subject = subject(gateway);
    let Some(listeners) = view.listeners(&subject) else {
        return not_ours(class::other(gateway, &subject, view, settings), settings);
    };
    let mut verdicts = VerdictList::default();
    // What refuses a Gateway for its annotations is among them.
    verdicts.extend(foreign::look(&gateway.meta, &subject).verdicts);
    let refusal = refusal(gateway, view, settings);
    if let Some(NotAccepted { code, field, why, .. }) = refusal.as_ref().filter(|it| it.code != Code::ForeignProtection)
    {
        verdicts.push(Verdict::new(*code, subject.at(field.as_str()), why.as_str()));
    }
    unsupported(gateway, &subject, settings, &mut verdicts);
    let unusable = unusable_address(gateway, settings);
    if let Some((index, why)) = &unusable {
        let field = format!("spec.addresses[{index}]");
        verdicts.push(Verdict::new(Code::GatewayAddress, subject.at(field.as_str()), why.as_str()));
    }
    for field in clients::fallbacks(gateway) {
        let why = "clients without a valid certificate are accepted, and backends cannot tell them apart";
        verdicts.push(Verdict::new(Code::GatewayInsecureClients, subject.at(field), why));
    }
    let certificate = backend_certificate::of(gateway, view);
    if let Some(unusable) = certificate.as_ref().and_then(BackendCertificate::unusable) {
        verdicts.push(Verdict::new(unusable.code, subject.at(unusable.field.clone()), unusable.why.clone()));
    }
    let own = listeners.of(&subject);
    let mut pieces = pieces::of(gateway, &gateway.meta, &subject, &gateway.spec.listeners, own, view, settings);
    if certificate == Some(BackendCertificate::Pending) {
        pieces.pending_parts.push(PendingPart { listener: None, field: "spec.tls.backend".into() });
    }
    let unusable = unusable.map(|(_, why)| why);
    let conditions = conditions_of(gateway, refusal.as_ref(), unusable, certificate.as_ref(), &pieces);
    let object = Scope { conditions, ..Scope::default() };
    Some(pieces.into_translation(subject, object, verdicts))
}

/// Whether a Gateway may refer to an object: permission comes before existence.
fn permitted(gateway: &ObjectRef, id: &ObjectRef, view: &mut impl GatewayView) -> Result<(), Rejection> {
    if resolve::grant::permits(view, gateway.kind, &gateway.namespace, id) {
        return Ok(());
    }
    let ObjectRef { kind, namespace, .. } = gateway;
    let why = format!("no ReferenceGrant in namespace {} lets a {kind} of {namespace} use {id}", id.namespace);
    Err(Rejection::new(Code::ReferenceNotPermitted, why))
}

/// The addresses that a Gateway asks for by their value.
fn chosen_addresses(gateway: &Gateway) -> impl Iterator<Item = (usize, &str)> {
    let addresses = gateway.spec.addresses.good();
    addresses.filter_map(|(index, address)| Some((index, address.value.as_deref().filter(|value| !value.is_empty())?)))
}

/// The address that the load balancer of a Gateway's own proxies is to have, if the Gateway asks for one.
pub fn requested_address(gateway: &Gateway) -> Option<IpAddr> {
    let mut chosen = chosen_addresses(gateway);
    let (_, value) = chosen.next().filter(|_| chosen.next().is_none())?;
    value.parse().ok()
}

/// Why the Gateway cannot have an address that it asks for, and which of them that is. Whether a load balancer has an address is not
/// known before it is asked.
fn unusable_address(gateway: &Gateway, settings: &Settings) -> Option<(usize, String)> {
    let (index, value) = chosen_addresses(gateway).next()?;
    if fleet::of(gateway, settings) == FleetId::Shared {
        let why = format!("{value} cannot be chosen: the Gateway has the addresses of the proxies, which others share");
        return Some((index, why));
    }
    if let Some((second, more)) = chosen_addresses(gateway).nth(1) {
        return Some((
            second,
            format!("{more} cannot be combined with {value}: the load balancer of a Gateway has one address"),
        ));
    }
    let is_address = value.parse::<IpAddr>().is_ok();
    (!is_address)
        .then(|| (index, format!("{value} is not an IP address, and a load balancer can be asked for no other")))
}

/// Fields that are read and have no effect.
fn unsupported(gateway: &Gateway, subject: &ObjectRef, settings: &Settings, verdicts: &mut VerdictList) {
    let mut report = |field: &str, why: &str| {
        verdicts.push(Verdict::new(Code::GatewayUnsupported, subject.at(field), why));
    };
    if fleet::of(gateway, settings) == FleetId::Shared
        && let Some(Some(infrastructure)) = gateway.spec.infrastructure.ok()
        && !(infrastructure.labels.is_empty() && infrastructure.annotations.is_empty())
    {
        report(
            "spec.infrastructure",
            "nothing is created for a Gateway whose proxies are shared, so there is nothing to label",
        );
    }
    if !matches!(gateway.spec.default_scope.get(), Ok(None)) {
        report("spec.defaultScope", "default Gateways are not supported: only routes that name it as a parent attach");
    }
    if let Some(fault) = gateway.spec.allowed_listeners.fault() {
        report("spec.allowedListeners", &format!("{}; no ListenerSet may attach", fault.why));
    }
}

fn conditions_of(
    gateway: &Gateway,
    refusal: Option<&NotAccepted>,
    unusable_address: Option<String>,
    certificate: Option<&BackendCertificate>,
    pieces: &Pieces,
) -> Vec<Condition> {
    let Pieces { all, accepted, usable, unresolved, not_accepted, not_usable, not_resolved, .. } = *pieces;
    let coded = |first: Option<Code>, why: String| conditions::coded(first.unwrap_or(Code::GatewayListener), why);
    let not_valid = format!("{} of {all} listeners are not valid; the status of each says why.", all - accepted);
    let is_accepted = match refusal {
        Some(NotAccepted { reason, code, why, .. }) => conditions::refused(ACCEPTED, reason, *code, why),
        None if accepted == all && all > 0 => conditions::accepted(LISTENERS_ARE_VALID),
        None if all == 0 => {
            conditions::refused(ACCEPTED, "Invalid", Code::GatewayListener, "The Gateway has no listeners.")
        }
        None => conditions::new(ACCEPTED, (accepted > 0).into(), "ListenersNotValid", coded(not_accepted, not_valid)),
    };
    let resolved = match certificate.and_then(BackendCertificate::unusable) {
        Some(unusable) => conditions::refused(RESOLVED_REFS, unusable.reason, unusable.code, unusable.why.as_ref()),
        None if unresolved > 0 => {
            let why = format!("{unresolved} of {all} listeners have references that are not resolved.");
            conditions::new(RESOLVED_REFS, Truth::False, "ListenersNotResolved", coded(not_resolved, why))
        }
        None => conditions::resolved(),
    };
    let mut all = vec![is_accepted, resolved];
    if !clients::fallbacks(gateway).is_empty() {
        let why = "Clients without a valid certificate are accepted: spec.tls.frontend allows an insecure fallback.";
        all.push(conditions::new(INSECURE_FRONTEND, Truth::True, "ConfigurationChanged", why));
    }
    if refusal.is_some() || usable == 0 {
        let first = refusal.map(|refusal| refusal.code).or(not_usable);
        let why = coded(first, "No listener can be served.".to_owned());
        all.push(conditions::new(PROGRAMMED, Truth::False, "Invalid", why));
    } else if let Some(why) = unusable_address {
        let why = format!("{why}; listeners are served at the addresses of the proxies.");
        all.push(conditions::refused(PROGRAMMED, "AddressNotUsable", Code::GatewayAddress, why));
    }
    all
}
