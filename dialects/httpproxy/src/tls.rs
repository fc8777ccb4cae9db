//! The certificate of a root, and the protocol versions.

use crate::{HttpProxyView, No, Work, subject};
use kinds::{HttpProxy, http_proxy::virtual_host::Tls};
use model::{
    Code, FieldPath, Host, SecretId,
    tls::{SELF_SIGNED, Termination, TlsVersion},
};

/// How connections are terminated, or everything that is in the way.
pub(crate) fn termination(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    host: &Host,
    tls: &Tls,
) -> Result<Termination, Vec<No>> {
    let at = |name: &str| FieldPath::from("spec.virtualhost.tls").field(name);
    let mut nos = Vec::new();
    let secret = tls.secret_name.as_deref().filter(|name| !name.is_empty());
    match (secret, tls.passthrough) {
        (Some(_), true) => {
            let why = "both secretName and passthrough are set";
            nos.push(No::new(Code::ProxyTlsConfig, at("passthrough"), why));
        }
        (None, true) => nos.push(No::unsupported(at("passthrough"))),
        (None, false) => {
            let why = "neither secretName nor passthrough is set";
            nos.push(No::new(Code::ProxyTlsConfig, FieldPath::from("spec.virtualhost.tls"), why));
        }
        (Some(_), false) => {}
    }
    if tls.enable_fallback_certificate {
        nos.push(No::unsupported(at("enableFallbackCertificate")));
    }
    if tls.client_validation.is_some() {
        nos.push(No::unsupported(at("clientValidation")));
    }
    let lowest = version(work, object, tls.minimum_protocol_version.as_deref(), &at("minimumProtocolVersion"));
    let highest = version(work, object, tls.maximum_protocol_version.as_deref(), &at("maximumProtocolVersion"));
    let (lowest, highest) = (lowest.unwrap_or(TlsVersion::V1_2), highest.unwrap_or(TlsVersion::V1_3));
    if lowest > highest {
        let why = format!("the minimum version {lowest} is above the maximum version {highest}");
        nos.push(No::new(Code::ProxyTlsConfig, at("minimumProtocolVersion"), why));
    }
    let mut certificate = secret_id(&object.meta.namespace, secret.unwrap_or_default());
    if secret.is_some()
        && let Err(no) = resolve::certificate(work.view, &object.meta.namespace, &certificate)
    {
        if work.settings.self_signed && no.code == Code::SecretNotFound {
            certificate = SecretId::new(SELF_SIGNED, &host.to_string());
        } else {
            nos.push(No::new(no.code, at("secretName"), no.why));
        }
    }
    if nos.is_empty() { Ok(Termination { certificate, lowest, highest }) } else { Err(nos) }
}

/// A Secret as it is written: `name`, or `namespace/name` for one of another namespace.
pub(crate) fn secret_id(own: &str, text: &str) -> SecretId {
    match text.split_once('/') {
        Some((namespace, name)) => SecretId::new(namespace, name),
        None => SecretId::new(own, text),
    }
}

/// A version. One that is not known is as if it was not there: what is left is no weaker than the default.
fn version<V>(work: &mut Work<'_, V>, object: &HttpProxy, text: Option<&str>, field: &FieldPath) -> Option<TlsVersion> {
    let text = text.filter(|text| !text.is_empty())?;
    let found = TlsVersion::parse(text);
    if found.is_none() {
        let why = format!("`{text}` is neither `1.2` nor `1.3`: the default is in force");
        let subject = subject(work.vendor, object);
        work.tell(&subject, No::new(Code::ProxyIgnored, field.clone(), why));
    }
    found
}
