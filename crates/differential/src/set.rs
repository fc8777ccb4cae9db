//! A set: objects that both sides get, and requests that both are asked.
//!
//! In: a seed and a number. Out: the set that follows from them. Names, paths and conditions come from small pools, so that Mappings of
//! a set overlap, and requests meet several of them. What Emissary's own Envoy refuses as a whole is not generated.

mod mapping;
mod request;
mod sized;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use testbed::certs::Ca;

use crate::backends::Backends;
use crate::random::Random;

pub use mapping::are_alike;
pub use request::Request;

/// Names of Hosts.
const HOSTNAMES: [&str; 6] =
    ["one.example.com", "two.example.com", "*.example.com", "*", "three.example.org", "*.two.example.com"];

/// Where Mappings with `host_redirect` lead.
pub const ELSEWHERE: &str = "elsewhere.example.net";

/// A set.
#[derive(Debug)]
pub struct Set {
    /// Its number.
    pub number: usize,
    /// Everything that is in the cluster.
    pub objects: Vec<Value>,
    /// What is asked.
    pub requests: Vec<Request>,
    /// How often each request is made: more than once where chance decides about answers.
    pub repeats: usize,
}

impl Set {
    /// The set of this number.
    pub fn new(seed: u64, number: usize, ca: &Ca, backends: &Backends) -> Set {
        let random = &mut Random::new(seed, number);
        let mut objects = listeners(random);
        let has_selectors = random.percent(20);
        objects.extend(hosts(random, has_selectors, ca));
        let has_weights = random.percent(25);
        let mappings = mapping::mappings(random, has_weights, has_selectors);
        let requests = request::requests(random, &mappings, if has_weights { 12 } else { 40 });
        let is_shared = mappings
            .iter()
            .enumerate()
            .any(|(n, one)| mappings[..n].iter().any(|other| mapping::are_alike(one, other)));
        objects.extend(mappings);
        objects.extend(backends.objects());
        Set { number, objects, requests, repeats: if is_shared { 60 } else { 1 } }
    }

    /// The objects of a kind.
    pub fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |object| object["kind"] == kind)
    }
}

fn object(kind: &str, namespace: &str, name: &str, spec: Value) -> Value {
    let metadata = json!({ "namespace": namespace, "name": name });
    json!({ "apiVersion": "getambassador.io/v3alpha1", "kind": kind, "metadata": metadata, "spec": spec })
}

/// One for each port.
fn listeners(random: &mut Random) -> Vec<Value> {
    let binding = if random.percent(85) { "ALL" } else { "SELF" };
    let ports = [("http", 8080, "HTTP"), ("https", 8443, "HTTPS")];
    let listeners = ports.map(|(name, port, protocol)| {
        let model = match random.below(10) {
            0 if protocol == "HTTPS" => "SECURE",
            1 | 2 if protocol == "HTTP" => "INSECURE",
            _ => "XFP",
        };
        let binding = json!({ "namespace": { "from": binding } });
        let spec = json!({ "port": port, "protocol": protocol, "securityModel": model, "hostBinding": binding });
        object("Listener", "default", name, spec)
    });
    listeners.into()
}

/// None, or some with names of their own, and the Secrets of those with TLS.
fn hosts(random: &mut Random, has_selectors: bool, ca: &Ca) -> Vec<Value> {
    let mut objects = Vec::new();
    if random.percent(8) {
        return objects;
    }
    for (number, hostname) in HOSTNAMES.iter().enumerate() {
        if !random.percent(45) {
            continue;
        }
        let mut spec = json!({ "hostname": hostname });
        if let Some(action) = [None, Some("Route"), Some("Route"), Some("Redirect"), Some("Reject")][random.below(5)] {
            spec["requestPolicy"] = json!({ "insecure": { "action": action } });
        }
        let name = format!("host-{number}");
        if random.percent(50) {
            spec["tlsSecret"] = json!({ "name": name });
            let leaf = ca.leaf("").dns(hostname).make();
            let encoded = |text: &str| BASE64.encode(text);
            objects.push(json!({
                "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
                "metadata": { "namespace": "default", "name": name },
                "data": { "tls.crt": encoded(leaf.chain_pem()), "tls.key": encoded(leaf.key_pem()) },
            }));
        }
        if has_selectors && random.percent(50) {
            let team = random.pick(&["red", "blue"]);
            spec["mappingSelector"] = json!({ "matchLabels": { "team": team } });
        }
        objects.push(object("Host", "default", &name, spec));
    }
    objects
}
