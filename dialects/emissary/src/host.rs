//! A Host: a name on each Listener that binds it, its certificate, and what becomes of requests that did not come over HTTPS.
//!
//! Routes are not its own: it takes those of Mappings, by its name and its selector. Of two Hosts with one name on a Listener the older
//! is served. A certificate that cannot be used takes the TLS of the Host and nothing else.

pub(crate) mod tls;

use crate::{
    BoundListener, EmissaryView, POOL, Problem, Problems, Settings, hostname, listener, precedence,
    status::{CERTIFICATE_SOURCE, Source},
};
use kinds::{
    emissary::{self, host::InsecureAction as Action},
    kind,
};
use model::{
    Code, Host, ObjectRef, Translation,
    route::Depth,
    shared_routes::{InsecureAction, Labels, RouteSelector},
    status::{Scope, StatusFacts, StatusValue},
    tls::TlsMode,
    translation::{Covers, TlsPiece},
};

/// What a Host asks for.
pub fn translate(object: &emissary::Host, view: &mut impl EmissaryView, settings: &Settings) -> Translation {
    let subject = ObjectRef::new(kind::HOST, object.meta.namespace.clone(), object.meta.name.clone());
    let mut problems = Problems::new(&subject);
    let mut translation = Translation::empty(subject.clone());
    let host = name(object, &mut problems);
    let selector = selector(object, &mut problems);
    let action = insecure_action(object, settings, &mut problems);
    ignored(object, &mut problems);
    let is_sound = !problems.is_refused();
    let shown = host.as_ref().map(|host| tls::shown(object, host, view, settings, &mut problems)).unwrap_or_default();
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
    if let Some(host) = host.filter(|_| is_sound) {
        for bound in listeners.binding(&object.meta) {
            is_bound = true;
            if let Some(first) = older(object, bound, view) {
                let why = format!("Duplicate Host {host}; keeping definition from {}/{}", first.namespace, first.name);
                problems.tell(Problem::new(Code::EmissaryHostDuplicate, "hostname", why));
                continue;
            }
            add(object, &host, bound, &selector, action, &shown, &mut translation);
        }
        if !is_bound {
            let why = match listeners.served.len() {
                0 => "No active listeners at all; check your Listener and Host configuration".to_owned(),
                count => format!("none of the {count} Listeners binds it: check their hostBinding"),
            };
            problems.tell(Problem::new(Code::EmissaryHostUnbound, "hostname", why));
        }
    }
    let values = vec![(CERTIFICATE_SOURCE, StatusValue::text(source.word()))];
    let facts = StatusFacts { object: Scope { values, ..Scope::default() }, lists: Vec::new() };
    translation.facts = Some(facts.into());
    translation.verdicts = problems.into_verdicts();
    translation.sorted()
}

/// What a Host has on a Listener.
fn add(
    object: &emissary::Host,
    host: &Host,
    bound: &BoundListener,
    selector: &Option<Labels>,
    action: Option<InsecureAction>,
    shown: &tls::Shown,
    translation: &mut Translation,
) {
    let listener = bound.id.clone();
    if bound.is_tls {
        let mode = match (&shown.termination, shown.is_asked) {
            (Some(termination), _) => TlsMode::Http(termination.clone()),
            // Its connections are closed: they are none of a wider Host's, which may ask less of clients.
            (None, true) => TlsMode::Tcp(tls::closed()),
            (None, false) => return,
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
    translation.hosts.push((listener.clone(), host.clone()));
    let (host, labels, exposure) = (host.clone(), selector.clone(), bound.exposure(action));
    let mut selectors = std::mem::take(&mut translation.selectors).into_vec();
    selectors.push(RouteSelector { listener, host, pool: POOL, labels, exposure });
    translation.selectors = selectors.into();
}

/// The hostname as it is written; `*` if absent.
pub fn written_name(object: &emissary::Host) -> &str {
    object.spec.hostname.ok().and_then(Option::as_deref).filter(|name| !name.is_empty()).unwrap_or("*")
}

fn name(object: &emissary::Host, problems: &mut Problems<'_>) -> Option<Host> {
    problems.read("hostname", &object.spec.hostname)?;
    let text = written_name(object);
    let found = match hostname::parse(text) {
        Ok(found) if found.is_host() => Ok(found.host),
        Ok(_) => {
            Err(format!("a Host for `{text}` is not served yet: write a name, `*.` and a name, or `*`, without a port"))
        }
        Err(why) => Err(why),
    };
    problems.parsed(found.map_err(|why| Problem::new(Code::EmissaryHostname, "hostname", why)))
}

/// An older Host of this name that a Listener binds.
fn older(object: &emissary::Host, bound: &BoundListener, view: &mut impl EmissaryView) -> Option<ObjectRef> {
    let own = precedence(&object.meta, 0);
    let others = view.hosts_named(written_name(object)).into_iter();
    let others = others.filter(|other| precedence(&other.meta, 0) < own && bound.binding.includes(&other.meta));
    let first = others.min_by(|a, b| precedence(&a.meta, 0).cmp(&precedence(&b.meta, 0)))?;
    Some(ObjectRef::new(kind::HOST, first.meta.namespace.clone(), first.meta.name.clone()))
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
            problems.tell(Problem::new(Code::EmissaryField, "requestPolicy.insecure.action", why));
            Some(InsecureAction::Reject)
        }
    }
}

fn ignored(object: &emissary::Host, problems: &mut Problems<'_>) {
    let acme = problems.optional("acmeProvider", &object.spec.acme_provider);
    let authority = acme.map(|acme| acme.authority.as_deref().unwrap_or_default());
    if authority.is_some_and(|authority| authority != "none") {
        let why =
            "Sesame requests no certificates: let cert-manager, or whoever else does, write the Secret of tlsSecret";
        problems.tell(Problem::new(Code::EmissaryAcme, "acmeProvider", why));
    }
    if problems.optional("previewUrl", &object.spec.preview_url).is_some() {
        problems.no_effect("previewUrl", "preview URLs are not supported");
    }
}
