//! A set of a size, for how long it takes to compile.
//!
//! In: how many Mappings and Hosts. Out: a set without requests. Each Mapping has a path and a service of its own, and each Host TLS.
//! Both Listeners take HTTPS and plaintext, as those of Emissary's first steps do.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;
use testbed::certs::Ca;

use super::{Set, object};

impl Set {
    /// Mappings that are spread over Hosts: with as many of both, each Mapping has a Host of its own.
    pub fn sized(mappings: usize, hosts: usize, ca: &Ca) -> Set {
        let hosts = hosts.max(1);
        let hostname = |number: usize| format!("host-{number}.example.com");
        let listener = |name: &str, port: u16| {
            let binding = json!({ "namespace": { "from": "ALL" } });
            let spec = json!({ "port": port, "protocol": "HTTPS", "securityModel": "XFP", "hostBinding": binding });
            object("Listener", "default", name, spec)
        };
        let mut objects = vec![listener("http", 8080), listener("https", 8443)];
        // One certificate is in all Secrets: to make as many keys would take longer than to compile.
        let leaf = ca.leaf("").dns("*.example.com").make();
        let (chain, key) = (BASE64.encode(leaf.chain_pem()), BASE64.encode(leaf.key_pem()));
        for number in 0..hosts {
            let name = format!("host-{number}");
            objects.push(json!({
                "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
                "metadata": { "namespace": "default", "name": name }, "data": { "tls.crt": chain, "tls.key": key },
            }));
            let spec = json!({ "hostname": hostname(number), "tlsSecret": { "name": name } });
            objects.push(object("Host", "default", &name, spec));
        }
        for number in 0..mappings {
            let name = format!("web-{number}");
            objects.push(json!({
                "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": "default", "name": name },
                "spec": { "ports": [{ "port": 80 }] },
            }));
            let prefix = format!("/{name}/");
            let spec = json!({ "hostname": hostname(number % hosts), "prefix": prefix, "service": name });
            objects.push(object("Mapping", "default", &name, spec));
        }
        Set { number: 0, objects, requests: Vec::new(), repeats: 1 }
    }
}
