//! A pipeline that feeds an Envoy, and objects for it.

use envoy::listener::{
    jwt::{self, HttpChainId},
    slots::Slot,
};
use envoy_api::Message;
use kinds::{Kind, Object, Secret, kind};
use model::{FleetId, PortId};
use pipeline::{Output, Pipeline, Settings, settings::Packing};
use serde_json::{Value, json};
use testbed::{cases::Proxy, certs::Ca, envoy::Config};

/// All of it.
pub struct World {
    pub pipeline: Pipeline,
    pub proxy: Proxy,
}

impl World {
    /// One that has these objects.
    pub async fn start(packing: Packing, objects: impl IntoIterator<Item = Object>) -> World {
        World::with(&settings(packing), Config::new().name("packing"), objects).await
    }

    /// The same with settings and an Envoy of the caller's choice.
    pub async fn with(settings: &Settings, envoy: Config, objects: impl IntoIterator<Item = Object>) -> World {
        let mut world = World { pipeline: Pipeline::new(settings), proxy: Proxy::with(envoy).await.unwrap() };
        world.put(objects);
        world.publish().await;
        world
    }

    /// Takes new forms of objects.
    pub fn put(&mut self, objects: impl IntoIterator<Item = Object>) {
        for object in objects {
            self.pipeline.put(&object.key(), Some(object));
        }
    }

    /// Takes an object out.
    pub fn remove(&mut self, object: &Object) {
        self.pipeline.put(&object.key(), None);
    }

    /// Gives Envoy what has changed; the names of it, in order, and of what went.
    pub async fn publish(&mut self) -> (Vec<String>, Vec<String>) {
        let Output { xds, .. } = self.pipeline.settle();
        let mut set: Vec<String> = xds.upserts.iter().map(|r| format!("{} {}", r.kind, r.name)).collect();
        let mut gone: Vec<String> = xds.removes.iter().map(|(kind, name)| format!("{kind} {name}")).collect();
        set.sort_unstable();
        gone.sort_unstable();
        self.proxy.publish(xds).await.unwrap();
        (set, gone)
    }
}

/// The slots of a plaintext port, all of which are empty: a listener waits for them.
pub fn slots(port: &PortId) -> Vec<xds::Resource> {
    slots_of_chain(port, &HttpChainId::Plaintext(port.clone()))
}

/// The slots of a port that has one filter chain.
pub fn slots_of_chain(port: &PortId, chain: &HttpChainId) -> Vec<xds::Resource> {
    let slot = |slot: Slot| {
        let body = slot.empty(port).encode_to_vec();
        xds::Resource::new(xds::Kind::Extension, envoy::name::slot(port, slot), body)
    };
    let verification = |name: String| {
        let body = jwt::filled(&name, []).encode_to_vec();
        xds::Resource::new(xds::Kind::Extension, name, body)
    };
    let jwt = chain.slot_names().into_iter().map(verification);
    Slot::ON_EVERY_PORT.map(slot).into_iter().chain(jwt).collect()
}

/// The plaintext port of the shared fleet.
pub fn http_port() -> PortId {
    PortId::new(FleetId::Shared, "ingress_http")
}

/// The name of the scope of an exact host on the plaintext port.
pub fn http_scope(host: &str) -> String {
    envoy::name::scope(&http_port(), &model::Host::parse(host).unwrap())
}

/// The TLS port of the shared fleet.
pub fn https_port() -> PortId {
    PortId::new(FleetId::Shared, "ingress_https")
}

/// The name of the scope of an exact host on the TLS port.
pub fn https_scope(host: &str) -> String {
    envoy::name::scope(&https_port(), &model::Host::parse(host).unwrap())
}

/// The usual settings in one packing, without access logs; Services may list their endpoints.
pub fn settings(packing: Packing) -> Settings {
    let mut settings = Settings { packing, ..Settings::default() };
    settings.resolve.listed_endpoints = true;
    settings.http_settings.access_log.level = model::listener::AccessLogLevel::Disabled;
    settings.https_settings.access_log.level = model::listener::AccessLogLevel::Disabled;
    settings
}

/// An object from JSON.
pub fn object(kind: Kind, value: &Value) -> Object {
    kinds::decode::decode_json(kind, value.to_string().as_bytes()).unwrap().object
}

/// An Ingress that sends one path of a host to a Service; no host for every host.
pub fn ingress(name: &str, host: &str, path: &str, service: &str) -> Object {
    ingress_with(name, host, path, service, &json!({}), &[])
}

/// The same with annotations, and TLS hosts by this Secret.
pub fn ingress_with(
    name: &str,
    host: &str,
    path: &str,
    service: &str,
    annotations: &Value,
    tls: &[(&str, &str)],
) -> Object {
    let backend = json!({"service": {"name": service, "port": {"number": 80}}});
    let mut rule = json!({"http": {"paths": [{"path": path, "pathType": "Prefix", "backend": backend}]}});
    if !host.is_empty() {
        rule["host"] = host.into();
    }
    let tls: Vec<Value> = tls.iter().map(|(host, secret)| json!({"hosts": [host], "secretName": secret})).collect();
    object(
        kind::INGRESS,
        &json!({
            "metadata": {"namespace": "default", "name": name, "annotations": annotations},
            "spec": {"rules": [rule], "tls": tls},
        }),
    )
}

/// A Service with one endpoint.
pub fn service(name: &str, at: std::net::Ipv4Addr) -> Object {
    let annotations = json!({"projectsesame.io/endpoints": format!("{at}:80")});
    let meta = json!({"namespace": "default", "name": name, "annotations": annotations});
    object(kind::SERVICE, &json!({"metadata": meta, "spec": {"ports": [{"port": 80}]}}))
}

/// A Secret with a certificate for this name.
pub fn secret(ca: &Ca, name: &str, host: &str) -> Object {
    let leaf = ca.leaf(host).make();
    let meta = json!({"namespace": "default", "name": name});
    let empty = object(kind::SECRET, &json!({"metadata": meta, "type": "kubernetes.io/tls", "data": {}}));
    let empty = empty.get::<Secret>().unwrap();
    let entries = [("tls.crt", leaf.chain_pem()), ("tls.key", leaf.key_pem())];
    let entries = entries.map(|(name, pem)| (name.into(), pem.as_bytes().into()));
    Object::new(kind::SECRET, Secret::clone(empty).with(entries))
}
