//! Where the keys of a provider come from: a server, or a Secret.

use crate::{HttpProxyView, Rejection, Work, duration, route::service, tls::secret_id};
use kinds::{
    HttpProxy,
    http_proxy::{
        security::{LocalJwks, RemoteJwks as Spec},
        service::UpstreamValidation,
    },
    kind,
};
use model::{
    Code, FieldPath, ObjectRef,
    jwt::{AddressFamily, Jwks, JwksFetch, JwksTrust, JwksUri, JwksUriError, RemoteJwks},
};
use std::{sync::Arc, time::Duration};

/// How long a fetch may take, where nothing is said.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How long keys are good, where nothing is said: as in Envoy.
const CACHE: Duration = Duration::from_secs(5 * 60);

/// The keys of a server, and how they are fetched. Without a CA that it is to be trusted by, it is not asked, and there are none.
pub(super) fn remote(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    root: &ObjectRef,
    spec: &Spec,
    field: &FieldPath,
) -> Result<(Option<JwksFetch>, Option<Jwks>), Rejection> {
    let at = |name: &str| field.field(name);
    let uri = JwksUri::parse(&spec.uri).map_err(|error| {
        let code = match error {
            JwksUriError::Scheme => Code::ProxyJwksScheme,
            JwksUriError::Port => Code::ProxyJwksPort,
            JwksUriError::Other(_) => Code::ProxyJwksUri,
        };
        Rejection::new(code, at("uri"), error.to_string())
    })?;
    resolve::address::check(&uri.host).map_err(|why| Rejection::new(Code::ProxyJwksUri, at("uri"), why))?;
    let mut notes = Vec::new();
    let mut span =
        |text: &Option<Box<str>>, default, code, name| set_or(text.as_deref(), default, code, at(name), &mut notes);
    let timeout = span(&spec.timeout, TIMEOUT, Code::ProxyJwksTimeout, "timeout")?;
    let cache = span(&spec.cache_duration, CACHE, Code::ProxyJwksCache, "cacheDuration")?;
    notes.into_iter().for_each(|note| work.report(root, note));
    let family = match spec.dns_lookup_family.as_deref().filter(|text| !text.is_empty()) {
        None => None,
        Some(text) => Some(AddressFamily::parse(text).ok_or_else(|| {
            let text: String = text.chars().take(80).collect();
            Rejection::new(Code::ProxyJwksFamily, at("dnsLookupFamily"), format!("unknown family `{text}`"))
        })?),
    };
    let trust = match &spec.validation {
        None => None,
        Some(_) if !uri.tls => {
            let why = "requires https: without TLS there is no certificate to verify";
            return Err(Rejection::new(Code::ProxyJwksValidation, at("validation"), why));
        }
        Some(policy) => match trust(work, object, policy, &at("validation"))? {
            Ok(trust) => Some(trust),
            Err(rejection) => {
                work.report(root, rejection);
                return Ok((None, None));
            }
        },
    };
    let namespace = Arc::from(&*object.meta.namespace);
    let source = Arc::new(RemoteJwks { namespace, uri, trust, family });
    let state = work.view.jwks(&source);
    let (keys, failure) = match state.as_deref() {
        Some(state) => (state.keys.clone(), state.failure.clone()),
        None => (None, None),
    };
    let finding = match (&failure, &keys) {
        (None, Some(_)) => None,
        (None, None) => Some((Code::ProxyJwksPending, "has not been fetched yet".into())),
        (Some(why), Some(_)) => Some((Code::ProxyJwksStale, why.clone())),
        (Some(why), None) => Some((Code::ProxyJwksNotFetched, why.clone())),
    };
    if let Some((code, why)) = finding {
        work.report(root, Rejection::new(code, field.clone(), format!("{}: {why}", source.uri)));
    }
    Ok((Some(JwksFetch { source, timeout, cache }), keys))
}

/// A duration; what is nothing, or nothing said, is the default.
fn set_or(
    text: Option<&str>,
    default: Duration,
    code: Code,
    field: FieldPath,
    notes: &mut Vec<Rejection>,
) -> Result<Duration, Rejection> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(default) };
    let found = duration::duration(text, code, field, notes)?;
    Ok(if found.is_zero() { default } else { found })
}

/// Whom to trust. That the CA is not there is not the fault of the field: what is said about it is the inner error.
fn trust(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    policy: &UpstreamValidation,
    field: &FieldPath,
) -> Result<Result<JwksTrust, Rejection>, Rejection> {
    let names = service::subject_names(policy)
        .map_err(|(name, why)| Rejection::new(Code::ProxyJwksValidation, field.field(name), why))?;
    let namespace = &object.meta.namespace;
    let ca = secret_id(namespace, &policy.ca_secret);
    let field = field.field("caSecret");
    Ok(match resolve::trusted(work.view, namespace, &ca) {
        Ok(()) => Ok(JwksTrust { ca, names: names.into_iter().map(Arc::from).collect() }),
        Err(rejection) => {
            let code = match rejection.code {
                Code::DelegationMissing => Code::ProxyJwksCaNotDelegated,
                Code::SecretPending | Code::SecretReserved => rejection.code,
                _ => Code::ProxyJwksValidation,
            };
            Err(Rejection::resolved(rejection, field).coded(code))
        }
    })
}

/// The keys in a Secret of the same namespace; nothing, and a verdict, where there are none.
pub(super) fn local(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    root: &ObjectRef,
    spec: &LocalJwks,
    field: &FieldPath,
) -> Option<Jwks> {
    let id = ObjectRef::new(kind::SECRET, object.meta.namespace.clone(), Arc::from(&*spec.secret_name));
    let reject = |code, name: &str, why: Box<str>| Rejection::new(code, field.field(name), why);
    let found = match resolve::reserved::check(work.view, &id) {
        Err(reserved) => Some(Err(reserved)),
        Ok(()) if resolve::name::is_subdomain(&spec.secret_name) => work.view.local_jwks(&id, &spec.key),
        Ok(()) => None,
    };
    let rejection = match found {
        Some(Ok(keys)) => return Some(keys),
        Some(Err(found)) if matches!(found.code, Code::SecretPending | Code::SecretReserved) => {
            reject(found.code, "secretName", found.why)
        }
        Some(Err(found)) => reject(Code::ProxyLocalJwks, "key", found.why),
        None => reject(Code::ProxyLocalJwks, "secretName", format!("{id} does not exist").into()).related_to(id.at("")),
    };
    work.report(root, rejection);
    None
}
