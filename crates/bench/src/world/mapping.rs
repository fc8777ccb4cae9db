//! Mappings of Emissary: 100 Hosts, a third of them with TLS, and any number of Mappings spread over them.
//!
//! In: the number of a Mapping. Out: its object, its Host's name, the path that is its own among those of that Host; and the two
//! Listeners and all Hosts, with their Secrets, which all Mappings share.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use testbed::certs::Ca;

use super::{Object, folder, name};

/// How many Hosts there are, however many Mappings.
pub const HOSTS: usize = 100;
const GROUP: &str = "/apis/getambassador.io/v3alpha1";

/// The name of the Host that has Mapping number `n`.
pub fn host(n: usize) -> String {
    super::host(n % HOSTS)
}

/// Whether that Host is asked by HTTPS.
pub fn is_secured(n: usize) -> bool {
    n % HOSTS % 3 == 2
}

/// The path of Mapping number `n`: no other of its Host has it.
pub fn path(n: usize, path: &str) -> String {
    format!("{path}/{}", name(n))
}

/// The Listeners of both ports, and all Hosts.
pub fn shared(ca: &Ca) -> Vec<Object> {
    let listener = |port: u16, protocol: &str| {
        let binding = json!({ "namespace": { "from": "ALL" } });
        let spec = json!({ "port": port, "protocol": protocol, "securityModel": "XFP", "hostBinding": binding });
        object("Listener", "listeners", &protocol.to_lowercase(), 0, &spec)
    };
    let mut objects = vec![listener(80, "HTTP"), listener(443, "HTTPS")];
    for number in 0..HOSTS {
        let mut spec = json!({
            "hostname": host(number),
            "requestPolicy": { "insecure": { "action": "Route" } },
        });
        if is_secured(number) {
            let leaf = ca.leaf("").dns(&host(number)).make();
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
pub fn mapping(n: usize, at: &str) -> Object {
    let spec = json!({ "hostname": host(n), "prefix": path(n, at), "service": name(n) });
    object("Mapping", "mappings", &name(n), n, &spec)
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
