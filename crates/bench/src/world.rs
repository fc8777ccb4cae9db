//! The cluster that is measured: how many hosts, and the objects of each.
//!
//! In: a number of hosts. Out: for each an Ingress, an HTTPProxy, an HTTPRoute or a Mapping, a Service and an EndpointSlice, perhaps a Secret,
//! as JSON, with the places in the API where they belong. Every host leads to one of two echo backends, so an answer tells which
//! endpoints Envoy had. The path of a host is changed to edit it: the old one then answers 404, the new one 200.

mod mapping;
mod protection;

use std::net::Ipv4Addr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testbed::certs::Ca;

pub use mapping::MappingShape;
use mapping::Mappings;
pub use protection::{FIRST_AUDIENCE, Protection, SECOND_AUDIENCE, Servers, bearer};

/// Counts up when the objects change, so that etcds filled before are not used.
pub const SHAPE: u32 = 1;
/// How many hosts share a namespace.
const PER_NAMESPACE: usize = 500;
/// Room for hosts that come later.
const LATER: usize = 1000;
/// The path of every host at first.
pub const FIRST_PATH: &str = "/a";

/// A backend: its name in answers, and its address, which stands in etcds that are kept and so is always the same.
#[derive(Clone, Copy, Debug)]
pub struct Backend {
    /// In its answers.
    pub name: &'static str,
    /// Where it listens.
    pub ip: Ipv4Addr,
}

/// Where all hosts lead at first.
pub const FIRST: Backend = Backend { name: "first", ip: Ipv4Addr::new(198, 18, 127, 1) };
/// Where a host leads once its endpoints have changed.
pub const SECOND: Backend = Backend { name: "second", ip: Ipv4Addr::new(198, 18, 127, 2) };

/// What is in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct World {
    /// How many hosts.
    pub size: usize,
    /// What people wrote about them.
    pub wording: Wording,
}

/// What people wrote about hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wording {
    /// Ingresses.
    Ingresses,
    /// Ingresses, each with a certificate, and asked by HTTPS.
    Certificates,
    /// HTTPProxies: a third have routes of their own, a third include them, and a third have a certificate, and are asked by
    /// HTTPS.
    Proxies,
    /// The same, and those with a certificate are protected: by tokens, by client certificates, by an authorization server.
    Protected,
    /// HTTPRoutes, all of one Gateway.
    Routes,
    /// Mappings, on Hosts of which a third have a certificate and are asked by HTTPS.
    Mappings(MappingShape),
}

/// What a host of HTTPProxies is made of.
#[derive(PartialEq, Eq)]
enum Third {
    Routes,
    Include,
    Certificate,
}

impl Third {
    fn of(n: usize) -> Third {
        match n % 3 {
            0 => Third::Routes,
            1 => Third::Include,
            _ => Third::Certificate,
        }
    }
}

/// An object and the folder of the API that it belongs in.
#[derive(Debug)]
pub struct Object {
    /// Such as `/api/v1/namespaces/x/services`.
    pub folder: String,
    /// The object.
    pub body: Value,
}

/// The name of host number `n` as people type it.
pub fn host(n: usize) -> String {
    format!("{}.example.com", name(n))
}

/// The name of the objects of host number `n`.
pub fn name(n: usize) -> String {
    format!("h{n:05}")
}

fn namespace(n: usize) -> String {
    format!("bench-{:03}", n / PER_NAMESPACE)
}

fn folder(group: &str, kind: &str, n: usize) -> String {
    format!("{group}/namespaces/{}/{kind}", namespace(n))
}

impl World {
    /// The namespaces.
    pub fn namespaces(self) -> impl Iterator<Item = Object> {
        (0..=(self.size + LATER) / PER_NAMESPACE).map(|number| Object {
            folder: "/api/v1/namespaces".to_owned(),
            body: json!({ "metadata": { "name": namespace(number * PER_NAMESPACE) } }),
        })
    }

    /// The objects that several hosts share.
    pub fn shared(self, ca: &Ca) -> Vec<Object> {
        match self.wording {
            Wording::Ingresses | Wording::Certificates | Wording::Proxies => Vec::new(),
            Wording::Protected => (0..=(self.size + LATER) / PER_NAMESPACE)
                .flat_map(|number| protection::shared(&namespace(number * PER_NAMESPACE), ca))
                .collect(),
            Wording::Routes => gateway().into(),
            Wording::Mappings(shape) => Mappings::new(shape, self.size).shared(ca),
        }
    }

    /// The name that is asked for number `n`.
    pub fn host(self, n: usize) -> String {
        match self.wording {
            Wording::Mappings(shape) => Mappings::new(shape, self.size).host(n),
            _ => host(n),
        }
    }

    /// The path that is asked for number `n` whose objects have `path`: several Mappings are on one Host, each with its own.
    pub fn path(self, n: usize, path: &str) -> String {
        match self.wording {
            Wording::Mappings(_) => mapping::path(n, path),
            _ => path.to_owned(),
        }
    }

    /// Whether a host is asked by HTTPS.
    pub fn is_secured(self, n: usize) -> bool {
        match self.wording {
            Wording::Ingresses | Wording::Routes => false,
            Wording::Certificates => true,
            Wording::Proxies | Wording::Protected => Third::of(n) == Third::Certificate,
            Wording::Mappings(shape) => Mappings::new(shape, self.size).is_secured(n),
        }
    }

    /// What protects a host.
    pub fn protection(self, n: usize) -> Option<Protection> {
        let is_protected = self.wording == Wording::Protected && self.is_secured(n);
        is_protected.then(|| Protection::of(n / 3))
    }

    /// The folder of the API that has an object for each host, and how many there are in it.
    pub fn roots(self) -> (&'static str, usize) {
        match self.wording {
            Wording::Ingresses | Wording::Certificates => ("/apis/networking.k8s.io/v1/ingresses", self.size),
            Wording::Proxies | Wording::Protected => {
                let included = (0..self.size).filter(|&n| Third::of(n) == Third::Include).count();
                ("/apis/projectcontour.io/v1/httpproxies", self.size + included)
            }
            Wording::Routes => ("/apis/gateway.networking.k8s.io/v1/httproutes", self.size),
            Wording::Mappings(_) => ("/apis/getambassador.io/v3alpha1/mappings", self.size),
        }
    }

    /// All objects of one host, the one that makes it a host last.
    pub fn objects(self, n: usize, ca: &Ca) -> Vec<Object> {
        let metadata = json!({ "name": name(n) });
        let mut objects = Vec::with_capacity(4);
        // Those of Mappings belong to their Hosts.
        if self.is_secured(n) && !matches!(self.wording, Wording::Mappings(_)) {
            let leaf = ca.leaf("").dns(&host(n)).make();
            let encoded = |text: &str| BASE64.encode(text);
            let data = json!({ "tls.crt": encoded(leaf.chain_pem()), "tls.key": encoded(leaf.key_pem()) });
            let body = json!({ "metadata": metadata, "type": "kubernetes.io/tls", "data": data });
            objects.push(Object { folder: folder("/api/v1", "secrets", n), body });
        }
        let ports = json!([{ "name": "http", "port": 80 }]);
        // Without an address of their own, because 50,000 of them would only fill the API server's books.
        let service = json!({ "metadata": metadata, "spec": { "clusterIP": "None", "ports": ports } });
        objects.push(Object { folder: folder("/api/v1", "services", n), body: service });
        let mut slice = endpoints(FIRST);
        slice["metadata"] = json!({ "name": name(n), "labels": { "kubernetes.io/service-name": name(n) } });
        slice["addressType"] = json!("IPv4");
        slice["ports"] = ports;
        objects.push(Object { folder: folder("/apis/discovery.k8s.io/v1", "endpointslices", n), body: slice });
        match self.wording {
            Wording::Ingresses | Wording::Certificates => {
                let mut ingress = self.rules(n, FIRST_PATH);
                ingress["metadata"] = metadata;
                objects.push(Object { folder: folder("/apis/networking.k8s.io/v1", "ingresses", n), body: ingress });
            }
            Wording::Proxies | Wording::Protected => objects.extend(self.proxies(n)),
            Wording::Routes => {
                let parent = json!({ "namespace": namespace(0), "name": GATEWAY });
                let spec = json!({ "parentRefs": [parent], "hostnames": [host(n)], "rules": [rule(n, FIRST_PATH)] });
                objects.push(Object { folder: route_folder(n), body: gateway_api("HTTPRoute", &name(n), &spec) });
            }
            Wording::Mappings(shape) => objects.push(Mappings::new(shape, self.size).mapping(n, FIRST_PATH)),
        }
        objects
    }

    /// The API path of the object that has a host's path, and what changes it.
    pub fn path_edit(self, n: usize, path: &str) -> (String, Value) {
        match self.wording {
            Wording::Ingresses | Wording::Certificates => {
                (format!("{}/{}", folder("/apis/networking.k8s.io/v1", "ingresses", n), name(n)), self.rules(n, path))
            }
            Wording::Proxies | Wording::Protected => {
                let name = if Third::of(n) == Third::Include { child(n) } else { name(n) };
                (format!("{}/{name}", proxy_folder(n)), json!({ "spec": { "routes": routes(n, path) } }))
            }
            Wording::Routes => {
                (format!("{}/{}", route_folder(n), name(n)), json!({ "spec": { "rules": [rule(n, path)] } }))
            }
            Wording::Mappings(_) => mapping::edit(n, path),
        }
    }

    /// The API path of a host's EndpointSlice, and what changes its endpoints.
    pub fn endpoints_edit(self, n: usize, backend: Backend) -> (String, Value) {
        (format!("{}/{}", folder("/apis/discovery.k8s.io/v1", "endpointslices", n), name(n)), endpoints(backend))
    }

    /// The API path of an HTTPProxy with a provider of tokens, and what has it ask for another audience.
    pub fn provider_edit(self, n: usize, audience: &str) -> (String, Value) {
        let host = json!({ "jwtProviders": protection::providers(audience) });
        (format!("{}/{}", proxy_folder(n), name(n)), json!({ "spec": { "virtualhost": host } }))
    }

    /// The HTTPProxies of a host, its root last.
    fn proxies(self, n: usize) -> Vec<Object> {
        let object = |name: String, spec: Value| Object {
            folder: proxy_folder(n),
            body: json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": name }, "spec": spec }),
        };
        let mut host = json!({ "fqdn": host(n) });
        match Third::of(n) {
            Third::Routes => vec![object(name(n), json!({ "virtualhost": host, "routes": routes(n, FIRST_PATH) }))],
            Third::Include => vec![
                object(child(n), json!({ "routes": routes(n, FIRST_PATH) })),
                object(name(n), json!({ "virtualhost": host, "includes": [{ "name": child(n) }] })),
            ],
            Third::Certificate => {
                host["tls"] = json!({ "secretName": name(n) });
                if let Some(protection) = self.protection(n) {
                    protection.add_to(&mut host);
                }
                vec![object(name(n), json!({ "virtualhost": host, "routes": routes(n, FIRST_PATH) }))]
            }
        }
    }

    fn rules(self, n: usize, path: &str) -> Value {
        let service = json!({ "name": name(n), "port": { "number": 80 } });
        let path = json!({ "path": path, "pathType": "Prefix", "backend": { "service": service } });
        let mut spec = json!({ "rules": [{ "host": host(n), "http": { "paths": [path] } }] });
        if self.is_secured(n) {
            spec["tls"] = json!([{ "hosts": [host(n)], "secretName": name(n) }]);
        }
        json!({ "spec": spec })
    }
}

fn proxy_folder(n: usize) -> String {
    folder("/apis/projectcontour.io/v1", "httpproxies", n)
}

/// The name of the HTTPProxy that a host includes.
fn child(n: usize) -> String {
    format!("{}-routes", name(n))
}

fn routes(n: usize, path: &str) -> Value {
    json!([{ "conditions": [{ "prefix": path }], "services": [{ "name": name(n), "port": 80 }] }])
}

/// The name of the Gateway, and of its class.
const GATEWAY: &str = "sesame";

/// The Gateway of all HTTPRoutes, and its class.
fn gateway() -> [Object; 2] {
    let class = json!({ "controllerName": "projectsesame.io/gateway-controller" });
    let all = json!({ "namespaces": { "from": "All" } });
    let listener = json!({ "name": "http", "protocol": "HTTP", "port": 80, "allowedRoutes": all });
    let spec = json!({ "gatewayClassName": GATEWAY, "listeners": [listener] });
    let group = "/apis/gateway.networking.k8s.io/v1";
    [
        Object { folder: format!("{group}/gatewayclasses"), body: gateway_api("GatewayClass", GATEWAY, &class) },
        Object { folder: folder(group, "gateways", 0), body: gateway_api("Gateway", GATEWAY, &spec) },
    ]
}

fn gateway_api(kind: &str, name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "metadata": { "name": name }, "spec": spec })
}

fn route_folder(n: usize) -> String {
    folder("/apis/gateway.networking.k8s.io/v1", "httproutes", n)
}

fn rule(n: usize, path: &str) -> Value {
    let path = json!({ "type": "PathPrefix", "value": path });
    json!({ "matches": [{ "path": path }], "backendRefs": [{ "name": name(n), "port": 80 }] })
}

fn endpoints(backend: Backend) -> Value {
    json!({ "endpoints": [{ "addresses": [backend.ip], "conditions": { "ready": true } }] })
}

impl std::fmt::Display for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.wording {
            Wording::Ingresses => write!(f, "{} hosts", self.size),
            Wording::Certificates => write!(f, "{} hosts with a certificate each", self.size),
            Wording::Proxies => write!(f, "{} hosts of HTTPProxies", self.size),
            Wording::Protected => write!(f, "{} hosts of HTTPProxies, a third of them protected", self.size),
            Wording::Routes => write!(f, "{} hosts of HTTPRoutes on one Gateway", self.size),
            Wording::Mappings(shape) => {
                let each = match shape {
                    MappingShape::Spread => "",
                    MappingShape::Own => ", each on its own",
                    MappingShape::Every => ", each on every one",
                };
                write!(f, "{} Mappings on {} Hosts{each}", self.size, Mappings::new(shape, self.size).hosts())
            }
        }
    }
}
