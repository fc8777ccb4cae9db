//! JSON Web Tokens: the providers that a root defines, and which of them a route requires.
//!
//! What is wrong with a field of a provider puts the whole host out of order, as with all that protects it. Keys that are not there
//! (no Secret, no server) close the routes of their provider alone: no token is good until they are.

mod source;

use crate::{HttpProxyView, Rejection, Work, route::optional};
use kinds::{
    Checked, HttpProxy,
    http_proxy::{
        VirtualHost,
        security::{JwtProvider as Spec, JwtVerificationPolicy},
    },
};
use model::{
    Code, FieldPath, ObjectRef,
    jwt::{JwtProvider, JwtProviderId},
};
use std::{collections::BTreeMap, sync::Arc};

/// The most providers of a host.
const MOST_PROVIDERS: usize = 16;
/// The most audiences of a provider.
const MOST_AUDIENCES: usize = 64;
/// The longest name, issuer or audience, in bytes.
const LONGEST_TEXT: usize = 1024;
/// How much all providers of a host may take, in bytes: proxies are sent the providers of many hosts together.
const MOST_BYTES: usize = 64 * 1024;

/// The providers of a host, by name.
pub(crate) type Names = BTreeMap<Box<str>, Arc<JwtProviderId>>;

/// The providers that a root defines, or everything that is in the way. Routes find them by name in `work`.
pub(crate) fn providers(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    root: &ObjectRef,
    host: &VirtualHost,
) -> Result<Vec<JwtProvider>, Vec<Rejection>> {
    let field = FieldPath::from("spec.virtualhost.jwtProviders");
    let specs = match host.jwt_providers.get() {
        Ok(specs) => specs.as_deref().unwrap_or_default(),
        Err(fault) => return Err(vec![fault.into()]),
    };
    if specs.is_empty() {
        return Ok(Vec::new());
    }
    let mut rejections = Vec::new();
    let tls = host.tls.ok().and_then(Option::as_deref);
    if !tls.is_some_and(|tls| !tls.passthrough && tls.secret_name.as_deref().is_some_and(|name| !name.is_empty())) {
        let why = "jwtProviders requires tls.secretName: tokens are not checked on connections that are not encrypted";
        rejections.push(Rejection::new(Code::ProxyJwtNotPermitted, field.clone(), why));
    }
    if !matches!(object.spec.tcp_proxy.get(), Ok(None)) {
        let why = "cannot be used together with tcpproxy: tokens are not checked in connections that are passed on";
        rejections.push(Rejection::new(Code::ProxyJwtNotPermitted, field.clone(), why));
    }
    if tls.is_some_and(|tls| tls.enable_fallback_certificate) {
        let why = "cannot be used together with jwtProviders";
        let at = FieldPath::from("spec.virtualhost.tls.enableFallbackCertificate");
        rejections.push(Rejection::new(Code::ProxyTlsIncompatible, at, why));
    }
    if specs.len() > MOST_PROVIDERS {
        let why = format!("has {} providers; the limit is {MOST_PROVIDERS}", specs.len());
        rejections.push(Rejection::new(Code::ProxyJwtLimit, field, why));
        return Err(rejections);
    }
    let (mut names, mut made, mut default) = (Names::new(), Vec::new(), None);
    for (index, spec) in specs.iter().enumerate() {
        let field = field.index(index);
        let id = Arc::new(JwtProviderId { object: root.clone(), name: Arc::from(&*spec.name) });
        if names.insert(spec.name.clone(), id.clone()).is_some() {
            let why = format!("another provider is called `{}`", spec.name);
            rejections.push(Rejection::new(Code::ProxyJwtDuplicate, field.field("name"), why));
        }
        if spec.default && default.replace(id.clone()).is_some() {
            let why = "another provider is the default";
            rejections.push(Rejection::new(Code::ProxyJwtDefaults, field.field("default"), why));
        }
        match provider(work, object, root, spec, id, &field) {
            Ok(provider) => made.push(provider),
            Err(rejection) => rejections.push(rejection),
        }
    }
    if !rejections.is_empty() {
        return Err(rejections);
    }
    let bytes: usize = made.iter().map(JwtProvider::bytes).sum();
    if bytes > MOST_BYTES {
        let why = format!("keys, issuers and audiences take {bytes} bytes; the limit is {MOST_BYTES}");
        work.report(root, Rejection::new(Code::ProxyJwtLimit, field, why));
        made = made.iter().map(JwtProvider::closed).collect();
    }
    made.sort_by(|a, b| a.id.cmp(&b.id));
    (work.jwt, work.host.jwt) = (names, default);
    Ok(made)
}

fn provider(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    root: &ObjectRef,
    spec: &Spec,
    id: Arc<JwtProviderId>,
    field: &FieldPath,
) -> Result<JwtProvider, Rejection> {
    let limit = |name: &str, why: String| Err(Rejection::new(Code::ProxyJwtLimit, field.field(name), why));
    let too_long = |text: &str| text.len() > LONGEST_TEXT;
    let long = format!("is longer than {LONGEST_TEXT} bytes");
    if too_long(&spec.name) || spec.name.is_empty() {
        return limit("name", if spec.name.is_empty() { "is missing".to_owned() } else { long });
    }
    if spec.issuer.as_deref().is_some_and(too_long) {
        return limit("issuer", long);
    }
    if spec.audiences.len() > MOST_AUDIENCES {
        return limit("audiences", format!("has {} entries; the limit is {MOST_AUDIENCES}", spec.audiences.len()));
    }
    if let Some(index) = spec.audiences.iter().position(|audience| too_long(audience) || audience.is_empty()) {
        let why = if spec.audiences[index].is_empty() { "is empty".to_owned() } else { long };
        return Err(Rejection::new(Code::ProxyJwtLimit, field.field("audiences").index(index), why));
    }
    let (keys, remote) = match (&spec.remote_jwks, &spec.local_jwks) {
        (Some(_), Some(_)) => {
            let why = "remoteJWKS and localJWKS are both set";
            return Err(Rejection::new(Code::ProxyJwksConflict, field.clone(), why));
        }
        (None, None) => {
            let why = "neither remoteJWKS nor localJWKS is set";
            return Err(Rejection::new(Code::ProxyJwksMissing, field.clone(), why));
        }
        (Some(spec), None) => {
            let (fetch, keys) = source::remote(work, object, root, spec, &field.field("remoteJWKS"))?;
            (keys, fetch)
        }
        (None, Some(spec)) => (source::local(work, object, root, spec, &field.field("localJWKS")), None),
    };
    Ok(JwtProvider {
        origin: root.at(field.clone()),
        id,
        issuer: spec.issuer.as_deref().filter(|issuer| !issuer.is_empty()).map(Arc::from),
        audiences: spec.audiences.iter().map(|audience| Arc::from(&**audience)).collect(),
        forward: spec.forward_jwt,
        keys,
        remote,
    })
}

/// The provider whose token a route requires: the one that it names, or the host's default.
pub(crate) fn required<V>(
    work: &Work<'_, V>,
    policy: &Checked<Option<Box<JwtVerificationPolicy>>>,
    field: &FieldPath,
) -> Result<Option<Arc<JwtProviderId>>, Rejection> {
    let Some(policy) = optional(policy)? else { return Ok(work.host.jwt.clone()) };
    let field = field.field("jwtVerificationPolicy");
    match (policy.require.as_deref().filter(|name| !name.is_empty()), policy.disabled) {
        (Some(_), true) => {
            Err(Rejection::new(Code::ProxyJwtPolicy, field, "require and disabled are mutually exclusive"))
        }
        (None, true) => Ok(None),
        (None, false) => Ok(work.host.jwt.clone()),
        (Some(name), false) => match work.jwt.get(name) {
            Some(id) => Ok(Some(id.clone())),
            None => {
                let name: String = name.chars().take(80).collect();
                let why = format!("the virtual host has no JWT provider `{name}`");
                Err(Rejection::new(Code::ProxyJwtUndefined, field.field("require"), why))
            }
        },
    }
}
