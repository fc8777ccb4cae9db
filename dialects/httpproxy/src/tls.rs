//! TLS of a root: whose certificate, the protocol versions, and what clients see that name no host.

use crate::{HttpProxyView, Rejection, Work, client_validation, subject};
use kinds::{HttpProxy, http_proxy::virtual_host::Tls};
use model::{
    Code, FieldPath, Host, ObjectRef,
    tls::{CertificateRef, Termination, TlsVersion, TlsVersions},
};
use std::sync::Arc;

/// What a root says about TLS.
pub(crate) struct Secured {
    /// How connections are decrypted; nothing where the backend has the certificate.
    pub termination: Option<Termination>,
    /// How those of clients that name no host are.
    pub fallback: Option<Termination>,
}

pub(crate) fn at(name: &str) -> FieldPath {
    FieldPath::from("spec.virtualhost.tls").field(name)
}

/// What the root says, or everything that is in the way.
pub(crate) fn secured(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    host: &Host,
    tls: &Tls,
) -> Result<Secured, Vec<Rejection>> {
    let mut rejections = Vec::new();
    let secret = tls.secret_name.as_deref().filter(|name| !name.is_empty());
    match (secret, tls.passthrough) {
        (Some(_), true) => {
            let why = "both secretName and passthrough are set";
            rejections.push(Rejection::new(Code::ProxyTlsConfig, at("passthrough"), why));
        }
        (None, false) => {
            let why = "neither secretName nor passthrough is set";
            rejections.push(Rejection::new(Code::ProxyTlsConfig, FieldPath::from("spec.virtualhost.tls"), why));
        }
        (Some(_), false) | (None, true) => {}
    }
    let without = |name: &str, other: &str| {
        Rejection::new(Code::ProxyTlsIncompatible, at(name), format!("cannot be used together with {other}"))
    };
    let mut clients = None;
    if let Some(validation) = &tls.client_validation {
        if tls.passthrough {
            rejections.push(without("clientValidation", "passthrough: the backend terminates TLS"));
        } else if tls.enable_fallback_certificate {
            rejections.push(without("clientValidation", "enableFallbackCertificate"));
        }
        match client_validation::read(work, object, validation) {
            Ok(validation) => clients = Some(Arc::new(validation)),
            Err(more) => rejections.extend(more),
        }
    }
    if tls.passthrough && tls.enable_fallback_certificate {
        rejections.push(without("enableFallbackCertificate", "passthrough"));
    }
    let versions = versions(work, object, tls).map_err(|rejection| rejections.push(rejection));
    let termination =
        secret.map(|secret| certificate(work, object, host, secret).map_err(|rejection| rejections.push(rejection)));
    let termination = match (termination.transpose(), versions) {
        (Ok(certificate), Ok(versions)) if rejections.is_empty() => {
            certificate.map(|certificate| Termination { clients, ..Termination::new(certificate, versions) })
        }
        _ => return Err(rejections),
    };
    let fallback = if tls.enable_fallback_certificate { fallback(work, object) } else { None };
    Ok(Secured { termination, fallback })
}

fn certificate(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    host: &Host,
    secret: &str,
) -> Result<CertificateRef, Rejection> {
    let secret = secret_id(&object.meta.namespace, secret);
    match resolve::certificate(work.view, &object.meta.namespace, &secret) {
        Ok(()) => {
            let held = work.view.certificate(&secret);
            let rejection = held.as_deref().and_then(|held| held.as_ref().ok()?.not_for(&secret, host));
            let subject = subject(work.kind, object);
            rejection
                .into_iter()
                .for_each(|rejection| work.report(&subject, Rejection::resolved(rejection, at("secretName"))));
            Ok(CertificateRef::Secret(secret))
        }
        Err(rejection) if work.settings.self_signed && rejection.code == Code::SecretNotFound => {
            let subject = subject(work.kind, object);
            let rejection = Rejection::resolved(rejection, at("secretName")).coded(Code::CertificateSelfSigned);
            work.report(&subject, rejection);
            Ok(CertificateRef::SelfSigned(host.clone()))
        }
        // The rest of the object is read all the same: what it includes is not left alone meanwhile.
        Err(rejection) if rejection.code == Code::SecretPending => {
            let subject = subject(work.kind, object);
            work.report(&subject, Rejection::resolved(rejection, at("secretName")));
            Ok(CertificateRef::Secret(secret))
        }
        Err(rejection) => Err(Rejection::resolved(rejection, at("secretName"))),
    }
}

/// How clients are served that name no host. Without the certificate those are refused, and no others.
fn fallback(work: &mut Work<'_, impl HttpProxyView>, object: &HttpProxy) -> Option<Termination> {
    let found = match &work.settings.fallback_certificate {
        None => Err((Code::ProxyFallbackMissing, "no fallback certificate is set".into())),
        Some(id) => match resolve::certificate(work.view, &object.meta.namespace, id) {
            Ok(()) => Ok(CertificateRef::Secret(id.clone())),
            Err(rejection) if rejection.code == Code::DelegationMissing => {
                Err((Code::ProxyFallbackNotDelegated, rejection.why))
            }
            Err(rejection) if matches!(rejection.code, Code::SecretPending | Code::SecretReserved) => {
                Err((rejection.code, rejection.why))
            }
            Err(rejection) => Err((Code::ProxyFallbackNotValid, rejection.why)),
        },
    };
    match found {
        Ok(certificate) => Some(Termination::new(certificate, work.settings.tls)),
        Err((code, why)) => {
            let subject = subject(work.kind, object);
            work.report(&subject, Rejection::new(code, at("enableFallbackCertificate"), why));
            None
        }
    }
}

/// A Secret as it is written: `name`, or `namespace/name` for one of another namespace.
pub(crate) fn secret_id(own: &str, text: &str) -> ObjectRef {
    match text.split_once('/') {
        Some((namespace, name)) => ObjectRef::new(kinds::kind::SECRET, namespace, name),
        None => ObjectRef::new(kinds::kind::SECRET, own, text),
    }
}

/// The lowest and the highest version.
fn versions<V>(work: &mut Work<'_, V>, object: &HttpProxy, tls: &Tls) -> Result<TlsVersions, Rejection> {
    let lowest = version(work, object, tls.minimum_protocol_version.as_deref(), "minimumProtocolVersion", tls);
    let highest = version(work, object, tls.maximum_protocol_version.as_deref(), "maximumProtocolVersion", tls);
    let allowed = work.settings.tls;
    let asked = TlsVersions { lowest: lowest.unwrap_or(allowed.lowest), highest: highest.unwrap_or(allowed.highest) };
    let versions = asked.within(allowed);
    if versions.is_empty() {
        let (field, why) = match (lowest, highest) {
            (Some(lowest), Some(highest)) if lowest > highest => (
                "minimumProtocolVersion",
                format!("the minimum version {lowest} is above the maximum version {highest}"),
            ),
            (_, Some(highest)) if highest < allowed.lowest => (
                "maximumProtocolVersion",
                format!("the maximum version {highest} is below the configured minimum version {}", allowed.lowest),
            ),
            _ => (
                "minimumProtocolVersion",
                format!(
                    "the minimum version {} is above the configured maximum version {}",
                    asked.lowest, allowed.highest
                ),
            ),
        };
        return Err(Rejection::new(Code::ProxyTlsConfig, at(field), why));
    }
    Ok(versions)
}

/// A version. One that is not known is as if it was not there: what is left is no weaker than the default.
fn version<V>(
    work: &mut Work<'_, V>,
    object: &HttpProxy,
    text: Option<&str>,
    name: &str,
    tls: &Tls,
) -> Option<TlsVersion> {
    let text = text.filter(|text| !text.is_empty())?;
    let found = TlsVersion::parse(text);
    let why = match found {
        Some(_) if tls.passthrough => "no effect together with passthrough: the backend terminates TLS".to_owned(),
        Some(_) => return found,
        None => format!("must be `1.2` or `1.3`, not `{text}`; the default is used"),
    };
    let subject = subject(work.kind, object);
    work.report(&subject, Rejection::new(Code::ProxyIgnored, at(name), why));
    found
}
