//! The backends of all sets: an echo for each Service, started once.
//!
//! In: the names of Services. Out: their addresses, as EndpointSlices have them and as DNS would say.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use anyhow::Result;
use serde_json::{Value, json};
use testbed::Backend;

/// The Services that there are, by namespace and name. Others that Mappings name do not exist.
pub const SERVICES: [(&str, &str); 5] =
    [("default", "a"), ("default", "b"), ("default", "c"), ("other", "a"), ("other", "d")];

/// Running backends by namespace and name.
pub struct Backends(BTreeMap<(&'static str, &'static str), Backend>);

impl Backends {
    /// Starts all.
    pub async fn start() -> Result<Backends> {
        let mut running = BTreeMap::new();
        for (namespace, name) in SERVICES {
            running.insert((namespace, name), Backend::start(&format!("{namespace}/{name}")).await?);
        }
        Ok(Backends(running))
    }

    /// The address of `name.namespace`, with or without the domain of the cluster.
    pub fn of_service(&self, name: &str) -> Option<Ipv4Addr> {
        let name = name.strip_suffix(".svc.cluster.local").unwrap_or(name);
        let (name, namespace) = name.split_once('.').unwrap_or((name, "default"));
        let found = self.0.iter().find(|(key, _)| **key == (namespace, name));
        found.map(|(_, backend)| backend.ip())
    }

    /// Services and EndpointSlices.
    pub fn objects(&self) -> Vec<Value> {
        let ports = json!([{ "name": "http", "port": 80 }, { "name": "https", "port": 443 }]);
        let objects = self.0.iter().flat_map(|((namespace, name), backend)| {
            let service = json!({
                "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": namespace, "name": name },
                "spec": { "ports": ports },
            });
            let labels = json!({ "kubernetes.io/service-name": name });
            let slice = json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": { "namespace": namespace, "name": name, "labels": labels },
                "ports": ports, "endpoints": [{ "addresses": [backend.ip()], "conditions": { "ready": true } }],
            });
            [service, slice]
        });
        objects.collect()
    }
}
