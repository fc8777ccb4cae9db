//! A Host: a name on each Listener that binds it, its certificate, and what becomes of requests that did not come over HTTPS.
//!
//! Routes are not its own: it takes those of Mappings, by its name and its selector. Of two Hosts with one name on a Listener the older
//! is served. A certificate that cannot be used takes the TLS of the Host and nothing else.
//!
//! A Host for a part of a name, or for a name with a port, is a [part](ConditionalHost) of the virtual host that has its requests. TLS
//! knows whole names and `*.` in front of them, and no ports: the certificate of a Host with a port is that of its name, and a
//! Host for a part of a name has no TLS. Over TLS its requests answer 503, so that no wider Host has them, which may ask less of clients.

pub(crate) mod tls;

use crate::{
    BoundListener, EmissaryView, POOL, Problem, Problems, Settings,
    hostname::{self, Hostname},
    listener,
    listeners::Connections,
    precedence,
    status::{CERTIFICATE_SOURCE, Source},
    tcp_mapping,
};
use kinds::{
    emissary::{self, host::InsecureAction as Action},
    kind,
};
use model::{
    Code, Host, ObjectRef, Origin, Route, Translation,
    route::{self, Conditions, Depth, DirectResponse, Path, PathMatch},
    shared_routes::{ConditionalHost, InsecureAction, Labels, RouteSelector},
    status::{Scope, StatusFacts, StatusValue},
    tls::TlsMode,
    translation::{Covers, RoutePiece, TlsPiece},
};
use std::{mem::take, sync::Arc};

/// What a Host asks for.
pub fn translate(object: &emissary::Host, view: &mut impl EmissaryView, settings: &Settings) -> Translation {
    let subject = ObjectRef::new(kind::HOST, object.meta.namespace.clone(), object.meta.name.clone());
    let mut problems = Problems::new(&subject);
    let mut translation = Translation::empty(subject.clone());
    let host = name(object, &mut problems);
    let selector = selector(object, &mut problems);
    let action = insecure_action(object, settings, &mut problems);
    ignored(object, &mut problems);
    // A wider Host may ask less of clients: what cannot be served is none of its requests.
    let unavailable_for = match (problems.is_refused(), problems.foreign(&object.meta, settings)) {
        (true, _) => Some("spec"),
        (false, true) => Some("metadata.annotations"),
        (false, false) => None,
    };
    let shown = host.as_ref().map(|host| shown(object, host, view, settings, &mut problems)).unwrap_or_default();
    if shown.is_pending {
        translation.pending.push(subject.clone());
    }
    let source = match (&shown.termination, shown.is_asked) {
        (Some(_), _) => Source::Other,
        (None, true) => Source::Unknown,
        (None, false) => Source::None,
    };
    let listeners = view.listeners();
    let mut is_bound = false;
    if let Some(host) = host {
        for bound in listeners.binding(&object.meta) {
            is_bound = true;
            if let Some((first, found)) = older(object, &host, bound, view, settings) {
                let for_port =
                    if found == host { String::new() } else { format!(", which is for {found} at every port") };
                let why = format!(
                    "Duplicate Host {host}; keeping definition from {}/{}{for_port}",
                    first.namespace, first.name
                );
                problems.add(Problem::new(Code::EmissaryHostDuplicate, "hostname", why));
                continue;
            }
            let passed_on = bound.is_tls && shown.is_asked && host.has_server_name();
            let passed_on = passed_on.then(|| tcp_mapping::in_place_of(object, &host.host, bound, view, settings));
            let passed_on = passed_on.flatten();
            if let Some(mapping) = &passed_on {
                let why = format!(
                    "on Listener {}/{} connections for {} are passed on by {mapping}",
                    bound.object.namespace, bound.object.name, host.host
                );
                problems.add(Problem::new(Code::EmissaryHostOverridden, "hostname", why));
            }
            let rival = match passed_on {
                None => of_same_server_name(object, &host, bound, &shown, view, settings),
                Some(_) => None,
            };
            if let Some(first) = &rival {
                let why = format!(
                    "Host {}/{} is older and has the same SNI name with a different certificate or TLS settings",
                    first.namespace, first.name
                );
                problems.add(Problem::new(Code::EmissaryHostTls, "hostname", why));
            }
            let asked =
                HostOnListeners { selector: &selector, shown: &shown, is_closed: rival.is_some(), unavailable_for };
            // A TCPMapping has connections with TLS.
            let own = bound.connections(action).filter(|it| !it.is_tls || passed_on.is_none());
            own.for_each(|connections| add(object, &host, connections, &asked, &mut translation));
        }
        if !is_bound {
            let why = match listeners.served.len() {
                0 => "No active listeners at all; check your Listener and Host configuration".to_owned(),
                count => format!("none of the {count} Listeners binds it: check their hostBinding"),
            };
            problems.add(Problem::new(Code::EmissaryHostUnbound, "hostname", why));
        }
    }
    let values = vec![(CERTIFICATE_SOURCE, StatusValue::text(source.word()))];
    let facts = StatusFacts { object: Scope { values, ..Scope::default() }, lists: Vec::new() };
    translation.facts = Some(facts.into());
    translation.verdicts = problems.into_verdicts();
    translation.sorted()
}

/// What a Host asks for on each of its Listeners.
struct HostOnListeners<'h> {
    selector: &'h Option<Labels>,
    shown: &'h tls::Shown,
    /// Whether its TLS is not served here, because another Host's is.
    is_closed: bool,
    /// The field for which its requests answer 503, because it cannot be read or what would protect them is not there.
    unavailable_for: Option<&'static str>,
}

/// What a Host has on connections of a Listener.
fn add(
    object: &emissary::Host,
    name: &Hostname,
    connections: Connections<'_>,
    asked: &HostOnListeners<'_>,
    translation: &mut Translation,
) {
    let HostOnListeners { selector, shown, is_closed, unavailable_for } = *asked;
    let Connections { listener, is_tls, exposure } = connections;
    let (listener, host, labels) = (listener.clone(), name.host.clone(), selector.clone());
    let is_whole = name.is_host();
    let selector = RouteSelector { listener: listener.clone(), host: host.clone(), pool: POOL, labels, exposure };
    let part = |selector: Option<RouteSelector>, in_wider: bool| {
        let condition = name.condition.clone()?;
        let (listener, host, precedence) = (listener.clone(), host.clone(), precedence(&object.meta, 0));
        let origin = translation.subject.at("spec.hostname");
        Some(ConditionalHost { listener, host, condition, selector, in_wider, precedence, origin })
    };
    if is_tls {
        let mode = match (&shown.termination, shown.is_asked) {
            (None, false) => return,
            (Some(termination), _) if !is_closed => TlsMode::Http(termination.clone()),
            // Its connections are closed: they are none of a wider Host's, which may ask less of clients.
            (None, true) if is_whole && !is_closed => TlsMode::closed(),
            // Connections for its name are not its own, but its requests are.
            _ if !is_whole => {
                translation.conditional =
                    part(None, true).into_iter().chain(take(&mut translation.conditional)).collect();
                return;
            }
            _ => return,
        };
        translation.tls.push(TlsPiece {
            listener: listener.clone(),
            host: host.clone(),
            mode,
            fallback: None,
            covers: Covers { depth: Depth::AnyLabels, every_route: false },
            precedence: precedence(&object.meta, 0),
            origin: translation.subject.at("spec.tlsSecret"),
        });
        if shown.termination.is_none() {
            return;
        }
    }
    if is_whole {
        translation.hosts.push((listener.clone(), host.clone()));
        if let Some(field) = unavailable_for {
            let route = unavailable(object, translation.subject.at(field));
            translation.routes.push(RoutePiece { listener, host, route });
            return;
        }
        translation.selectors = take(&mut translation.selectors).into_iter().chain([selector]).collect();
        return;
    }
    // In plaintext there is always a virtual host that has its requests: the one for every name, if there is no other.
    if !is_tls {
        translation.hosts.push((listener.clone(), Host::Any));
    }
    let part = part(Some(selector).filter(|_| unavailable_for.is_none()), !is_tls);
    translation.conditional = take(&mut translation.conditional).into_iter().chain(part).collect();
}

/// The one route of a Host whose requests answer 503.
fn unavailable(object: &emissary::Host, origin: Origin) -> Arc<Route> {
    Arc::new(Route {
        path: PathMatch::Prefix(Path::root()),
        conditions: Conditions::default(),
        depth: Depth::AnyLabels,
        fraction: None,
        action: route::Action::DirectResponse(DirectResponse::unavailable()),
        policy: Default::default(),
        precedence: precedence(&object.meta, 0),
        origin,
        combined: None,
    })
}

/// The hostname as it is written; `*` if absent.
pub fn written_name(object: &emissary::Host) -> &str {
    object.spec.hostname.ok().and_then(Option::as_deref).filter(|name| !name.is_empty()).unwrap_or("*")
}

/// The hostname; nothing if it is none.
fn hostname_of(object: &emissary::Host) -> Option<Hostname> {
    hostname::parse(written_name(object)).ok()
}

/// The name that clients ask for in a TLS handshake, as Hosts are found by it.
pub fn server_name(object: &emissary::Host) -> String {
    hostname_of(object).map_or_else(|| written_name(object).to_owned(), |name| name.without_port())
}

fn name(object: &emissary::Host, problems: &mut Problems<'_>) -> Option<Hostname> {
    problems.read("hostname", &object.spec.hostname)?;
    let found = hostname::parse(written_name(object));
    problems.parsed(found.map_err(|why| Problem::new(Code::EmissaryHostname, "hostname", why)))
}

/// What clients of a Host are shown: nothing, where only a part of its names is known.
fn shown(
    object: &emissary::Host,
    name: &Hostname,
    view: &mut impl EmissaryView,
    settings: &Settings,
    problems: &mut Problems<'_>,
) -> tls::Shown {
    let shown = tls::shown(object, &name.host, view, settings, problems);
    if !shown.is_asked || name.has_server_name() {
        return shown;
    }
    let why = format!(
        "proxies choose a certificate by a whole name, or by `*.` and a name: over TLS, requests for {name} answer 503; write `*.` and a name"
    );
    problems.add(Problem::new(Code::EmissaryHostTls, "hostname", why));
    tls::Shown { termination: None, ..shown }
}

/// The older Hosts with this name in a TLS handshake, whatever their ports, that a Listener binds.
fn older_hosts(
    object: &emissary::Host,
    bound: &BoundListener,
    view: &mut impl EmissaryView,
) -> Vec<Arc<emissary::Host>> {
    let own = precedence(&object.meta, 0);
    let others = view.hosts_named(&server_name(object)).into_iter();
    let others = others.filter(|other| precedence(&other.meta, 0) < own && bound.binding.includes(&other.meta));
    let mut others: Vec<_> = others.collect();
    others.sort_by_key(|other| precedence(&other.meta, 0));
    others
}

fn reference(object: &emissary::Host) -> ObjectRef {
    ObjectRef::new(kind::HOST, object.meta.namespace.clone(), object.meta.name.clone())
}

/// An older Host that has these requests and that a Listener binds: one of this hostname; or, in another namespace, one of its names for
/// every port, which would lose what its clients send with a port, and its say about insecure requests there.
fn older(
    object: &emissary::Host,
    name: &Hostname,
    bound: &BoundListener,
    view: &mut impl EmissaryView,
    settings: &Settings,
) -> Option<(ObjectRef, Hostname)> {
    let others = older_hosts(object, bound, view).into_iter();
    let mut others = others.filter_map(|other| Some((hostname_of(&other)?, other)));
    let has_them = |found: &Hostname, other: &emissary::Host| {
        let is_elsewhere = other.meta.namespace != object.meta.namespace && !settings.cross_namespace;
        found == name || (is_elsewhere && !found.has_port() && found.to_string() == name.without_port())
    };
    others.find(|(found, other)| has_them(found, other)).map(|(found, other)| (reference(&other), found))
}

/// An older Host with another port that decides about TLS of the same name, and says something else.
fn of_same_server_name(
    object: &emissary::Host,
    name: &Hostname,
    bound: &BoundListener,
    own: &tls::Shown,
    view: &mut impl EmissaryView,
    settings: &Settings,
) -> Option<ObjectRef> {
    if !bound.is_tls || !own.is_asked || !name.has_server_name() {
        return None;
    }
    let decides = older_hosts(object, bound, view).into_iter().find_map(|other| {
        let other_name = hostname_of(&other)?;
        let subject = reference(&other);
        let shown = tls::shown(&other, &other_name.host, view, settings, &mut Problems::new(&subject));
        shown.termination.map(|termination| (subject, termination))
    });
    decides.filter(|(_, termination)| own.termination.as_ref() != Some(termination)).map(|(other, _)| other)
}

/// The labels of the Mappings that it takes.
fn selector(object: &emissary::Host, problems: &mut Problems<'_>) -> Option<Labels> {
    let named = problems.optional("mappingSelector", &object.spec.mapping_selector);
    let deprecated = problems.optional("selector", &object.spec.selector);
    if named.is_some() && deprecated.is_some() {
        let why = "Cannot specify both mappingSelector and selector. Using mappingSelector and ignoring selector.";
        problems.no_effect("selector", why);
    }
    let (field, selector) = match (named, deprecated) {
        (Some(selector), _) => ("mappingSelector", selector),
        (None, selector) => ("selector", selector?),
    };
    listener::labels(selector, field, problems)
}

/// What becomes of requests that did not come over HTTPS; nothing where they are served.
fn insecure_action(
    object: &emissary::Host,
    settings: &Settings,
    problems: &mut Problems<'_>,
) -> Option<InsecureAction> {
    let redirect = InsecureAction::Redirect(settings.https_port);
    let policy = problems.optional("requestPolicy", &object.spec.request_policy);
    let insecure = policy.and_then(|policy| policy.insecure.as_ref());
    if insecure.is_some_and(|insecure| insecure.additional_port.is_some()) {
        problems.no_effect("requestPolicy.insecure.additionalPort", "a Listener opens each port");
    }
    match insecure.and_then(|insecure| insecure.action.as_ref()) {
        None | Some(Action::Redirect) => Some(redirect),
        Some(Action::Reject) => Some(InsecureAction::Reject),
        Some(Action::Route) => None,
        Some(Action::Unknown(word)) => {
            let why = format!("must be Redirect, Reject or Route, not `{word}`; requests are rejected");
            problems.add(Problem::new(Code::EmissaryField, "requestPolicy.insecure.action", why));
            Some(InsecureAction::Reject)
        }
    }
}

fn ignored(object: &emissary::Host, problems: &mut Problems<'_>) {
    let acme = problems.optional("acmeProvider", &object.spec.acme_provider);
    let authority = acme.map(|acme| acme.authority.as_deref().unwrap_or_default());
    if authority.is_some_and(|authority| authority != "none") {
        let why = "Sesame requests no certificates: let cert-manager or another issuer write the Secret of tlsSecret";
        problems.add(Problem::new(Code::EmissaryAcme, "acmeProvider", why));
    }
    if problems.optional("previewUrl", &object.spec.preview_url).is_some() {
        problems.no_effect("previewUrl", "preview URLs are not supported");
    }
}
