//! The Service: where clients reach the proxies of a fleet.

use serde_json::{Value, json};

use super::FLEET_LABEL;
use crate::spec::{FleetSpec, Port};

pub(super) fn spec(spec: &FleetSpec, name: &str) -> Value {
    let mut service = json!({
        "type": "LoadBalancer",
        // The client's own address reaches the proxy.
        "externalTrafficPolicy": "Local",
        "selector": { FLEET_LABEL: name },
        "ports": spec.ports.iter().map(port).collect::<Vec<_>>(),
    });
    if let Some(address) = spec.address {
        service["loadBalancerIP"] = json!(address.to_string());
    }
    service
}

fn port(port: &Port) -> Value {
    let protocol = port.transport.protocol();
    json!({
        "name": format!("{}-{}", protocol.to_lowercase(), port.port),
        "port": port.port,
        "targetPort": port.port,
        "protocol": protocol,
    })
}
