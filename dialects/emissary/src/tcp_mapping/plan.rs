//! All TCPMappings of an instance: which share connections, and who asks for the listener of a port that no Listener has.

use crate::{Problem, Problems, hostname, precedence};
use kinds::{emissary::TcpMapping, kind};
use model::{Code, Host, ObjectRef};
use std::collections::BTreeMap;

/// What TCPMappings that share connections have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TcpKey {
    /// The port.
    pub port: u16,
    /// The server name that clients ask for; all connections of the port where there is none.
    pub host: Option<Host>,
}

impl TcpKey {
    /// That of an object; nothing, and a verdict, where there is none.
    pub fn of(object: &TcpMapping, problems: &mut Problems<'_>) -> Option<Self> {
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
        Some(Self { host: problems.parsed(host)?, port: port? })
    }
}

/// The oldest TCPMapping on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstOnPort {
    /// The object.
    pub object: ObjectRef,
    /// Whether it has a host: connections of the port are TLS.
    pub is_tls: bool,
}

/// The most TCPMappings that share connections.
pub const MOST: usize = 64;

/// All TCPMappings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpPlan {
    /// Those that share the connections of a port and host, the oldest first, and no more than [`MOST`]. With a host, connections are
    /// decrypted with a certificate of the namespace of the oldest: those of other namespaces get none of them, unless objects may
    /// refer to any namespace.
    pub groups: BTreeMap<TcpKey, Vec<ObjectRef>>,
    /// The oldest of each port.
    pub ports: BTreeMap<u16, FirstOnPort>,
}

impl TcpPlan {
    /// The plan of these; `cross_namespace` says whether objects may refer to any namespace.
    pub fn of<'a>(objects: impl Iterator<Item = &'a TcpMapping>, cross_namespace: bool) -> Self {
        let mut objects: Vec<&TcpMapping> = objects.collect();
        objects.sort_by_cached_key(|object| precedence(&object.meta, 0));
        let mut plan = Self::default();
        for object in objects {
            let subject = ObjectRef::new(kind::TCP_MAPPING, object.meta.namespace.clone(), object.meta.name.clone());
            let Some(key) = TcpKey::of(object, &mut Problems::new(&subject)) else { continue };
            let first = || FirstOnPort { object: subject.clone(), is_tls: key.host.is_some() };
            plan.ports.entry(key.port).or_insert_with(first);
            let is_decrypted = key.host.is_some();
            let members = plan.groups.entry(key).or_default();
            let is_anothers = members.first().is_some_and(|oldest| oldest.namespace != subject.namespace);
            if members.len() < MOST && (cross_namespace || !is_decrypted || !is_anothers) {
                members.push(subject);
            }
        }
        plan
    }
}
