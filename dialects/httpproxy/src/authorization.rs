//! External authorization: who is asked whether requests of a host may pass, and what its routes say about it.
//!
//! In: `virtualhost.authorization` and `routes[].authPolicy`. Out: for each route, the server and what it is told, or that nobody
//! is asked. What cannot be used makes the host, or the route, fail closed. An ExtensionService that is not there, or not valid, is
//! told here: requests are denied, or pass where `failOpen` says so. So is a route whose `authPolicy` asks for authorization where
//! no server is named: it is served without authorization, as with Contour.

use crate::{HttpProxyView, Rejection, Work, duration::timeout, route::FieldContext};
use kinds::{
    Fault, HttpProxy, TextMap,
    http_proxy::{
        self, VirtualHost,
        security::{AllowedHeader, AuthPolicy, AuthorizationServer, ExtensionServiceReference, HttpAuthorization},
    },
    kind,
};
use model::{
    Code, FieldPath, HeaderName, MutableHeader, ObjectRef, Timeout,
    cluster::Extension,
    header::HeaderError,
    route::{
        AuthCheck, AuthContext, AuthServer, Authorization, Path,
        authorization::{AuthBody, AuthProtocol, HeaderNamePattern},
    },
};
use std::sync::Arc;

/// The most text that a server is told besides a request: each route and each call has all of it.
const MOST_CONTEXT: usize = 8 * 1024;
/// The most of a body that a server is sent: a proxy holds it in memory for each request.
const MOST_BODY: i64 = 1024 * 1024;
/// What is sent of a body where nothing is said.
const BODY: i64 = 1024;
/// The most patterns of header names.
const MOST_HEADERS: usize = 100;

/// The message about a setting of a host that has no effect because `globalExtAuth` sets it.
const OPERATORS_HOLDS: &str = "ignored: globalExtAuth configures the authorization server";

/// What is set about a server, without which it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSettings {
    /// How it is asked.
    pub protocol: AuthProtocol,
    /// How long it may take.
    pub timeout: Timeout,
    /// Whether requests pass when it cannot be asked.
    pub fail_open: bool,
    /// How much of the body it is sent.
    pub body: Option<AuthBody>,
    /// Whether it is asked about no route that does not say otherwise.
    pub disabled: bool,
    /// What it is told about every route.
    pub context: AuthContext,
    /// The names of headers that it would be sent alone; all are.
    pub limits_headers: bool,
}

impl AuthSettings {
    /// A server with these settings.
    pub fn server(&self, extension: Option<Extension>) -> AuthServer {
        let Self { protocol, timeout, fail_open, body, .. } = self;
        AuthServer { extension, protocol: protocol.clone(), timeout: *timeout, fail_open: *fail_open, body: *body }
    }

    /// Takes the operator's settings of the same server: no more requests pass without it, and it is asked in the operator's way, for as
    /// long as the operator says unless the host says how long. Gives the fields below the host's authorization that are set and have no
    /// effect.
    fn take_operators(&mut self, operator: &Self, written: &AuthorizationServer) -> Vec<&'static str> {
        let mut ignored = Vec::new();
        let mut ignore = |is_written: bool, field| ignored.extend(is_written.then_some(field));
        if self.fail_open && !operator.fail_open {
            self.fail_open = false;
            ignore(true, "failOpen");
        }
        if self.timeout == Timeout::Default {
            self.timeout = operator.timeout;
        }
        if self.protocol != operator.protocol {
            let is_same_kind = (self.protocol == AuthProtocol::Grpc) == (operator.protocol == AuthProtocol::Grpc);
            ignore(!is_same_kind && written.service_type.is_some(), "serviceType");
            ignore(written.http_settings.is_some(), "httpSettings");
            self.protocol = operator.protocol.clone();
        }
        if self.body != operator.body {
            ignore(written.with_request_body.is_some(), "withRequestBody");
            self.body = operator.body;
        }
        if self.protocol != AuthProtocol::Grpc && !self.context.is_empty() {
            self.context = AuthContext::new();
            ignore(true, "authPolicy.context");
        }
        ignored
    }
}

/// The authorization server that the operator names for routes whose host names none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorServer {
    /// The namespace and the name of its extension.
    pub extension: (Arc<str>, Arc<str>),
    /// How it is asked, and what it is told.
    pub settings: AuthSettings,
}

impl OperatorServer {
    /// Whether it is this extension. Both groups may have one of its name: it is that which is asked.
    fn is(&self, id: &ObjectRef, view: &mut impl HttpProxyView) -> bool {
        let (namespace, name) = &self.extension;
        *namespace == id.namespace && *name == id.name && resolve::extension::named(view, namespace, name) == *id
    }
}

/// Why a host of a tcpproxy has no authorization.
const BESIDE_TCP_PROXY: &str =
    "cannot be used together with tcpproxy: no request is checked in connections that are passed on";

/// What a host says to its routes.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostAuthorization {
    /// Who is asked; whoever the operator names, if nobody.
    server: Option<Arc<AuthServer>>,
    /// Whether it says what holds for routes that say nothing.
    is_stated: bool,
    disabled: bool,
    context: AuthContext,
    /// The operator's context, where the host names the operator's server: it stays, whatever routes say.
    operators: Option<AuthContext>,
}

/// Reads what a host says; everything that is in the way of it.
pub(crate) fn of_host(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    subject: &ObjectRef,
    host: &VirtualHost,
) -> Result<(), Vec<Rejection>> {
    let field = FieldPath::from("spec.virtualhost.authorization");
    let found = host.authorization.get().map_err(|fault: &Fault| vec![fault.into()])?;
    let Some(authorization) = found else { return Ok(()) };
    let mut notes = Vec::new();
    let mut settings = settings(authorization, &field, &mut notes).map_err(|rejection| vec![rejection])?;
    notes.into_iter().for_each(|note| work.report(subject, note));
    if settings.limits_headers {
        let why = "no effect: all headers of a request are sent, except those that begin with x-sesame-";
        let at = field.field("httpSettings").field("allowedAuthorizationHeaders");
        work.report(subject, Rejection::new(Code::ProxyIgnored, at, why));
    }
    let mut rejections = Vec::new();
    let tls = host.tls.ok().and_then(Option::as_ref);
    if tls.is_some_and(|tls| tls.enable_fallback_certificate) {
        let at = FieldPath::from("spec.virtualhost.tls.enableFallbackCertificate");
        rejections.push(Rejection::new(Code::ProxyTlsIncompatible, at, "cannot be used together with authorization"));
    }
    let mut operators = None;
    let passed_on = !matches!(object.spec.tcp_proxy.get(), Ok(None));
    let server = match authorization.extension_ref.as_deref() {
        None => {
            if !settings.disabled && passed_on {
                rejections.push(Rejection::new(Code::ProxyAuthNotPermitted, field.clone(), BESIDE_TCP_PROXY));
            }
            if !settings.disabled && work.settings.global_authorization.is_none() {
                let why = "extensionRef is missing, and the operator has configured no globalExtAuth";
                rejections.push(Rejection::new(Code::ExtensionNotFound, field.field("extensionRef"), why));
            }
            None
        }
        Some(reference) => {
            let why = if tls.is_none_or(|tls| tls.passthrough) {
                Some("requires a host that terminates TLS: without it, credentials would travel in plaintext")
            } else {
                passed_on.then_some(BESIDE_TCP_PROXY)
            };
            if let Some(why) = why {
                rejections.push(Rejection::new(Code::ProxyAuthNotPermitted, field.field("extensionRef"), why));
            }
            let at = field.field("extensionRef");
            match extension(work, object, subject, reference, &at) {
                Ok((id, extension)) => {
                    let settings_of_operator = work.settings.global_authorization.as_ref();
                    if let Some(operator) = settings_of_operator.filter(|operator| operator.is(&id, work.view)) {
                        operators = Some(operator.settings.context.clone());
                        for name in settings.take_operators(&operator.settings, authorization) {
                            let at = FieldPath::from(format!("{field}.{name}").as_str());
                            work.report(subject, Rejection::new(Code::ProxyIgnored, at, OPERATORS_HOLDS));
                        }
                    }
                    Some(Arc::new(settings.server(extension)))
                }
                Err(rejection) => {
                    rejections.push(rejection);
                    None
                }
            }
        }
    };
    if !rejections.is_empty() {
        return Err(rejections);
    }
    let is_stated = authorization.auth_policy.is_some();
    work.authorization =
        HostAuthorization { server, is_stated, disabled: settings.disabled, context: settings.context, operators };
    Ok(())
}

/// What a route says, with what its host says.
pub(crate) fn of_route<V>(
    work: &mut Work<'_, V>,
    place: &FieldContext<'_>,
    route: &http_proxy::Route,
) -> Result<Authorization, Rejection> {
    let HostAuthorization { server, mut is_stated, mut disabled, mut context, operators } = work.authorization.clone();
    if let Some(policy) = route.auth_policy.get()? {
        is_stated = true;
        let field = place.field.field("authPolicy").field("context");
        disabled = policy.disabled;
        let over_http = server.as_ref().is_some_and(|server| server.protocol != AuthProtocol::Grpc);
        merge(&mut context, &policy.context, over_http && operators.is_none(), &field)?;
        if over_http && !context.is_empty() {
            context.clear();
            work.report(place.subject, Rejection::new(Code::ProxyIgnored, field, OPERATORS_HOLDS));
        }
    }
    Ok(match server {
        _ if disabled => Authorization::Disabled,
        Some(server) => {
            // The operator's entries win: the server decides by them.
            context.extend(operators.unwrap_or_default());
            Authorization::Ask(Arc::new(AuthCheck { server, context }))
        }
        None if is_stated => {
            if work.settings.global_authorization.is_none() {
                let why = "the virtual host has no authorization.extensionRef, and the operator has configured no \
                           globalExtAuth: requests pass without authorization";
                let field = place.field.field("authPolicy");
                work.report(place.subject, Rejection::new(Code::ProxyAuthNoServer, field, why));
            }
            Authorization::AskDefault(Arc::new(context))
        }
        None => Authorization::Unset,
    })
}

/// Which ExtensionService is meant, and how it is called; one that cannot be used is told.
fn extension(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    subject: &ObjectRef,
    reference: &ExtensionServiceReference,
    field: &FieldPath,
) -> Result<(ObjectRef, Option<Extension>), Rejection> {
    let own = if work.kind == kind::SESAME_HTTP_PROXY {
        kind::SESAME_EXTENSION_SERVICE
    } else {
        kind::CONTOUR_EXTENSION_SERVICE
    };
    let kind = match reference.api_version.as_deref().filter(|version| !version.is_empty()) {
        None => own,
        Some(version) => kind::of(version, "ExtensionService").ok_or_else(|| {
            let why = format!("must be {}, not `{version}`", own.api_version());
            Rejection::new(Code::ProxyAuthVersion, field.field("apiVersion"), why)
        })?,
    };
    let namespace = reference.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    let namespace = namespace.unwrap_or(&object.meta.namespace);
    let name = reference.name.as_deref().unwrap_or_default();
    if !resolve::name::is_label(namespace) || !resolve::name::is_subdomain(name) {
        return Err(Rejection::new(Code::ExtensionNotFound, field.clone(), "no object can have this name"));
    }
    let id = ObjectRef::new(kind, namespace, name);
    let found = permitted(work, object, &id).and_then(|()| resolve::extension::get(work.view, &id));
    let found = found.map_err(|rejection| work.report(subject, Rejection::resolved(rejection, field.clone())));
    Ok((id, found.ok()))
}

/// Whether the host may use an ExtensionService: whoever names one has its server see requests with all their credentials, and
/// takes up its time. What may not be used is not looked for, so that nothing is said about it.
fn permitted(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    id: &ObjectRef,
) -> Result<(), resolve::Rejection> {
    let (from, own) = (work.kind, &*object.meta.namespace);
    if work.settings.open_extensions.contains(id) || resolve::grant::permits(work.view, from, own, id) {
        return Ok(());
    }
    let why = format!(
        "no ReferenceGrant in namespace {} lets an HTTPProxy of {} in namespace {own} use {id}",
        id.namespace,
        from.group()
    );
    Err(resolve::Rejection::new(Code::ExtensionNotPermitted, why))
}

/// Reads what the operator sets about a server; an error names the field below it. A timeout that is too long is one: nobody would be
/// told what is used instead.
pub fn of_operator(server: &AuthorizationServer) -> Result<AuthSettings, String> {
    let message = |field: &FieldPath, why: &dyn std::fmt::Display| format!("{field}: {why}");
    let field = FieldPath::from("");
    if let Err(error) = Timeout::parse(server.response_timeout.as_deref().unwrap_or_default()) {
        return Err(message(&field.field("responseTimeout"), &error));
    }
    settings(server, &field, &mut Vec::new()).map_err(|rejection| message(&rejection.field, &rejection.why))
}

/// Reads everything about a server but which it is.
fn settings(
    server: &AuthorizationServer,
    field: &FieldPath,
    notes: &mut Vec<Rejection>,
) -> Result<AuthSettings, Rejection> {
    let reject = |name: &str, why: String| Rejection::new(Code::ProxyAuthSettings, field.field(name), why);
    let http = server.http_settings.as_deref();
    let protocol = match (server.service_type.as_deref(), http) {
        (None | Some("" | "grpc"), None) => AuthProtocol::Grpc,
        (None | Some("" | "grpc"), Some(_)) => {
            return Err(reject("httpSettings", "requires serviceType http".to_owned()));
        }
        (Some("http"), http) => over_http(http, &field.field("httpSettings"))?,
        (Some(other), _) => return Err(reject("serviceType", format!("must be grpc or http, not `{other}`"))),
    };
    let text = server.response_timeout.as_deref();
    let timeout = timeout(text, Code::ProxyAuthTimeout, field.field("responseTimeout"), notes)?;
    let mut body = None;
    if let Some(wanted) = &server.with_request_body {
        let most = wanted.max_request_bytes.unwrap_or(BODY);
        let fits = u32::try_from(most).ok().filter(|_| (1..=MOST_BODY).contains(&most));
        let most = fits.ok_or_else(|| {
            reject("withRequestBody", format!("maxRequestBytes must be from 1 to {MOST_BODY}, not {most}"))
        })?;
        body = Some(AuthBody { most, partial: wanted.allow_partial_message, as_bytes: wanted.pack_as_bytes });
    }
    let mut context = AuthContext::new();
    let mut disabled = false;
    if let Some(AuthPolicy { disabled: is_disabled, context: words }) = server.auth_policy.as_deref() {
        disabled = *is_disabled;
        let at = field.field("authPolicy").field("context");
        merge(&mut context, words, protocol != AuthProtocol::Grpc, &at)?;
    }
    let limits_headers = http.is_some_and(|http| !http.allowed_authorization_headers.is_empty());
    let fail_open = server.fail_open;
    Ok(AuthSettings { protocol, timeout, fail_open, body, disabled, context, limits_headers })
}

fn over_http(settings: Option<&HttpAuthorization>, field: &FieldPath) -> Result<AuthProtocol, Rejection> {
    let Some(settings) = settings else {
        return Ok(AuthProtocol::Http { path_prefix: None, upstream_headers: Vec::new() });
    };
    let prefix = settings.path_prefix.as_deref().filter(|prefix| !prefix.is_empty());
    let path_prefix = prefix
        .map(Path::parse)
        .transpose()
        .map_err(|error| Rejection::new(Code::ProxyAuthSettings, field.field("pathPrefix"), error.to_string()))?;
    patterns(&settings.allowed_authorization_headers, &field.field("allowedAuthorizationHeaders"))?;
    let at = field.field("allowedUpstreamHeaders");
    let upstream_headers = patterns(&settings.allowed_upstream_headers, &at)?;
    for (index, pattern) in upstream_headers.iter().enumerate() {
        // Of those that a wider pattern has, the proxy passes none on.
        if let HeaderNamePattern::Exact(name) = pattern {
            let reject = |error: HeaderError| Rejection::new(Code::ProxyAuthHeader, at.index(index), error.to_string());
            MutableHeader::parse(name.as_str()).map_err(reject)?;
        }
    }
    Ok(AuthProtocol::Http { path_prefix, upstream_headers })
}

/// Names of headers, whatever their case.
fn patterns(list: &[AllowedHeader], field: &FieldPath) -> Result<Vec<HeaderNamePattern>, Rejection> {
    if list.len() > MOST_HEADERS {
        let why = format!("{} entries; the limit is {MOST_HEADERS}", list.len());
        return Err(Rejection::new(Code::ProxyAuthHeader, field.clone(), why));
    }
    let read = |(index, entry): (usize, &AllowedHeader)| {
        let reject = |why: String| Rejection::new(Code::ProxyAuthHeader, field.index(index), why);
        let name = |text: &str| HeaderName::parse(text).map_err(|error| reject(error.to_string()));
        let AllowedHeader { exact, prefix, suffix, contains, ignore_case: _ } = entry;
        match (exact, prefix, suffix, contains) {
            (Some(text), None, None, None) => Ok(HeaderNamePattern::Exact(name(text)?)),
            (None, Some(text), None, None) => Ok(HeaderNamePattern::Prefix(name(text)?)),
            (None, None, Some(text), None) => Ok(HeaderNamePattern::Suffix(name(text)?)),
            (None, None, None, Some(text)) => Ok(HeaderNamePattern::Contains(name(text)?)),
            _ => Err(reject("exactly one of exact, prefix, suffix and contains must be set".to_owned())),
        }
    };
    list.iter().enumerate().map(read).collect()
}

/// Adds what a server is told; later words win.
fn merge(into: &mut AuthContext, words: &TextMap, over_http: bool, field: &FieldPath) -> Result<(), Rejection> {
    if let Some(fault) = words.broken() {
        return Err(fault.into());
    }
    for (key, value) in words.iter() {
        into.insert(key.into(), value?.clone());
    }
    if over_http && !into.is_empty() {
        let why = "the context is sent only to gRPC servers";
        return Err(Rejection::new(Code::ProxyAuthContextForHttp, field.clone(), why));
    }
    let bytes: usize = into.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > MOST_CONTEXT {
        let why = format!("{bytes} bytes with those of the host; the limit is {MOST_CONTEXT}");
        return Err(Rejection::new(Code::ProxyAuthContext, field.clone(), why));
    }
    Ok(())
}
