//! A Service: its ports, where its endpoints come from, what it speaks, and its limits.
//!
//! In: the object. Out: only what routes and clusters need, so that a changed label or status wakes nobody.

mod target;

use crate::{Rejection, Settings, annotation};
use kinds::{Meta, service::TransportProtocol, suggest};
use model::{
    Cluster, ClusterId, Code, EndpointsId, FieldPath, ObjectRef, Transport, Verdict,
    cluster::{CircuitBreakers, Discovery, DnsTarget, Protocol},
};
use std::{fmt, sync::Arc};

/// How many ports of a Service a message lists: it is written for each route that names a port in vain.
const PORTS: usize = 10;
/// Of how many ports the most similar name is looked for: each route that names another may ask.
const COMPARED_PORTS: usize = 100;

/// A port as people refer to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortRef {
    /// By its name in the Service.
    Name(Box<str>),
    /// By its number in the Service.
    Number(u16),
}

impl fmt::Display for PortRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortRef::Name(name) => write!(f, "`{name}`"),
            PortRef::Number(number) => write!(f, "{number}"),
        }
    }
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its number.
    pub number: u16,
    /// Its name; empty where it has none.
    pub name: Box<str>,
    /// What it carries; nothing for SCTP.
    pub transport: Option<Transport>,
    /// What is spoken over it.
    pub protocol: Protocol,
}

/// Where the endpoints of a Service come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Its EndpointSlices.
    Slices,
    /// The list in its annotation.
    Listed(Vec<DnsTarget>),
    /// A name that DNS knows.
    External(Arc<str>),
    /// Nowhere, for this reason.
    Refused(Rejection),
}

/// What is known about a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its ports.
    pub ports: Vec<Port>,
    /// Where its endpoints come from.
    pub target: Target,
    /// Whether its EndpointSlices may lead to the machine itself ([`Settings::local_endpoints`]).
    pub local_endpoints: bool,
    /// Its limits.
    pub breakers: CircuitBreakers,
    /// What is wrong with the Service itself.
    pub verdicts: Vec<Verdict>,
}

impl Service {
    /// Reads a Service.
    pub fn read(object: &kinds::Service, settings: &Settings) -> Self {
        let meta = &object.meta;
        let subject = ObjectRef::new(kinds::kind::SERVICE, meta.namespace.clone(), meta.name.clone());
        let mut verdicts = Vec::new();
        let protocols = annotated_protocols(meta, &subject, &mut verdicts);
        let ports = object.spec.ports.good().filter_map(|(index, port)| {
            let number = u16::try_from(port.port).ok().filter(|&number| number != 0);
            if number.is_none() {
                let field = FieldPath::from("spec.ports").index(index).field("port");
                let why = format!("must be a port number from 1 to 65535, not {}", port.port);
                verdicts.push(Verdict::new(Code::ServicePortNotFound, subject.at(field), why));
            }
            let name: Box<str> = port.name.clone().unwrap_or_default();
            let number = number?;
            let protocol = protocol_of(port.app_protocol.as_deref(), &protocols, &name, number);
            Some(Port { number, name, transport: transport(&port.protocol), protocol })
        });
        let mut ports: Vec<_> = ports.collect();
        ports.shrink_to_fit();
        let breakers = breakers(meta, &subject, &mut verdicts);
        let target = target::target(object, settings);
        let (namespace, name) = (meta.namespace.clone(), meta.name.clone());
        Service { namespace, name, ports, target, local_endpoints: settings.local_endpoints, breakers, verdicts }
    }

    /// The port that is meant by whoever routes TCP.
    pub fn port(&self, port: &PortRef) -> Result<&Port, Rejection> {
        self.port_of(port, Transport::Tcp)
    }

    /// The port that is meant by whoever routes this protocol. TCP and UDP may share a number: the port of the other protocol is
    /// only found where there is no better one.
    fn port_of(&self, port: &PortRef, wanted: Transport) -> Result<&Port, Rejection> {
        let found = match port {
            PortRef::Name(name) => self.ports.iter().find(|own| !name.is_empty() && own.name == *name),
            PortRef::Number(number) => {
                let other = || self.ports.iter().find(|port| port.number == *number);
                self.numbered(*number, wanted).or_else(other)
            }
        };
        found.ok_or_else(|| {
            let have: Vec<String> = self.ports.iter().take(PORTS).map(shown).collect();
            let more = if self.ports.len() > PORTS { ", …" } else { "" };
            let have = if have.is_empty() {
                "it has no ports".to_owned()
            } else {
                format!("it has {}{more}", have.join(", "))
            };
            let meant = match port {
                PortRef::Name(name) if self.ports.len() <= COMPARED_PORTS => {
                    suggest::nearest(name, self.ports.iter().map(|port| &*port.name))
                }
                PortRef::Name(_) | PortRef::Number(_) => None,
            };
            let meant = meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
            let why = format!("Service {}/{} has no port {port}; {have}{meant}", self.namespace, self.name);
            Rejection::new(Code::ServicePortNotFound, why)
        })
    }

    /// The cluster for TCP over a port, and so for HTTP.
    pub fn backend(&self, port: &PortRef) -> Result<ClusterId, Rejection> {
        self.backend_of(port, Transport::Tcp)
    }

    /// The cluster for this protocol over a port.
    pub fn backend_of(&self, port: &PortRef, transport: Transport) -> Result<ClusterId, Rejection> {
        let found = self.port_of(port, transport)?;
        if found.transport != Some(transport) {
            let why = format!("port {port} of Service {}/{} is not a {transport} port", self.namespace, self.name);
            return Err(Rejection::new(Code::ServicePortNotTcp, why));
        }
        if let Target::Refused(rejection) = &self.target {
            return Err(rejection.clone());
        }
        Ok(self.endpoints_id(found.number, transport).into())
    }

    /// The port with this number and protocol, wherever it stands in the list: TCP and UDP may share a number, as DNS and
    /// HTTP/3 do.
    pub(crate) fn numbered(&self, number: u16, transport: Transport) -> Option<&Port> {
        self.ports.iter().find(|port| port.number == number && port.transport == Some(transport))
    }

    /// The cluster of one of its ports, as a proxy reaches it.
    pub fn cluster(&self, number: u16, transport: Transport) -> Option<Cluster> {
        let port = self.numbered(number, transport)?;
        let (discovery, server_name) = match &self.target {
            Target::Slices => (Discovery::Endpoints, None),
            Target::Listed(list) if target::all_addresses(list) => (Discovery::Endpoints, None),
            Target::Listed(list) => (Discovery::Dns(list.clone()), None),
            Target::External(host) => {
                let target = DnsTarget { host: host.clone(), port: number };
                (Discovery::Dns(vec![target]), Some(host.clone()))
            }
            Target::Refused(_) => return None,
        };
        let id = self.endpoints_id(number, transport).into();
        let (protocol, breakers) = (port.protocol, self.breakers);
        Some(Cluster { protocol, server_name, breakers, ..Cluster::new(id, discovery) })
    }

    fn endpoints_id(&self, port: u16, transport: Transport) -> EndpointsId {
        EndpointsId { namespace: self.namespace.clone(), service: self.name.clone(), port, transport }
    }
}

pub(crate) fn transport(protocol: &TransportProtocol) -> Option<Transport> {
    match protocol {
        TransportProtocol::Tcp => Some(Transport::Tcp),
        TransportProtocol::Udp => Some(Transport::Udp),
        TransportProtocol::Sctp | TransportProtocol::Unknown(_) => None,
    }
}

fn shown(port: &Port) -> String {
    match &*port.name {
        "" => port.number.to_string(),
        name => format!("{} (`{name}`)", port.number),
    }
}

/// Reads the five limits; one that is no number is a finding and stays unset.
fn breakers(meta: &Meta, subject: &ObjectRef, verdicts: &mut Vec<Verdict>) -> CircuitBreakers {
    let mut limit = |name: &str| -> Option<u32> {
        let found = match annotation::get(meta, name) {
            Ok(found) => found?,
            Err(fault) => {
                let field = FieldPath::from(&*fault.path);
                verdicts.push(Verdict::new(Code::AnnotationValue, subject.at(field), fault.why.clone()));
                return None;
            }
        };
        match found.value.trim().parse() {
            Ok(0) => None,
            Ok(limit) => Some(limit),
            Err(_) => {
                let why = format!("must be a number from 0 to 4294967295, not `{}`", found.value);
                let field = FieldPath::annotation(&found.name);
                verdicts.push(Verdict::new(Code::AnnotationValue, subject.at(field), why));
                None
            }
        }
    };
    CircuitBreakers {
        max_connections: limit("max-connections"),
        max_pending_requests: limit("max-pending-requests"),
        max_requests: limit("max-requests"),
        max_retries: limit("max-retries"),
        per_host_max_connections: limit("per-host-max-connections"),
    }
}

const PROTOCOLS: [(&str, Protocol); 3] = [
    ("upstream-protocol.h2", Protocol::H2),
    ("upstream-protocol.h2c", Protocol::H2c),
    ("upstream-protocol.tls", Protocol::Tls),
];

/// The ports that annotations give a protocol to, by name or number as they were written.
fn annotated_protocols(meta: &Meta, subject: &ObjectRef, verdicts: &mut Vec<Verdict>) -> Vec<(Box<str>, Protocol)> {
    let mut ports = Vec::new();
    for (name, protocol) in PROTOCOLS {
        match annotation::get(meta, name) {
            Ok(None) => {}
            Ok(Some(found)) => {
                let listed = found.value.split(',').map(str::trim).filter(|port| !port.is_empty());
                ports.extend(listed.map(|port| (port.into(), protocol)));
            }
            Err(fault) => {
                let field = FieldPath::from(&*fault.path);
                verdicts.push(Verdict::new(Code::AnnotationValue, subject.at(field), fault.why.clone()));
            }
        }
    }
    ports
}

/// The protocol of one port. What `appProtocol` says is final, also where it says something we do not know.
fn protocol_of(app: Option<&str>, annotated: &[(Box<str>, Protocol)], name: &str, number: u16) -> Protocol {
    if let Some(app) = app {
        return match app {
            "kubernetes.io/h2c" => Protocol::H2c,
            "https" | "kubernetes.io/wss" => Protocol::Tls,
            _ => Protocol::Http1,
        };
    }
    let by_name = annotated.iter().find(|(port, _)| !name.is_empty() && **port == *name);
    let by_number = || annotated.iter().find(|(port, _)| port.parse() == Ok(number));
    by_name.or_else(by_number).map_or(Protocol::Http1, |(_, protocol)| *protocol)
}

#[cfg(test)]
mod tests;
