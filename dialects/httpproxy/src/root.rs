//! A root: the host, who owns it, and its routes on both listeners.

use crate::{
    DIALECT, HttpProxyView, Rejection, Work, authorization, class, client_validation, cors, gather, include, jwt,
    route::{
        RouteDraft, ip_filter, optional,
        rate_limit::{self, global::GlobalPolicy},
    },
    subject, tcp, tls,
};
use kinds::{HttpProxy, Kind, http_proxy::VirtualHost};
use model::{
    Code, FieldPath, Host, ListenerId, ObjectRef, Route, Severity, Timeout, Verdict,
    jwt::JwtProvider,
    route::{Action, Conditions, Depth, DirectResponse, Path, PathMatch, Precedence, Redirect},
    tls::{TcpProxy, Termination, TlsMode},
    translation::{Covers, RoutePiece, TlsPiece},
};
use std::sync::Arc;

/// What a root asks for.
#[derive(Default)]
pub(crate) struct Pieces {
    pub hosts: Vec<(ListenerId, Host)>,
    pub routes: Vec<RoutePiece>,
    pub tls: Vec<TlsPiece>,
    pub jwt_providers: Vec<JwtProvider>,
}

/// Everything that the root asks for. A root that does not own its host asks for nothing.
pub(crate) fn pieces(work: &mut Work<'_, impl HttpProxyView>, object: &HttpProxy, root: &ObjectRef) -> Pieces {
    let owned = owned_host(work, object);
    let (virtual_host, host) = match owned {
        Ok(owned) => owned,
        Err(rejection) => {
            // Of whoever may have no roots no trees are walked either.
            let may_have_roots = rejection.code != Code::ProxyRootNamespace;
            work.report(root, rejection);
            if may_have_roots {
                report_routes(work, object, root);
            }
            return Pieces::default();
        }
    };
    let secured = match secured(work, object, virtual_host, &host) {
        Ok(secured) => Ok(secured),
        Err(rejections) => {
            rejections.into_iter().for_each(|rejection| work.report(root, rejection));
            Err(())
        }
    };
    let mut rejections = host_policies(work, object, root, virtual_host);
    let jwt_providers = jwt::providers(work, object, root, virtual_host).unwrap_or_else(|more| {
        rejections.extend(more);
        Vec::new()
    });
    let refused = work.look_at_foreign(object, root);
    let whole = secured.is_ok() && rejections.is_empty() && !refused;
    rejections.into_iter().for_each(|rejection| work.report(root, rejection));
    let exposure = match secured {
        Err(()) => TlsExposure { tls: true, ..TlsExposure::default() },
        Ok(None) => {
            if !matches!(object.spec.tcp_proxy.get(), Ok(None)) {
                let why = "tcpproxy requires virtualhost.tls: connections are routed by SNI";
                work.report(root, Rejection::new(Code::ProxyTcpTls, "spec.tcpproxy".into(), why));
            }
            TlsExposure::default()
        }
        Ok(Some(secured)) => tls_exposure(work, object, root, secured, whole),
    };
    let made = if whole {
        include::routes(work, object)
    } else {
        report_routes(work, object, root);
        vec![unavailable(root)]
    };
    if whole && exposure.requires_client_certificate() {
        client_validation::report_plaintext(work, &made);
    }
    let jwt_providers = if whole { jwt_providers } else { Vec::new() };
    Pieces { jwt_providers, ..place(work, object, root, &host, exposure, made) }
}

/// Tells what is wrong with the routes of a root whose host is not served, so that all of it is known at once. Objects that it
/// includes are read, and nothing is told about them.
fn report_routes(work: &mut Work<'_, impl HttpProxyView>, object: &HttpProxy, root: &ObjectRef) {
    let verdicts = std::mem::take(&mut work.verdicts);
    let (includes, inclusions, pending) = (work.includes.clone(), work.inclusions.clone(), work.pending.clone());
    include::routes(work, object);
    (work.includes, work.inclusions, work.pending) = (includes, inclusions, pending);
    let of_routes = std::mem::replace(&mut work.verdicts, verdicts).into_sorted();
    // What depends on the policies of the host cannot be judged without it.
    let stands = |verdict: &Verdict| verdict.severity() == Severity::Error && verdict.code != Code::ProxyJwtUndefined;
    work.verdicts.extend(of_routes.into_iter().filter(|verdict| verdict.origin.object == *root && stands(verdict)));
}

/// How the host is reached besides over plaintext.
#[derive(Default)]
struct TlsExposure {
    /// Whether it asks for TLS at all.
    tls: bool,
    /// What is done with TLS connections that name it.
    mode: Option<TlsMode>,
    /// How those are decrypted that name no host.
    fallback: Option<Termination>,
}

impl TlsExposure {
    /// Whether only clients with a certificate may connect, for requests or for a `tcpproxy`. Over plaintext nobody has one.
    fn requires_client_certificate(&self) -> bool {
        let termination = self.mode.as_ref().and_then(TlsMode::termination);
        termination.is_some_and(|termination| termination.clients.as_ref().is_some_and(|it| it.is_required))
    }
}

fn tls_exposure(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    root: &ObjectRef,
    secured: tls::Secured,
    whole: bool,
) -> TlsExposure {
    let tls::Secured { termination, mut fallback } = secured;
    let report = |work: &mut Work<'_, _>, name: &str, why: &str| {
        let field = FieldPath::from("spec.virtualhost.tls").field(name);
        work.report(root, Rejection::new(Code::ProxyIgnored, field, why));
    };
    let passed_on = !matches!(object.spec.tcp_proxy.get(), Ok(None));
    let mode = match termination {
        Some(termination) if !passed_on => TlsMode::Http(termination),
        termination => {
            if fallback.take().is_some() {
                let why = "no effect together with tcpproxy: connections are routed by SNI";
                report(work, "enableFallbackCertificate", why);
            }
            if !passed_on {
                report(work, "passthrough", "passthrough requires tcpproxy; TLS connections are closed");
            }
            let clusters = if passed_on { tcp::clusters(work, object, root) } else { Vec::new() };
            let listed = ip_filter::of_connections(work.host.ip_filter.as_ref(), &"spec.virtualhost".into());
            // A host that is out of order as a whole may be so because of what protects it.
            let clusters = if whole && listed.is_ok() { clusters } else { Vec::new() };
            let ip_filter = listed.unwrap_or_else(|rejection| {
                work.report(root, rejection);
                None
            });
            TlsMode::Tcp(Arc::new(TcpProxy {
                termination,
                ip_filter,
                clusters,
                unavailable: 0,
                idle: Timeout::Default,
            }))
        }
    };
    TlsExposure { tls: true, mode: Some(mode), fallback }
}

/// The host, if the root may have it.
fn owned_host<'o>(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &'o HttpProxy,
) -> Result<(&'o VirtualHost, Host), Rejection> {
    let virtual_host = match object.spec.virtual_host.get() {
        Ok(Some(virtual_host)) => virtual_host,
        Ok(None) => return Err(Rejection::new(Code::ProxyFqdn, "spec.virtualhost".into(), "fqdn is missing")),
        Err(fault) => return Err(fault.into()),
    };
    let field = FieldPath::from("spec.virtualhost.fqdn");
    let wrong = |why: &str| Rejection::new(Code::ProxyFqdn, field.clone(), why);
    let name = virtual_host.fqdn.get()?.as_deref().unwrap_or_default();
    let host = match Host::parse_or_ipv4(name) {
        Ok(Host::Any) if name.is_empty() => return Err(wrong("fqdn is empty")),
        Ok(Host::Any) => return Err(wrong("`*` alone is not a host: a name must follow, as in `*.example.com`")),
        Ok(host) => host,
        Err(error) => return Err(wrong(&error.to_string())),
    };
    if !may_have_roots(work, object) {
        let namespace = &object.meta.namespace;
        let why = format!("namespace {namespace} is not a root namespace");
        return Err(Rejection::new(Code::ProxyRootNamespace, "spec.virtualhost".into(), why));
    }
    let (kind, owner) = owner(work, name);
    if let Some(owner) = owner.filter(|owner| (kind, &owner.meta) != (work.kind, &object.meta)) {
        let other = subject(kind, &owner);
        // Files have no ages.
        let reason = match (owner.meta.created, object.meta.created) {
            (Some(theirs), Some(own)) if theirs < own => "which is older",
            _ => "which comes first by namespace and name",
        };
        let why = format!("{name} is already used by {other}, {reason}");
        return Err(Rejection::new(Code::ProxyDuplicateFqdn, field.clone(), why).related_to(other.at(field)));
    }
    Ok((virtual_host, host))
}

fn may_have_roots<V>(work: &Work<'_, V>, object: &HttpProxy) -> bool {
    let allowed = &work.settings.root_namespaces;
    allowed.is_empty() || allowed.iter().any(|namespace| **namespace == *object.meta.namespace)
}

/// The oldest root that may have the host.
fn owner(work: &mut Work<'_, impl HttpProxyView>, name: &str) -> (Kind, Option<Arc<HttpProxy>>) {
    let roots = work.view.roots(name).into_iter();
    let mine = roots.filter(|(_, root)| class::is_ours(root, work.settings) && may_have_roots(work, root));
    let oldest =
        mine.min_by_key(|(kind, root)| (age(root), root.meta.namespace.clone(), root.meta.name.clone(), *kind));
    oldest.map_or((work.kind, None), |(kind, root)| (kind, Some(root)))
}

fn age(object: &HttpProxy) -> i64 {
    object.meta.created.map_or(0, |time| time.as_second())
}

/// What the host says about TLS, if it has it at all.
fn secured(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    virtual_host: &VirtualHost,
    host: &Host,
) -> Result<Option<tls::Secured>, Vec<Rejection>> {
    match optional(&virtual_host.tls).map_err(|fault| vec![fault.into()])? {
        None => Ok(None),
        Some(settings) => tls::secured(work, object, host, settings).map(Some),
    }
}

/// Reads what holds for all routes. What cannot be used makes the host fail closed.
fn host_policies(
    work: &mut Work<'_, impl HttpProxyView>,
    object: &HttpProxy,
    root: &ObjectRef,
    host: &VirtualHost,
) -> Vec<Rejection> {
    let field = FieldPath::from("spec.virtualhost");
    let mut rejections = Vec::new();
    let ip_filter = ip_filter::filter(&host.ip_allow, &host.ip_deny, &field);
    gather(&mut rejections, ip_filter.map(|found| work.host.ip_filter = found));
    let limit = rate_limit::local(&host.rate_limit_policy, &field, Code::ProxyHostRateLimit);
    gather(&mut rejections, limit.map(|limit| work.host.local_rate_limit = limit.map(Arc::new)));
    let global = rate_limit::global::policy(work, root, &host.rate_limit_policy, &field, Code::ProxyHostRateLimit);
    let default = work.settings.global_rate_limits.as_ref().and_then(|limits| limits.default.as_ref());
    if matches!(global, Ok(GlobalPolicy::Inherit)) && default.is_some() {
        rate_limit::global::look_at_service(work, root, field.clone());
    }
    gather(&mut rejections, global.map(|global| work.host.global_limit = global.or(default)));
    let passed_on = !matches!(object.spec.tcp_proxy.get(), Ok(None));
    if passed_on && host.rate_limit_policy.ok().is_some_and(Option::is_some) {
        let why = "no effect on connections of tcpproxy: only requests are counted";
        work.report(root, Rejection::new(Code::ProxyIgnored, field.field("rateLimitPolicy"), why));
    }
    let mut notes = Vec::new();
    let cors = cors::policy(&host.cors_policy, &mut notes);
    gather(&mut rejections, cors.map(|cors| work.host.cors = cors.map(Arc::new)));
    notes.into_iter().for_each(|note| work.report(root, note));
    rejections.extend(authorization::of_host(work, object, root, host).err().into_iter().flatten());
    rejections
}

/// Every request of the host is told that it is out of order.
fn unavailable(root: &ObjectRef) -> RouteDraft {
    RouteDraft {
        path: PathMatch::Prefix(Path::root()),
        conditions: Conditions::default(),
        action: Action::DirectResponse(DirectResponse::unavailable()),
        policy: Default::default(),
        insecure: true,
        implied: false,
        origin: root.at("spec.virtualhost"),
    }
}

/// The routes on their listeners. Under TLS, what is not permitted over plaintext is sent to HTTPS; what is permitted answers 503
/// there if a client certificate is required. A host whose TLS cannot
/// be had stands on the TLS listener all the same: a wildcard's certificate may cover it, but not its requests.
fn place<V>(
    work: &Work<'_, V>,
    object: &HttpProxy,
    root: &ObjectRef,
    host: &Host,
    exposure: TlsExposure,
    made: Vec<RouteDraft>,
) -> Pieces {
    let precedence = |index: usize, implied: bool| {
        let (namespace, name) = (object.meta.namespace.clone(), object.meta.name.clone());
        // The last of two that match the same requests wins: children come first, a parent's own routes after them.
        let index = u32::MAX - u32::try_from(index).unwrap_or(u32::MAX);
        Precedence { implied, ..Precedence::by_age(DIALECT, age(object), namespace, name, index) }
    };
    let is_closed = exposure.requires_client_certificate();
    let TlsExposure { tls, mode, fallback } = exposure;
    let mut secure = Vec::new();
    if tls && !matches!(mode, Some(TlsMode::Tcp(_))) {
        secure.push(ListenerId::https());
    }
    let mut pieces = Pieces::default();
    for (index, made) in made.into_iter().enumerate() {
        let RouteDraft { path, conditions, action, policy, insecure, implied, origin } = made;
        let (depth, precedence) = (Depth::OneLabel, precedence(index, implied));
        let route = Route {
            path,
            conditions,
            depth,
            action,
            policy: policy.into(),
            precedence,
            origin,
            fraction: None,
            combined: None,
        };
        let piece = |listener, route| RoutePiece { listener, host: host.clone(), route };
        let permitted = insecure && !work.settings.disable_permit_insecure;
        let route = Arc::new(route);
        let plain = if tls && (!permitted || is_closed) {
            let action = match permitted {
                true => Action::DirectResponse(DirectResponse::unavailable()),
                false => Action::Redirect(Redirect::to_https(work.settings.https_port)),
            };
            let Route { path, conditions, depth, precedence, origin, .. } = &*route;
            let (path, conditions) = (path.clone(), conditions.clone());
            let (precedence, origin, policy) = (precedence.clone(), origin.clone(), Default::default());
            Arc::new(Route {
                path,
                conditions,
                depth: *depth,
                action,
                policy,
                precedence,
                origin,
                fraction: None,
                combined: None,
            })
        } else {
            route.clone()
        };
        pieces.routes.push(piece(ListenerId::http(), plain));
        pieces.routes.extend(secure.iter().map(|listener| piece(listener.clone(), route.clone())));
    }
    pieces.hosts = [ListenerId::http()].into_iter().chain(secure).map(|listener| (listener, host.clone())).collect();
    pieces.tls.extend(mode.map(|mode| TlsPiece {
        listener: ListenerId::https(),
        host: host.clone(),
        mode,
        fallback,
        covers: Covers::default(),
        precedence: precedence(0, false),
        origin: root.at("spec.virtualhost.tls"),
    }));
    pieces
}
