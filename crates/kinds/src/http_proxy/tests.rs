//! HTTPProxies as people write them, and as they should not.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use crate::{Kind, Vendor, decode_json};
use serde_json::json;

fn read(spec: serde_json::Value) -> (HttpProxy, Vec<String>, Vec<String>) {
    let object = json!({ "metadata": { "name": "shop", "namespace": "a" }, "spec": spec });
    let decoded = decode_json(Kind::HttpProxy(Vendor::Contour), object.to_string().as_bytes()).unwrap();
    let proxy = HttpProxy::clone(decoded.object.get::<HttpProxy>().unwrap());
    let faults = decoded.faults.iter().map(|fault| fault.path.to_string()).collect();
    (proxy, faults, decoded.unknown.iter().map(|field| field.path.to_string()).collect())
}

#[test]
fn a_root_and_its_parts() {
    let (proxy, faults, unknown) = read(json!({
        "virtualhost": { "fqdn": "a.example.com", "tls": { "secretName": "cert" } },
        "routes": [{
            "conditions": [{ "prefix": "/a" }, { "header": { "name": "x-team", "notcontains": "b" } }],
            "services": [{ "name": "web", "port": 80, "weight": 3 }],
            "timeoutPolicy": { "response": "5s" },
        }],
        "includes": [{ "name": "child", "namespace": "b", "conditions": [{ "prefix": "/b" }] }],
    }));
    assert_eq!((faults, unknown), (Vec::new(), Vec::new()));
    let host = proxy.spec.virtual_host.get().unwrap().as_ref().unwrap();
    assert_eq!(host.tls.get().unwrap().as_ref().unwrap().secret_name.as_deref(), Some("cert"));
    let (_, route) = proxy.spec.routes.good().next().unwrap();
    assert_eq!(route.services.good().next().unwrap().1.weight, Some(3));
    assert_eq!(proxy.spec.includes.good().next().unwrap().1.namespace.as_deref(), Some("b"));
}

#[test]
fn a_bad_value_spoils_the_smallest_part() {
    let (proxy, faults, unknown) = read(json!({
        "virtualhost": { "fqdn": "a.example.com", "ipAllowPolicy": "everyone" },
        "routes": [
            { "services": [{ "name": "web", "port": "http" }, { "name": "web", "port": 80 }], "permitInsecure": "yes" },
            { "timeoutPolicy": { "response": 5 }, "service": [] },
        ],
    }));
    let host = proxy.spec.virtual_host.get().unwrap().as_ref().unwrap();
    assert!(host.fqdn.get().is_ok() && host.ip_allow.get().is_err());
    let routes: Vec<_> = proxy.spec.routes.good().map(|(_, route)| route).collect();
    assert_eq!((routes.len(), routes[0].services.good().count()), (2, 1));
    assert!(routes[0].permit_insecure.get().is_err() && routes[1].timeout_policy.get().is_err());
    assert_eq!(
        faults,
        [
            "spec.routes[0].permitInsecure",
            "spec.routes[0].services[0].port",
            "spec.routes[1].timeoutPolicy.response",
            "spec.virtualhost.ipAllowPolicy",
        ]
    );
    assert_eq!(unknown, ["spec.routes[1].service"]);
}
