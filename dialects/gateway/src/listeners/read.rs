//! One listener as it is written.

use super::{Listener, Namespaces, Protocol, Refused, namespaces};
use crate::{GROUP, Settings, gateway::clients};
use kinds::{
    Checked, Gateway, Kind, List,
    gateway::{listener, listener::TlsMode},
    kind,
};
use model::{Code, FleetId, Host, ListenerId, ObjectRef, PortProtocol};
use std::{collections::BTreeSet, sync::Arc};

/// What holds for all listeners of a Gateway.
pub(super) struct Reader<'a> {
    pub gateway: &'a Gateway,
    pub settings: &'a Settings,
    pub fleet: FleetId,
}

impl Reader<'_> {
    /// The listeners of an object, where so many were read before. One whose name another has is left out: it cannot be told
    /// apart from it, and the API server takes no such object.
    pub fn all(&self, owner: &ObjectRef, listeners: &List<listener::Listener>, before: usize) -> Vec<Listener> {
        let mut names = BTreeSet::new();
        let good = listeners.good().filter(|(_, listener)| names.insert(&listener.name));
        let all = good.enumerate().map(|(at, (index, listener))| self.one(owner, index, listener, before + at));
        all.collect()
    }

    fn one(&self, owner: &ObjectRef, index: usize, listener: &listener::Listener, before: usize) -> Listener {
        let protocol = protocol(listener);
        let read = self.read(listener, &protocol, before);
        let name: Arc<str> = (&*listener.name).into();
        let (host, port, refused) = match read {
            Ok((protocol, host, port)) => {
                let refused = self.check(listener, protocol, &host, port).err();
                let keeps_host = protocol.on_port().has_hosts();
                (host, port, refused.map(|refused| Refused { keeps_host, ..refused }))
            }
            Err(refused) => (Host::Any, 0, Some(refused)),
        };
        let protocol = protocol.ok();
        let is_shared = self.fleet == FleetId::Shared;
        let bound = if is_shared { self.settings.bound(port) } else { port };
        let on_port = protocol.map(Protocol::on_port);
        let own = on_port.filter(|protocol| refused.is_none() && host == Host::Any && self.is_own(*protocol, bound));
        let id = match own {
            Some(PortProtocol::Http) => ListenerId::http(),
            Some(PortProtocol::Tls) => ListenerId::https(),
            _ => {
                let word = if owner.kind == kind::GATEWAY { "gateway" } else { "listenerset" };
                ListenerId::new(self.fleet.clone(), format!("{word}/{}/{}/{name}", owner.namespace, owner.name))
            }
        };
        let (kinds, wrong_kinds) = kinds(listener, protocol, &self.settings.disabled);
        let allowed = listener.allowed_routes.ok().and_then(Option::as_ref);
        let namespaces = namespaces::of_routes(allowed.and_then(|it| it.namespaces.as_ref()), &owner.namespace);
        Listener {
            owner: owner.clone(),
            index,
            name,
            id,
            is_claimed: own.is_none(),
            host,
            port,
            bound,
            protocol,
            kinds,
            wrong_kinds,
            namespaces: namespaces.unwrap_or(Namespaces::None),
            refused,
            overlaps: false,
        }
    }

    /// What is spoken on a listener, its hostname and its port.
    fn read(
        &self,
        listener: &listener::Listener,
        protocol: &Result<Protocol, Refused>,
        before: usize,
    ) -> Result<(Protocol, Host, u16), Refused> {
        if before >= super::LIMIT {
            let why = format!("the Gateway has {} listeners before it, with those of its ListenerSets", super::LIMIT);
            return Err(Refused { reason: "TooManyListeners", code: Code::GatewayLimit, ..Refused::value("", why) });
        }
        if !resolve::name::is_subdomain(&listener.name) {
            let why = "a name is a DNS subdomain: at most 253 lower-case letters, digits, `-` and `.`";
            return Err(Refused::value("name", why));
        }
        let protocol = protocol.clone()?;
        let port = u16::try_from(*value(&listener.port, "port")?).ok().filter(|port| *port > 0);
        let port = port.ok_or_else(|| Refused::value("port", "a port is a number from 1 to 65535"))?;
        let hostname = value(&listener.hostname, "hostname")?.as_deref().unwrap_or_default();
        let host = Host::parse(hostname).map_err(|error| Refused::value("hostname", error.to_string()))?;
        if matches!(protocol, Protocol::Tcp | Protocol::Udp) && host != Host::Any {
            return Err(Refused::value("hostname", "a TCP or UDP listener has no hostname"));
        }
        Ok((protocol, host, port))
    }

    /// Whether everything else about a listener can be read and is supported. It is not served otherwise, and no wider listener has
    /// its hostname: what cannot be done may be what protects that.
    fn check(&self, listener: &listener::Listener, protocol: Protocol, host: &Host, port: u16) -> Result<(), Refused> {
        let tls = value(&listener.tls, "tls")?.as_ref();
        match protocol.on_port() {
            PortProtocol::Tls if tls.is_none() => return Err(Refused::value("tls", "the protocol requires tls")),
            PortProtocol::Http | PortProtocol::Tcp | PortProtocol::Udp if tls.is_some() => {
                return Err(Refused::value("tls", "the protocol has no TLS"));
            }
            _ => {}
        }
        if let Some((option, _)) = tls.and_then(|tls| tls.options.iter().next()) {
            return Err(Refused::value("tls.options", format!("the option {option} is not supported")));
        }
        let allowed = value(&listener.allowed_routes, "allowedRoutes")?.as_ref();
        namespaces::of_routes(allowed.and_then(|allowed| allowed.namespaces.as_ref()), &Arc::default())
            .map_err(|why| Refused::value("allowedRoutes.namespaces", why))?;
        if value(&listener.filters, "filters")?.is_some() {
            return Err(Refused::value("filters", "filters of listeners are not supported"));
        }
        if protocol == Protocol::Https {
            self.frontend(host, port)?;
        }
        Ok(())
    }

    /// Whether a listener can ask for the client certificates that the Gateway asks for on its port: without what protects it, it is
    /// not served. The listener that all objects of the shared fleet attach to is no Gateway's alone: hosts of others on it have
    /// connections without client certificates, and routes of the Gateway for these hosts would be served over them.
    fn frontend(&self, host: &Host, port: u16) -> Result<(), Refused> {
        let asks = clients::of_port(self.gateway, port).map_err(|why| Refused::value("tls", why))?.is_some();
        if asks && *host == Host::Any && self.is_own(PortProtocol::Tls, self.settings.bound(port)) {
            let why = "spec.tls.frontend of the Gateway asks for client certificates on a port that Ingresses and HTTPProxies \
                       share: give the listener a hostname, or another port";
            return Err(Refused::value("hostname", why));
        }
        Ok(())
    }

    /// Whether the port is one that the shared fleet has by its settings.
    fn is_own(&self, protocol: PortProtocol, bound: u16) -> bool {
        self.fleet == FleetId::Shared && self.settings.own_ports.of(protocol) == Some(bound)
    }
}

fn value<'l, T>(value: &'l Checked<T>, field: &'static str) -> Result<&'l T, Refused> {
    value.get().map_err(|fault| Refused::value(field, fault.why.clone()))
}

fn protocol(listener: &listener::Listener) -> Result<Protocol, Refused> {
    let unsupported = |why: String| Refused { reason: "UnsupportedProtocol", ..Refused::value("protocol", why) };
    let mode = || match listener.tls.ok().and_then(Option::as_ref).and_then(|tls| tls.mode.as_ref()) {
        Some(TlsMode::Passthrough) => Ok(Protocol::TlsPassthrough),
        Some(TlsMode::Terminate) | None => Ok(Protocol::TlsTerminate),
        Some(TlsMode::Unknown(word)) => {
            Err(Refused::value("tls.mode", format!("{word} is neither Terminate nor Passthrough")))
        }
    };
    match value(&listener.protocol, "protocol")? {
        Some(listener::Protocol::Http) => Ok(Protocol::Http),
        Some(listener::Protocol::Https | listener::Protocol::ContourHttps) => match mode()? {
            Protocol::TlsPassthrough => Err(Refused::value(
                "tls.mode",
                "an HTTPS listener terminates TLS; TLS that is passed through is of protocol TLS",
            )),
            _ => Ok(Protocol::Https),
        },
        Some(listener::Protocol::Tls) => mode(),
        Some(listener::Protocol::Tcp) => Ok(Protocol::Tcp),
        Some(listener::Protocol::Udp) => Ok(Protocol::Udp),
        Some(listener::Protocol::Unknown(word)) => {
            Err(unsupported(format!("{word} is not supported; supported are HTTP, HTTPS, TLS, TCP and UDP")))
        }
        None => Err(unsupported("protocol is missing".to_owned())),
    }
}

/// The kinds of routes that may attach, and what is wrong with those that are asked for.
fn kinds(
    listener: &listener::Listener,
    protocol: Option<Protocol>,
    disabled: &[Kind],
) -> (Vec<Kind>, Option<Box<str>>) {
    let suitable = protocol.map_or(&[][..], Protocol::route_kinds);
    let suitable: Vec<Kind> = suitable.iter().copied().filter(|kind| !disabled.contains(kind)).collect();
    let asked = match listener.allowed_routes.ok().and_then(Option::as_ref) {
        Some(allowed) if !allowed.kinds.is_empty() => &allowed.kinds,
        _ => return (suitable, None),
    };
    let (mut kinds, mut wrong) = (Vec::new(), asked.faults().next().map(|fault| fault.to_string().into()));
    for (_, asked) in asked.good() {
        let group = asked.group.as_deref().unwrap_or(GROUP);
        match suitable.iter().find(|kind| (kind.group(), kind.name()) == (group, &*asked.kind)) {
            Some(kind) if kinds.contains(kind) => {}
            Some(kind) => kinds.push(*kind),
            None => {
                let is_off = disabled.iter().any(|kind| (kind.group(), kind.name()) == (group, &*asked.kind));
                let why = if is_off { "are disabled" } else { "cannot attach to a listener of this protocol" };
                wrong = Some(format!("routes of kind {} in group {group} {why}", asked.kind).into())
            }
        }
    }
    (kinds, wrong)
}
