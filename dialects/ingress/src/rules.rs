//! The routes of an Ingress: for each path, its type and its text, and what is behind it, a Service's port or the reason
//! why there is nothing; over plaintext and under TLS.

use crate::{Context, budget::Budget};
use kinds::ingress::{Backend, HttpPath, PathType, ServiceBackendPort};
use model::{
    ClusterId, Code, FieldPath, Host, ListenerId, Regex, Route, Verdict,
    route::{Action, Depth, DirectResponse, Forward, Path, PathMatch, Redirect, WeightedCluster},
    translation::{RoutePiece, TlsPiece},
};
use resolve::{PortRef, Rejection, View};
use std::sync::Arc;

/// The routes of all rules, and those of the default backend, which takes what no rule of this object takes, on every
/// host that it names and on those that nobody has.
pub(crate) fn pieces(context: &mut Context<'_>, view: &mut impl View, tls: &[TlsPiece]) -> Pieces {
    let object = context.object;
    let mut pieces = Vec::new();
    let mut budget = Budget::default();
    let mut index = 0;
    let mut cut = false;
    for (at, rule) in object.spec.rules.good() {
        let field = FieldPath::from("spec.rules").index(at);
        let Some(host) = host(context, rule.host.as_deref(), &field) else { continue };
        if let Err(limit) = budget.host(&host) {
            context.pass(limit, field);
            break;
        }
        if cut && !rule.http.paths.is_empty() {
            pieces.extend(left_out(context, &host, index, &field));
            continue;
        }
        for (at, path) in rule.http.paths.good() {
            let field = field.field("http").field("paths").index(at);
            index += 1;
            let found = budget.path().and_then(|()| {
                let found = one(context, view, &host, path, index, &field);
                let bytes = |piece: &RoutePiece| piece.route.path.text().len() + piece.route.action.bytes();
                budget.bytes(found.iter().map(bytes).sum()).map(|()| found)
            });
            match found {
                Ok(found) => pieces.extend(found),
                Err(limit) => {
                    pieces.extend(left_out(context, &host, index, &field));
                    context.pass(limit, field);
                    cut = true;
                    break;
                }
            }
        }
    }
    let mut hosts = budget.hosts;
    if let Ok(Some(default)) = object.spec.default_backend.get() {
        let field = FieldPath::from("spec.defaultBackend");
        let cluster = cluster(context, view, Some(default as &Backend), &field);
        hosts.insert(Host::Any);
        hosts.extend(tls.iter().map(|piece| piece.host.clone()));
        for host in &hosts {
            let found = Match { path: PathMatch::Prefix(Path::root()), index: index + 1, implied: true };
            pieces.extend(routes(context, host, found, cluster.clone(), false, &field));
        }
    }
    warn_about_the_whole(context, &pieces, tls);
    let listeners = [ListenerId::http(), ListenerId::https()];
    let hosts = hosts.iter().flat_map(|host| listeners.iter().map(|listener| (listener.clone(), host.clone())));
    // They stay for as long as the object does.
    let mut hosts: Vec<_> = hosts.collect();
    hosts.shrink_to_fit();
    pieces.shrink_to_fit();
    Pieces { hosts, routes: pieces }
}

/// The hosts that an Ingress names, and its routes.
pub(crate) struct Pieces {
    pub hosts: Vec<(ListenerId, Host)>,
    pub routes: Vec<RoutePiece>,
}

/// The routes of one path; none where it cannot be matched.
fn one(
    context: &mut Context<'_>,
    view: &mut impl View,
    host: &Host,
    path: &HttpPath,
    index: usize,
    field: &FieldPath,
) -> Vec<RoutePiece> {
    let Some(found) = path_match(context, path, field) else { return Vec::new() };
    let found = Match { path: found, index, implied: false };
    let cluster = cluster(context, view, path.backend.as_ref(), &field.field("backend"));
    let websocket = is_websocket(context, path);
    routes(context, host, found, cluster, websocket, field)
}

/// What stands for paths of a host that lie past a limit: 503 where no other path takes a request.
fn left_out(context: &Context<'_>, host: &Host, index: usize, field: &FieldPath) -> Vec<RoutePiece> {
    let found = Match { path: PathMatch::Prefix(Path::root()), index, implied: true };
    routes(context, host, found, None, false, field)
}

struct Match {
    path: PathMatch,
    index: usize,
    implied: bool,
}

fn host(context: &mut Context<'_>, text: Option<&str>, field: &FieldPath) -> Option<Host> {
    if text == Some("*") {
        let origin = context.subject.at(field.field("host"));
        let why = "`*` alone is not a host; the rule is served for every host";
        context.verdicts.push(Verdict::new(Code::IngressHostAny, origin, why));
    }
    Host::parse(text.unwrap_or_default())
        .map_err(|error| {
            let origin = context.subject.at(field.field("host"));
            context.verdicts.push(Verdict::new(Code::IngressHost, origin, error.to_string()));
        })
        .ok()
}

fn is_websocket(context: &Context<'_>, path: &HttpPath) -> bool {
    let path = path.path.as_deref().unwrap_or("/");
    context.annotations.websocket_paths.contains(path)
}

/// One path on both listeners. Whether the host has TLS at all is found in assembly: another Ingress may bring it.
fn routes(
    context: &Context<'_>,
    host: &Host,
    found: Match,
    cluster: Option<ClusterId>,
    websocket: bool,
    field: &FieldPath,
) -> Vec<RoutePiece> {
    let annotations = &context.annotations;
    // The proof must be found over plaintext, whatever the rest does.
    let is_acme = found.path.is_acme();
    let route = |action: Action| {
        Arc::new(Route {
            path: found.path.clone(),
            conditions: Default::default(),
            depth: Depth::OneLabel,
            action,
            policy: Default::default(),
            precedence: context.precedence(found.index, found.implied),
            origin: context.subject.at(field.clone()),
            fraction: None,
            combined: None,
        })
    };
    let served = route(served(context, cluster, websocket));
    // Where paths answer 503, nobody is sent to HTTPS for it.
    let plain = if is_acme || (context.refused && annotations.force_https) {
        Some(served.clone())
    } else if annotations.force_https {
        Some(route(Action::Redirect(Redirect::to_https(context.settings.https_port))))
    } else {
        annotations.allow_http.then(|| served.clone())
    };
    let piece = |listener, route| RoutePiece { listener, host: host.clone(), route };
    let plain = plain.map(|route| piece(ListenerId::http(), route));
    plain.into_iter().chain([piece(ListenerId::https(), served)]).collect()
}

fn served(context: &Context<'_>, cluster: Option<ClusterId>, websocket: bool) -> Action {
    let cluster = cluster.filter(|_| !context.refused);
    let Some((cluster, backend)) = cluster.as_ref().and_then(|cluster| Some((cluster, cluster.service()?))) else {
        return Action::DirectResponse(DirectResponse::unavailable());
    };
    let annotations = &context.annotations;
    let port = backend.port.to_string();
    let own = [
        ("CONTOUR_NAMESPACE", &*backend.namespace),
        ("CONTOUR_SERVICE_NAME", &*backend.service),
        ("CONTOUR_SERVICE_PORT", &*port),
    ];
    let request_headers = context.settings.request_headers.under(Default::default(), &own).into();
    let response_headers = context.settings.response_headers.under(Default::default(), &own).into();
    let backend = WeightedCluster { request_headers, response_headers, ..WeightedCluster::new(cluster.clone(), 1) };
    Action::Forward(Box::new(Forward {
        clusters: vec![backend],
        timeout: annotations.response_timeout,
        retry: annotations.retry.clone().map(Box::new),
        websocket,
        ..Default::default()
    }))
}

fn warn_about_the_whole(context: &mut Context<'_>, pieces: &[RoutePiece], tls: &[TlsPiece]) {
    let spec = &context.object.spec;
    if spec.rules.is_empty() && matches!(spec.default_backend.get(), Ok(None)) {
        let why = "neither rules nor a default backend is set";
        context.verdicts.push(Verdict::new(Code::IngressEmpty, context.subject.at("spec"), why));
    }
    if context.annotations.force_https && tls.is_empty() && !pieces.is_empty() && spec.tls.is_empty() {
        let field = FieldPath::annotation(crate::annotations::FORCE_HTTPS);
        let why = "requests are redirected to HTTPS, but no host of this Ingress has TLS";
        context.verdicts.push(Verdict::new(Code::RedirectWithoutTls, context.subject.at(field), why));
    }
}

/// What makes a path of no particular type a regular expression, as Contour decides it, and with the characters that
/// cannot stand in a path but are common in patterns.
const REGEX: &[char] = &['^', '+', '*', '[', ']', '%', '$', '|', '\\', '{', '}'];

/// The match; nothing, and a verdict, where the path cannot be matched.
fn path_match(context: &mut Context<'_>, path: &HttpPath, field: &FieldPath) -> Option<PathMatch> {
    let text = match path.path.as_deref() {
        None | Some("") => "/",
        Some(text) => text,
    };
    let found = match &path.path_type {
        Some(PathType::Exact) => plain(text).map(PathMatch::Exact),
        Some(PathType::Prefix) => plain(text).map(|path| PathMatch::below(&path)),
        None | Some(PathType::ImplementationSpecific) if text.contains(REGEX) => {
            Regex::parse(text).map(PathMatch::Regex).map_err(|error| (Code::IngressRegex, "path", error.to_string()))
        }
        None | Some(PathType::ImplementationSpecific) => plain(text).map(PathMatch::Prefix),
        Some(PathType::Unknown(word)) => Err((Code::PathType, "pathType", format!("unknown path type `{word}`"))),
    };
    found
        .map_err(|(code, name, why)| {
            context.verdicts.push(Verdict::new(code, context.subject.at(field.field(name)), why))
        })
        .ok()
}

fn plain(text: &str) -> Result<Path, (Code, &'static str, String)> {
    Path::parse(text).map_err(|error| (Code::IngressPath, "path", error.to_string()))
}

/// The cluster; nothing, and a verdict, where there is none.
fn cluster(
    context: &mut Context<'_>,
    view: &mut impl View,
    backend: Option<&Backend>,
    field: &FieldPath,
) -> Option<ClusterId> {
    let found = match backend {
        Some(Backend { service: Some(service), .. }) => {
            let field = field.field("service");
            port(&service.port).map_err(|rejection| rejection.at(&context.subject, field.field("port"))).and_then(
                |port| {
                    let cluster = resolve::backend(view, &context.object.meta.namespace, &service.name, &port)
                        .map_err(|rejection| rejection.at(&context.subject, part(&field, &rejection, &port)))?;
                    let presented = resolve::presenting(view, cluster, context.settings.client_certificate.as_ref());
                    context.is_pending |=
                        presented.as_ref().is_err_and(|rejection| rejection.code == Code::SecretPending);
                    presented.map_err(|rejection| rejection.at(&context.subject, field))
                },
            )
        }
        Some(Backend { resource: Some(resource), .. }) => {
            let why = format!("{} `{}` is not supported as a backend", resource.kind, resource.name);
            Err(Verdict::new(Code::ResourceBackend, context.subject.at(field.field("resource")), why))
        }
        _ => {
            Err(Verdict::new(Code::IngressBackendMissing, context.subject.at(field.clone()), "the backend is missing"))
        }
    };
    found.map_err(|verdict| context.verdicts.push(verdict)).ok()
}

/// Whether the name or the port of the Service is what is wrong.
fn part(service: &FieldPath, rejection: &Rejection, port: &PortRef) -> FieldPath {
    match (rejection.code, port) {
        (Code::ServicePortNotFound | Code::ServicePortNotTcp, PortRef::Name(_)) => service.field("port").field("name"),
        (Code::ServicePortNotFound | Code::ServicePortNotTcp, PortRef::Number(_)) => {
            service.field("port").field("number")
        }
        _ => service.field("name"),
    }
}

fn port(port: &ServiceBackendPort) -> Result<PortRef, Rejection> {
    match (&port.name, port.number) {
        (Some(name), None | Some(0)) => Ok(PortRef::Name(name.clone())),
        (None, Some(number)) => u16::try_from(number).map(PortRef::Number).map_err(|_| {
            Rejection::new(Code::ServicePortNotFound, format!("must be a port number from 1 to 65535, not {number}"))
        }),
        (None, None) => Err(Rejection::new(Code::ServicePortNotFound, "neither number nor name is set")),
        (Some(_), Some(_)) => Err(Rejection::new(Code::ServicePortNotFound, "number and name are mutually exclusive")),
    }
}
