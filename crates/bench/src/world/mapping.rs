//! Mappings of Emissary: Hosts, a third of them with TLS, and any number of Mappings for them.
//!
//! In: how they are spread over Hosts, and the number of a Mapping. Out: its object, the name of a Host that has it, the path that is
//! its own; and the two Listeners and all Hosts, with their Secrets, which all Mappings share.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testbed::certs::Ca;

use super::{Object, folder, name};

/// How many Hosts there are where Mappings are spread.
const HOSTS: usize = 100;
const GROUP: &str = "/apis/getambassador.io/v3alpha1";

/// Which Mappings belong to which Hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum MappingShape {
    /// Spread over 100 Hosts, each for one of them
    #[default]
    Spread,
    /// As many Hosts, each Mapping for its own
    Own,
    /// As many Hosts, each Mapping for every one of them
    Every,
}

/// So many Mappings and their Hosts.
#[derive(Clone, Copy, Debug)]
pub struct Mappings {
    shape: MappingShape,
    hosts: usize,
}

impl Mappings {
    pub fn new(shape: MappingShape, size: usize) -> Mappings {
        let hosts = match shape {
            MappingShape::Spread => HOSTS,
            MappingShape::Own | MappingShape::Every => size.max(1),
        };
        Mappings { shape, hosts }
    }

    /// How many Hosts there are.
    pub fn hosts(self) -> usize {
        self.hosts
    }

    /// The name of a Host that has Mapping number `n`. Those that come later share it with another.
    pub fn host(self, n: usize) -> String {
        super::host(n % self.hosts)
    }

    /// Whether that Host is asked by HTTPS. Those that have every Mapping have plaintext alone: hosts with equal routes share one
    /// resource, and a host with a certificate of its own, whose routes say by which chain they are reached, has none to share.
    pub fn is_secured(self, n: usize) -> bool {
        !matches!(self.shape, MappingShape::Every) && n % self.hosts % 3 == 2
    }

    /// The Listeners of both ports, and all Hosts.
    pub fn shared(self, ca: &Ca) -> Vec<Object> {
        let listener = |port: u16, protocol: &str| {
            let binding = json!({ "namespace": { "from": "ALL" } });
            let spec = json!({ "port": port, "protocol": protocol, "securityModel": "XFP", "hostBinding": binding });
            object("Listener", "listeners", &protocol.to_lowercase(), 0, &spec)
        };
        let mut objects = vec![listener(80, "HTTP"), listener(443, "HTTPS")];
        for number in 0..self.hosts {
            let host = self.host(number);
            let mut spec = json!({ "hostname": host, "requestPolicy": { "insecure": { "action": "Route" } } });
            if self.is_secured(number) {
                let leaf = ca.leaf("").dns(&host).make();
                let encoded = |text: &str| BASE64.encode(text);
                let data = json!({ "tls.crt": encoded(leaf.chain_pem()), "tls.key": encoded(leaf.key_pem()) });
                let metadata = json!({ "name": secret(number) });
                let body = json!({ "metadata": metadata, "type": "kubernetes.io/tls", "data": data });
                objects.push(Object { folder: folder("/api/v1", "secrets", 0), body });
                spec["tlsSecret"] = json!({ "name": secret(number) });
            }
            objects.push(object("Host", "hosts", &name(number), 0, &spec));
        }
        objects
    }

    /// Mapping number `n`.
    pub fn mapping(self, n: usize, at: &str) -> Object {
        let hostname = match self.shape {
            MappingShape::Spread | MappingShape::Own => self.host(n),
            MappingShape::Every => "*".to_owned(),
        };
        let spec = json!({ "hostname": hostname, "prefix": path(n, at), "service": name(n) });
        object("Mapping", "mappings", &name(n), n, &spec)
    }
}

/// The path of Mapping number `n`: no other has it.
pub fn path(n: usize, path: &str) -> String {
    format!("{path}/{}", name(n))
}

/// The API path of Mapping number `n`, and what gives it another path.
pub fn edit(n: usize, at: &str) -> (String, Value) {
    (format!("{}/{}", folder(GROUP, "mappings", n), name(n)), json!({ "spec": { "prefix": path(n, at) } }))
}

/// The Secret of a Host.
fn secret(number: usize) -> String {
    format!("host-{}", name(number))
}

/// An object in the namespace of number `n`.
fn object(kind: &str, plural: &str, name: &str, n: usize, spec: &Value) -> Object {
    let metadata = json!({ "name": name });
    let body = json!({ "apiVersion": "getambassador.io/v3alpha1", "kind": kind, "metadata": metadata, "spec": spec });
    Object { folder: folder(GROUP, plural, n), body }
}
