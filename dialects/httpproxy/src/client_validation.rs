//! Client certificates of a root: `virtualhost.tls.clientValidation`.
//!
//! In: the field. Out: a [`ClientValidation`], or everything that is in the way: a host whose CA or CRLs cannot be had is not
//! served at all. Over plaintext no certificate can be required, so routes that are permitted there are closed there.

use crate::{
    HttpProxyView, Rejection, Work,
    route::RouteDraft,
    subject,
    tls::{at, secret_id},
};
use kinds::{
    HttpProxy,
    http_proxy::virtual_host::{ClientCertificateDetails, DownstreamValidation},
};
use model::{
    Code, FieldPath, ObjectRef,
    tls::client_validation::{ClientTrust, ClientValidation, ForwardedDetails, RevocationCheck},
};

fn field(name: &str) -> FieldPath {
    at("clientValidation").field(name)
}

/// What the root says about client certificates.
pub(crate) fn read(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    validation: &DownstreamValidation,
) -> Result<ClientValidation, Vec<Rejection>> {
    let named = |text: &Option<Box<str>>| {
        let text = text.as_deref().filter(|text| !text.is_empty())?;
        Some(secret_id(&object.meta.namespace, text))
    };
    let (ca, crl) = (named(&validation.ca_secret), named(&validation.crl_secret));
    let mut rejections = Vec::new();
    if let Some(ca) = &ca {
        let found = resolve::trusted(work.view, &object.meta.namespace, ca);
        rejections.extend(found.err().and_then(|rejection| refused(work, object, "caSecret", rejection)));
    }
    let skips = validation.skip_client_cert_validation;
    // Clients are asked for a certificate, and only a CA makes it a must.
    let is_required = ca.is_some() && !validation.optional_client_certificate;
    let trust = match ca {
        ca if skips => {
            let why = "no effect together with skipClientCertValidation: nothing is verified";
            ignored(work, object, "crlSecret", crl.is_some(), why);
            Some(ClientTrust::Unverified { ca: ca.map(Into::into) })
        }
        Some(ca) => {
            Some(ClientTrust::Signed { ca: ca.into(), crl: revocation(work, object, validation, crl, &mut rejections) })
        }
        None => {
            let why = "caSecret must be set, unless skipClientCertValidation is";
            rejections.push(Rejection::new(Code::ProxyClientValidation, field("caSecret"), why));
            None
        }
    };
    let forward = validation.forward_client_certificate.as_deref().map(forwarded);
    match trust {
        Some(trust) if rejections.is_empty() => Ok(ClientValidation { trust, is_required, forward }),
        _ => Err(rejections),
    }
}

/// Which certificates are looked up in the CRLs, if there are any.
fn revocation(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    validation: &DownstreamValidation,
    crls: Option<ObjectRef>,
    rejections: &mut Vec<Rejection>,
) -> Option<RevocationCheck> {
    let leaf_only = validation.crl_only_verify_leaf_cert;
    let Some(crls) = crls else {
        ignored(work, object, "crlOnlyVerifyLeafCert", leaf_only, "no effect without crlSecret");
        return None;
    };
    let found = resolve::revocation_lists(work.view, &object.meta.namespace, &crls);
    rejections.extend(found.err().and_then(|rejection| refused(work, object, "crlSecret", rejection)));
    Some(RevocationCheck { crls, leaf_only })
}

/// Why a Secret cannot be used; nothing where it has not been read yet, which is told at once: all that was in effect stays so.
fn refused<V>(
    work: &mut Work<'_, V>,
    object: &HttpProxy,
    name: &str,
    rejection: resolve::Rejection,
) -> Option<Rejection> {
    let code = match rejection.code {
        Code::SecretPending => {
            let subject = subject(work.kind, object);
            work.report(&subject, Rejection::resolved(rejection, field(name)));
            return None;
        }
        Code::DelegationMissing | Code::SecretReserved => rejection.code,
        _ => Code::ProxyClientValidation,
    };
    Some(Rejection::resolved(rejection, field(name)).coded(code))
}

fn ignored<V>(work: &mut Work<'_, V>, object: &HttpProxy, name: &str, is_set: bool, why: &str) {
    if is_set {
        let subject = subject(work.kind, object);
        work.report(&subject, Rejection::new(Code::ProxyIgnored, field(name), why));
    }
}

fn forwarded(details: &ClientCertificateDetails) -> ForwardedDetails {
    let ClientCertificateDetails { subject, cert, chain, dns, uri } = *details;
    ForwardedDetails { subject, certificate: cert, chain, dns, uri }
}

/// Tells the routes that are permitted over plaintext that they are closed there.
pub(crate) fn report_plaintext<V>(work: &mut Work<'_, V>, routes: &[RouteDraft]) {
    if work.settings.disable_permit_insecure {
        return;
    }
    // Those of includes that lead nowhere are told already.
    let is_written = |route: &&RouteDraft| route.insecure && route.origin.field.as_str().starts_with("spec.routes");
    for origin in routes.iter().filter(is_written).map(|route| &route.origin) {
        let why = "a client certificate is required, and clients have none over plaintext: the route answers 503 there";
        let rejection = Rejection::new(Code::ProxyClientInsecure, origin.field.field("permitInsecure"), why);
        work.report(&origin.object, rejection);
    }
}
