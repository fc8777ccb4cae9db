//! All TCPMappings of an instance: which share connections, and who asks for the listener of a port that no Listener has.

use crate::{Problem, Problems, Settings, hostname, precedence};
use kinds::{
    emissary::{TcpMapping, tcp_mapping::TcpMappingSpec},
    kind,
};
use model::{Code, Host, ObjectRef};
use std::{collections::BTreeMap, net::IpAddr};

/// What TCPMappings that share connections have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TcpKey {
    /// The port.
    pub port: u16,
    /// The address of the port.
    pub address: IpAddr,
    /// The server name that clients ask for; all connections of the port where there is none.
    pub host: Option<Host>,
}

impl TcpKey {
    /// That of an object; nothing, and a verdict, where there is none.
    pub fn of(object: &TcpMapping, settings: &Settings, problems: &mut Problems<'_>) -> Option<Self> {
        let code = Code::TcpMappingInvalid;
        let port = problems.optional("port", &object.spec.port).copied();
        let port = port.and_then(|port| u16::try_from(port).ok().filter(|port| *port != 0));
        let port =
            problems.parsed(port.ok_or_else(|| Problem::new(code, "port", "must be a port number from 1 to 65535")));
        let host = problems.read("host", &object.spec.host)?.as_deref().filter(|host| !host.is_empty());
        let host = host.map(|text| match hostname::parse(text) {
            Ok(found) if found.is_host() => Ok(found.host),
            Ok(_) => Err(format!("`{}` must be a name, `*.` and a name, or `*`, without a port", text.escape_debug())),
            Err(why) => Err(why),
        });
        let host = host.transpose().map_err(|why| Problem::new(code, "host", why));
        // One that cannot be read is reported with the share of the object: it has none of the connections that it would share.
        let address = address(&object.spec, settings).unwrap_or(settings.address);
        Some(Self { host: problems.parsed(host)?, port: port?, address })
    }

    /// Whether all proxies can be expected to have its address: that of Listeners, or all addresses where Listeners have all as well.
    /// Envoy rejects a listener whose address it does not have, and a proxy's own addresses differ from those of the next.
    pub fn is_bindable(&self, settings: &Settings) -> bool {
        self.address == settings.address || self.address.is_unspecified() && settings.address.is_unspecified()
    }
}

/// The address that an object names, or that of Listeners.
pub(super) fn address(spec: &TcpMappingSpec, settings: &Settings) -> Result<IpAddr, Problem> {
    let text = spec.address.ok().and_then(Option::as_deref).filter(|text| !text.is_empty());
    let Some(text) = text else { return Ok(settings.address) };
    let found = text.parse::<IpAddr>().map(|address| address.to_canonical());
    found.map_err(|_| {
        Problem::new(Code::TcpMappingInvalid, "address", format!("`{}` is not an IP address", text.escape_debug()))
    })
}

/// The oldest TCPMapping on a port whose address can be bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstOnPort {
    /// The object.
    pub object: ObjectRef,
    /// The address that it has the port on.
    pub address: IpAddr,
    /// Whether it has a host: connections of the port are TLS.
    pub is_tls: bool,
}

/// The most TCPMappings that share connections.
pub const MOST: usize = 64;

/// All TCPMappings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpPlan {
    /// Those that share the connections of a port, its address and host, the oldest first, and no more than [`MOST`]. Connections are those
    /// of the clients of the oldest, with a host decrypted with a certificate of its namespace: TCPMappings of other namespaces get none
    /// of them, unless objects may refer to any namespace.
    pub groups: BTreeMap<TcpKey, Vec<ObjectRef>>,
    /// The oldest of each port.
    pub ports: BTreeMap<u16, FirstOnPort>,
}

impl TcpPlan {
    /// The plan of these.
    pub fn of<'a>(objects: impl Iterator<Item = &'a TcpMapping>, settings: &Settings) -> Self {
        let mut objects: Vec<&TcpMapping> = objects.collect();
        objects.sort_by_cached_key(|object| precedence(&object.meta, 0));
        let mut plan = Self::default();
        for object in objects {
            let subject = ObjectRef::new(kind::TCP_MAPPING, object.meta.namespace.clone(), object.meta.name.clone());
            let Some(key) = TcpKey::of(object, settings, &mut Problems::new(&subject)) else { continue };
            if key.is_bindable(settings) {
                let (address, is_tls) = (key.address, key.host.is_some());
                let first = || FirstOnPort { object: subject.clone(), address, is_tls };
                plan.ports.entry(key.port).or_insert_with(first);
            }
            let members = plan.groups.entry(key).or_default();
            let is_anothers = members.first().is_some_and(|oldest| oldest.namespace != subject.namespace);
            if members.len() < MOST && (settings.cross_namespace || !is_anothers) {
                members.push(subject);
            }
        }
        plan
    }
}
