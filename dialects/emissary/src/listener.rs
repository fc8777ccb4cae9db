//! A Listener: a port, the protocols on it, and the Hosts that it binds.
//!
//! In: the object. Out: what it [asks for](RequestedListener), or what is wrong with it. On the port of one of the shared fleet's own listeners it
//! is that listener, with its settings: what differs is told. On any other port it claims a listener, with settings of its own. One for
//! HTTP over TLS claims another for the plaintext connections of its port. One for HTTP/3 always claims a listener, as it has a port of UDP;
//! a Listener for HTTPS with the same number tells clients about it. Where there is no Host at all it serves every name itself,
//! as Emissary's default Host does.

use crate::{
    EmissaryView, POOL, Problem, Problems, Settings,
    listeners::{Binding, BoundListener, Connections, Security},
    mapping::upstream::in_stats,
    precedence,
};
use kinds::{
    emissary::{
        self, Selector,
        listener::{NamespaceFrom, Protocol, SecurityModel, StackProtocol},
    },
    kind,
};
use model::{
    Code, FleetId, Host, ListenerId, ObjectRef, PortProtocol, Translation,
    listener::{ListenerClaim, PortOverrides},
    route::Depth,
    shared_routes::{InsecureAction, Labels, RouteSelector},
    tls::{CertificateRef, Termination, TlsMode},
    translation::{Covers, TlsPiece},
};
use std::sync::Arc;

/// The Secret with the certificate of the default Host, in the namespace of Sesame.
pub const FALLBACK_SECRET: &str = "fallback-self-signed-cert";

/// The port that clients reach HTTPS at, where nothing else is said.
const HTTPS: u16 = 443;

/// What a Listener asks for.
pub struct RequestedListener {
    /// Its port.
    pub port: u16,
    /// What Hosts need to know about it.
    pub bound: BoundListener,
}

/// A Listener that was read.
pub struct Read<'o> {
    /// What it asks for, if it can be served.
    pub asked: Option<RequestedListener>,
    /// What is wrong with it.
    pub problems: Problems<'o>,
}

/// Reads a Listener.
pub fn read<'o>(object: &emissary::Listener, subject: &'o ObjectRef, settings: &Settings) -> Read<'o> {
    let mut problems = Problems::new(subject);
    let asked = asked(object, subject, settings, &mut problems);
    let asked = asked.filter(|_| !problems.is_refused());
    Read { asked, problems }
}

fn asked(
    object: &emissary::Listener,
    subject: &ObjectRef,
    settings: &Settings,
    problems: &mut Problems<'_>,
) -> Option<RequestedListener> {
    let spec = &object.spec;
    let port = problems.optional("port", &spec.port).copied();
    let port = problems.parsed(
        port.and_then(|port| u16::try_from(port).ok().filter(|port| *port != 0))
            .ok_or_else(|| Problem::new(Code::EmissaryListener, "port", "must be a port number from 1 to 65535")),
    );
    let stack = stack(object, problems);
    let security = security(object, problems);
    let binding = binding(object, problems);
    let hops = count(problems, "l7Depth", &spec.l7_depth, 0);
    let streams = count(problems, "http2MaxConcurrentStreams", &spec.http2_max_concurrent_streams, 1);
    let prefix = problems.optional("statsPrefix", &spec.stats_prefix).filter(|prefix| !prefix.is_empty());
    let stats_prefix = prefix.map(|prefix| in_stats(prefix));
    let (port, stack, security, binding) = (port?, stack?, security?, binding?);
    if stats_prefix.is_some() && !stack.is_http {
        problems.no_effect("statsPrefix", "connections of TCPMappings are counted by their clusters");
    }
    let own = if stack.is_tls { &settings.own.https } else { &settings.own.http };
    // The shared listeners have ports of TCP.
    let own = own.as_ref().filter(|own| own.port == port && !stack.is_quic);
    let (id, claim, trusted_hops) = match own {
        Some(own) => {
            let own = &own.http;
            if !stack.is_http && !stack.is_tls {
                let why = format!("port {port} is that of the shared listener for HTTP");
                problems.refuse(Problem::new(Code::EmissaryListener, "port", why));
            }
            if own.proxy_protocol != stack.is_proxied {
                let why = format!(
                    "port {port} is that of the shared listener, on which connections {} with a PROXY protocol preamble",
                    if own.proxy_protocol { "begin" } else { "do not begin" }
                );
                problems.refuse(Problem::new(Code::EmissaryListener, "protocol", why));
            }
            let differs = [
                ("l7Depth", hops.filter(|hops| *hops != own.trusted_hops), own.trusted_hops),
                ("http2MaxConcurrentStreams", streams.filter(|most| *most != own.max_streams), own.max_streams),
            ];
            for (field, wanted, found) in differs {
                if wanted.is_some() {
                    let why = format!("port {port} is that of the shared listener, whose settings say {found}");
                    problems.add(Problem::new(Code::EmissaryListenerSettings, field, why));
                }
            }
            if stats_prefix.is_some() {
                let why = format!("port {port} is that of the shared listener, whose statistics have its own name");
                problems.add(Problem::new(Code::EmissaryListenerSettings, "statsPrefix", why));
            }
            (if stack.is_tls { ListenerId::https() } else { ListenerId::http() }, None, own.trusted_hops)
        }
        None => {
            let protocol = match stack {
                Stack { is_quic: true, .. } => PortProtocol::Quic,
                Stack { is_tls: true, .. } => PortProtocol::Tls,
                Stack { is_http: true, .. } => PortProtocol::Http,
                _ => PortProtocol::Tcp,
            };
            let overrides = PortOverrides {
                trusted_hops: Some(hops.unwrap_or_default()),
                proxy_protocol: Some(stack.is_proxied),
                max_streams: streams,
                stats_prefix,
                public_port: stack.is_quic.then(|| settings.https_port.unwrap_or(HTTPS)),
                http: None,
            };
            let id = ListenerId::new(FleetId::Shared, name(subject));
            let claim = ListenerClaim { overrides, ..claim_of(object, subject, &id, port, protocol, settings) };
            (id, Some(claim), hops.unwrap_or_default())
        }
    };
    let plaintext = (stack.is_tls && stack.is_http && !stack.is_quic).then(|| {
        let own = ListenerId::new(FleetId::Shared, format!("{}/plaintext", name(subject)));
        let overrides = claim.as_ref().map(|claim| claim.overrides.clone()).unwrap_or_default();
        let plaintext = claim_of(object, subject, &own, port, PortProtocol::Http, settings);
        ListenerClaim { plaintext_of: Some(id.clone()), overrides, ..plaintext }
    });
    let trusts_forwarded = trusted_hops > 0;
    let (object, Stack { is_tls, is_http, is_quic, .. }) = (subject.clone(), stack);
    Some(RequestedListener {
        port,
        bound: BoundListener {
            object,
            id,
            claim,
            plaintext,
            port,
            is_tls,
            is_http,
            is_quic,
            security,
            trusts_forwarded,
            binding,
        },
    })
}

/// The name of the listener that an object claims.
fn name(subject: &ObjectRef) -> String {
    format!("listener/{}/{}", subject.namespace, subject.name)
}

/// The claim of a listener for every host, without settings of its own.
fn claim_of(
    object: &emissary::Listener,
    subject: &ObjectRef,
    listener: &ListenerId,
    port: u16,
    protocol: PortProtocol,
    settings: &Settings,
) -> ListenerClaim {
    ListenerClaim {
        listener: listener.clone(),
        address: settings.address,
        port,
        protocol,
        host: Host::Any,
        owner: None,
        plaintext_of: None,
        overrides: PortOverrides::default(),
        precedence: precedence(&object.meta, 0),
        origin: subject.at("spec.port"),
    }
}

fn count(problems: &mut Problems<'_>, field: &str, value: &kinds::Checked<Option<i64>>, least: u32) -> Option<u32> {
    let value = *problems.optional(field, value)?;
    let fits = u32::try_from(value).ok().filter(|value| (least..=i32::MAX as u32).contains(value));
    problems.parsed(fits.ok_or_else(|| {
        Problem::new(Code::EmissaryListener, field, format!("must be a number from {least} on, not {value}"))
    }))
}

/// What is spoken on a Listener.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Stack {
    is_http: bool,
    is_tls: bool,
    is_proxied: bool,
    is_quic: bool,
}

fn stack(object: &emissary::Listener, problems: &mut Problems<'_>) -> Option<Stack> {
    let spec = &object.spec;
    let protocol = problems.optional("protocol", &spec.protocol);
    let written = problems.optional("protocolStack", &spec.protocol_stack);
    let (field, stack): (_, Vec<StackProtocol>) = match (protocol, written) {
        (Some(_), Some(_)) => {
            let why = "Cannot specify both protocol and protocolStack";
            problems.refuse(Problem::new(Code::EmissaryListener, "protocolStack", why));
            return None;
        }
        (None, Some(stack)) => ("protocolStack", stack.to_vec()),
        (Some(protocol), None) => ("protocol", of_protocol(protocol).to_vec()),
        (None, None) => {
            if !problems.is_refused() {
                problems.refuse(Problem::new(
                    Code::EmissaryListener,
                    "protocol",
                    "neither protocol nor protocolStack is set",
                ));
            }
            return None;
        }
    };
    use StackProtocol::{Http, Proxy, Tcp, Tls, Udp};
    match &stack[..] {
        [Http, Tcp] => Some(Stack { is_http: true, ..Stack::default() }),
        [Tls, Http, Tcp] => Some(Stack { is_http: true, is_tls: true, ..Stack::default() }),
        [Proxy, Http, Tcp] => Some(Stack { is_http: true, is_proxied: true, ..Stack::default() }),
        // A PROXY header inside of TLS is none that a load balancer sends: whoever writes it means one before TLS.
        [Proxy, Tls, Http, Tcp] | [Tls, Proxy, Http, Tcp] => {
            Some(Stack { is_http: true, is_tls: true, is_proxied: true, ..Stack::default() })
        }
        [Tcp] => Some(Stack::default()),
        [Proxy, Tcp] => Some(Stack { is_proxied: true, ..Stack::default() }),
        [Tls, Tcp] => Some(Stack { is_tls: true, ..Stack::default() }),
        [Proxy, Tls, Tcp] | [Tls, Proxy, Tcp] => Some(Stack { is_tls: true, is_proxied: true, ..Stack::default() }),
        // QUIC has TLS in it, wherever it is written, and no preamble.
        [Tls, Http, Udp] => Some(Stack { is_http: true, is_tls: true, is_quic: true, ..Stack::default() }),
        [.., Udp] => {
            let why = "UDP is only for HTTP/3, which requires TLS: write `TLS, HTTP, UDP`";
            problems.refuse(Problem::new(Code::EmissaryListener, field, why));
            None
        }
        other => {
            let words: Vec<_> = other.iter().map(StackProtocol::as_str).collect();
            let why = format!("`{}` is not a stack of protocols that ends in TCP or UDP", words.join(", "));
            problems.refuse(Problem::new(Code::EmissaryListener, field, why));
            None
        }
    }
}

fn of_protocol(protocol: &Protocol) -> Vec<StackProtocol> {
    use StackProtocol::{Http, Proxy, Tcp, Tls};
    match protocol {
        Protocol::Http => vec![Http, Tcp],
        Protocol::Https => vec![Tls, Http, Tcp],
        Protocol::HttpProxy => vec![Proxy, Http, Tcp],
        Protocol::HttpsProxy => vec![Tls, Proxy, Http, Tcp],
        Protocol::Tcp => vec![Tcp],
        Protocol::Tls => vec![Tls, Tcp],
        Protocol::Udp | Protocol::Unknown(_) => vec![StackProtocol::Unknown(protocol.as_str().into())],
    }
}

fn security(object: &emissary::Listener, problems: &mut Problems<'_>) -> Option<Security> {
    let model = problems.optional("securityModel", &object.spec.security_model);
    let found = model.and_then(Security::of);
    problems.parsed(found.ok_or_else(|| {
        let word = model.map_or("", SecurityModel::as_str);
        let why = format!("must be XFP, SECURE or INSECURE, not `{word}`");
        Problem::new(Code::EmissaryListener, "securityModel", why)
    }))
}

fn binding(object: &emissary::Listener, problems: &mut Problems<'_>) -> Option<Binding> {
    let Some(written) = problems.optional("hostBinding", &object.spec.host_binding) else {
        problems.refuse(Problem::new(Code::EmissaryListener, "hostBinding", "hostBinding is missing"));
        return None;
    };
    if written.namespace.is_none() && written.selector.is_none() {
        let why = "neither namespace nor selector is set";
        problems.refuse(Problem::new(Code::EmissaryListener, "hostBinding", why));
    }
    let own = || Some(object.meta.namespace.clone());
    let namespace = match written.namespace.as_ref().map(|namespace| &namespace.from) {
        None | Some(Some(NamespaceFrom::All)) => None,
        Some(None | Some(NamespaceFrom::Itself)) => own(),
        Some(Some(from @ (NamespaceFrom::Selector | NamespaceFrom::Unknown(_)))) => {
            let why = format!("`{from}` is not yet supported; the Listener binds Hosts of its own namespace");
            problems.add(Problem::new(Code::EmissaryListener, "hostBinding.namespace.from", why));
            own()
        }
    };
    let labels = written.selector.as_ref().and_then(|selector| labels(selector, "hostBinding.selector", problems));
    Some(Binding { namespace, labels })
}

/// The labels of a selector; nothing if it asks for none.
pub(crate) fn labels(selector: &Selector, field: &str, problems: &mut Problems<'_>) -> Option<Labels> {
    if !selector.match_expressions.is_empty() {
        let why = "matchExpressions have no effect; write matchLabels";
        problems.no_effect(&format!("{field}.matchExpressions"), why);
    }
    let labels = selector.match_labels.iter().map(|(name, value)| (Arc::from(&**name), Arc::from(&**value)));
    (!selector.match_labels.is_empty()).then(|| Labels::new(labels))
}

/// What a Listener asks for.
pub fn translate(object: &emissary::Listener, view: &mut impl EmissaryView, settings: &Settings) -> Translation {
    let subject = ObjectRef::new(kind::LISTENER, object.meta.namespace.clone(), object.meta.name.clone());
    let Read { asked, mut problems } = read(object, &subject, settings);
    let listeners = view.listeners();
    if let Some(why) = listeners.refused.get(&subject) {
        problems.refuse(Problem::new(Code::EmissaryListener, "port", why.clone()));
    }
    let mut translation = Translation::empty(subject.clone());
    if let Some(bound) = listeners.served(&subject).filter(|_| asked.is_some()) {
        translation.listeners = bound.claim.iter().chain(&bound.plaintext).cloned().collect();
        if bound.is_http && !view.has_hosts() {
            default_host(object, bound, view, settings, &mut translation);
        }
        if !bound.is_http && !view.tcp_plan().ports.contains_key(&bound.port) {
            let why = format!(
                "No matching Hosts/TCPMappings found, disabling! No TCPMapping has port {}, so its connections are closed",
                bound.port
            );
            problems.add(Problem::new(Code::EmissaryListenerUnused, "port", why));
        }
    }
    translation.verdicts = problems.into_verdicts();
    translation.sorted()
}

/// Every name, where there is no Host at all: in plaintext, or over TLS with the fallback certificate if there is one.
fn default_host(
    object: &emissary::Listener,
    bound: &BoundListener,
    view: &mut impl EmissaryView,
    settings: &Settings,
    translation: &mut Translation,
) {
    let secret = ObjectRef::new(kind::SECRET, &*settings.namespace, FALLBACK_SECRET);
    let found = resolve::certificate(view, &settings.namespace, &secret);
    if found.as_ref().is_err_and(|rejection| rejection.code == Code::SecretPending) {
        translation.pending.push(translation.subject.clone());
    }
    let has_certificate = found.is_ok();
    let action = has_certificate.then_some(InsecureAction::Redirect(settings.https_port));
    let mut selectors = Vec::new();
    for Connections { listener, is_tls, exposure } in bound.connections(action) {
        if is_tls && !has_certificate {
            continue;
        }
        let (listener, host) = (listener.clone(), Host::Any);
        translation.hosts.push((listener.clone(), host.clone()));
        if is_tls {
            translation.tls.push(TlsPiece {
                listener: listener.clone(),
                host: host.clone(),
                mode: TlsMode::Http(Termination::new(CertificateRef::Secret(secret.clone()), settings.tls)),
                fallback: None,
                covers: Covers { depth: Depth::AnyLabels, every_route: false },
                precedence: precedence(&object.meta, 0),
                origin: translation.subject.at(""),
            });
        }
        selectors.push(RouteSelector { listener, host, pool: POOL, labels: None, exposure });
    }
    translation.selectors = selectors.into();
}
