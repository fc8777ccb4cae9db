//! Objects, and the view of them that a translation gets.

use crate::{
    GatewayView, Listener, Listeners, Settings, class,
    gateway::{
        self,
        backend_certificate::{self, BackendCertificate},
        tls::{self, ListenerTls},
    },
    listener_set, listeners,
    tls_policy::{self, InEffect},
};
use kinds::{
    BackendTlsPolicy, CustomResourceDefinition, Gateway, GatewayClass, Kind, ListenerSet, Namespace, Object,
    ReferenceGrant, Typed, decode_json, kind,
};
use model::{Code, ObjectRef, Translation, tls::KeyPair};
use resolve::{Certificate, KnownExtension, Rejection, Service, View, certificate::Validity};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};

/// Some objects.
pub struct World {
    pub settings: Settings,
    objects: BTreeMap<ObjectRef, Object>,
    secrets: BTreeMap<ObjectRef, Result<Vec<String>, Code>>,
    /// What Secrets and ConfigMaps hold as CA bundles.
    pub cas: BTreeMap<ObjectRef, Result<Arc<str>, Rejection>>,
}

impl Default for World {
    fn default() -> Self {
        let mut world = Self::without_classes();
        world.class("sesame", crate::CONTROLLER, json!({}));
        world
    }
}

/// A listener, with more fields.
pub fn listener(name: &str, protocol: &str, port: u16, more: Value) -> Value {
    merged(json!({ "name": name, "protocol": protocol, "port": port }), more)
}

fn merged(mut value: Value, more: Value) -> Value {
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    value
}

impl World {
    pub fn without_classes() -> Self {
        let own_ports = crate::OwnPorts { http: Some(8080), https: Some(8443) };
        let settings = Settings { own_ports, ..Settings::default() };
        Self { settings, objects: BTreeMap::new(), secrets: BTreeMap::new(), cas: BTreeMap::new() }
    }

    pub fn put(&mut self, kind: Kind, object: Value) {
        let decoded = decode_json(kind, object.to_string().as_bytes()).unwrap();
        self.objects.insert(decoded.object.key(), decoded.object);
    }

    pub fn class(&mut self, name: &str, controller: &str, more: Value) {
        let spec = merged(json!({ "controllerName": controller }), more);
        self.put(kind::GATEWAY_CLASS, json!({ "metadata": { "name": name }, "spec": spec }));
    }

    pub fn gateway(&mut self, name: &str, listeners: Value, more: Value) {
        self.gateway_of("sesame", name, listeners, more);
    }

    pub fn gateway_of(&mut self, class: &str, name: &str, listeners: Value, more: Value) {
        let spec = merged(json!({ "gatewayClassName": class, "listeners": listeners }), more);
        self.put(kind::GATEWAY, json!({ "metadata": { "name": name }, "spec": spec }));
    }

    /// A ListenerSet of Gateway `web`, created in that second.
    pub fn set(&mut self, namespace: &str, name: &str, created: u8, listeners: Value) {
        let parent = json!({ "name": "web", "namespace": "default" });
        let created = format!("2026-01-01T00:00:{created:02}Z");
        let meta = json!({ "name": name, "namespace": namespace, "creationTimestamp": created });
        self.put(
            kind::LISTENER_SET,
            json!({ "metadata": meta, "spec": { "parentRef": parent, "listeners": listeners } }),
        );
    }

    pub fn namespace(&mut self, name: &str, labels: Value) {
        self.put(kind::NAMESPACE, json!({ "metadata": { "name": name, "labels": labels } }));
    }

    /// A grant of a namespace to a kind in another, for Secrets.
    pub fn grant(&mut self, namespace: &str, from: (&str, &str), secret: Option<&str>) {
        let from = json!([{ "group": crate::GROUP, "kind": from.0, "namespace": from.1 }]);
        let to = json!([{ "group": "", "kind": "Secret", "name": secret }]);
        let meta = json!({ "name": "grant", "namespace": namespace });
        self.put(kind::REFERENCE_GRANT, json!({ "metadata": meta, "spec": { "from": from, "to": to } }));
    }

    /// A Secret of namespace `default` with a certificate for these names; or `namespace/name`.
    pub fn secret(&mut self, name: &str, names: &[&str]) {
        let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
        let mut names: Vec<String> = names.iter().map(ToString::to_string).collect();
        names.sort();
        self.secrets.insert(ObjectRef::new(kind::SECRET, namespace, name), Ok(names));
    }

    /// A Secret of which something is wrong.
    pub fn bad_secret(&mut self, name: &str, code: Code) {
        self.secrets.insert(ObjectRef::new(kind::SECRET, "default", name), Err(code));
    }

    pub fn merged(&mut self, gateway: &str) -> Arc<Listeners> {
        self.listeners(&ObjectRef::new(kind::GATEWAY, "default", gateway)).unwrap()
    }

    pub fn translate(&mut self, kind: Kind, name: &str) -> Option<Translation> {
        let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
        let settings = self.settings.clone();
        if kind == kind::GATEWAY_CLASS {
            class::translate(&*self.find::<GatewayClass>(&ObjectRef::new(kind, "", name))?, self, &settings)
        } else if kind == kind::GATEWAY {
            gateway::translate(&*self.find::<Gateway>(&ObjectRef::new(kind, namespace, name))?, self, &settings)
        } else {
            let id = ObjectRef::new(kind, namespace, name);
            listener_set::translate(&*self.find::<ListenerSet>(&id)?, self, &settings)
        }
    }

    pub fn find<T: Typed>(&self, id: &ObjectRef) -> Option<Arc<T>> {
        self.objects.get(id)?.get::<T>().cloned()
    }

    fn all<T: Typed>(&self) -> impl Iterator<Item = &Arc<T>> {
        self.objects.values().filter_map(Object::get::<T>)
    }
}

impl View for World {
    fn service(&mut self, namespace: &str, name: &str) -> Option<Arc<Service>> {
        let object = self.find::<kinds::Service>(&ObjectRef::new(kind::SERVICE, namespace, name))?;
        Some(Arc::new(Service::read(&object, &resolve::Settings::default())))
    }

    fn certificate(&mut self, id: &ObjectRef) -> Option<Arc<Result<Certificate, Rejection>>> {
        let certificate = match self.secrets.get(id)? {
            Ok(names) => Ok(Certificate {
                pair: KeyPair { chain: "".into(), key: "".into() },
                validity: Validity { not_before: 0, not_after: i64::MAX, notice: None },
                names: names.iter().map(|name| name.as_str().into()).collect(),
            }),
            Err(code) => Err(Rejection::new(*code, format!("{id} is bad"))),
        };
        Some(Arc::new(certificate))
    }

    fn ca(&mut self, id: &ObjectRef) -> Option<Arc<Result<Arc<str>, Rejection>>> {
        Some(Arc::new(self.cas.get(id)?.clone()))
    }

    fn crls(&mut self, _: &ObjectRef) -> Option<Arc<Result<resolve::RevocationLists, Rejection>>> {
        None
    }

    fn is_own_namespace(&mut self, namespace: &str) -> bool {
        namespace == "projectsesame"
    }

    fn delegated(&mut self, _: &ObjectRef, _: &str) -> bool {
        false
    }

    fn grants(&mut self, of: &str, _: Kind, _: &str) -> Vec<Arc<ReferenceGrant>> {
        self.all::<ReferenceGrant>().filter(|grant| *grant.meta.namespace == *of).cloned().collect()
    }

    fn extension(&mut self, _: &ObjectRef) -> Option<Arc<KnownExtension>> {
        None
    }
}

impl GatewayView for World {
    fn class(&mut self, name: &str) -> Option<Arc<GatewayClass>> {
        self.find(&ObjectRef::new(kind::GATEWAY_CLASS, "", name))
    }

    fn definitions(&mut self, group: &str) -> Vec<Arc<CustomResourceDefinition>> {
        let all = self.all::<CustomResourceDefinition>();
        all.filter(|definition| CustomResourceDefinition::group(&definition.meta.name) == group).cloned().collect()
    }

    fn gateway(&mut self, gateway: &ObjectRef) -> Option<Arc<Gateway>> {
        self.find(gateway)
    }

    fn listener_set(&mut self, set: &ObjectRef) -> Option<Arc<ListenerSet>> {
        self.find(set)
    }

    fn sets_of(&mut self, gateway: &ObjectRef) -> Vec<Arc<ListenerSet>> {
        let sets = self.all::<ListenerSet>().filter(|set| listeners::parent(set).as_ref() == Some(gateway));
        sets.cloned().collect()
    }

    fn listeners(&mut self, gateway: &ObjectRef) -> Option<Arc<Listeners>> {
        let gateway = GatewayView::gateway(self, gateway)?;
        let settings = self.settings.clone();
        class::owns(&gateway, self, &settings).then(|| listeners::merge(&gateway, self, &settings).into())
    }

    fn route_listeners(&mut self, owner: &ObjectRef) -> Option<Arc<Vec<Listener>>> {
        let gateway = match owner.kind == kind::LISTENER_SET {
            true => listeners::parent(&*GatewayView::listener_set(self, owner)?)?,
            false => owner.clone(),
        };
        let listeners = GatewayView::listeners(self, &gateway)?.for_routes(owner);
        Some(Arc::new(listeners))
    }

    fn listener_certificates(&mut self, listener: &Listener) -> Option<Arc<ListenerTls>> {
        let settings = self.settings.clone();
        Some(Arc::new(tls::of(listener, self, &settings)))
    }

    fn backend_certificate(&mut self, gateway: &ObjectRef) -> Option<Arc<BackendCertificate>> {
        let gateway = GatewayView::gateway(self, gateway)?;
        backend_certificate::of(&gateway, self).map(Arc::new)
    }

    fn namespace(&mut self, name: &str) -> Option<Arc<Namespace>> {
        self.find(&ObjectRef::new(kind::NAMESPACE, "", name))
    }

    fn policies_in_effect(&mut self, service: &ObjectRef) -> InEffect {
        tls_policy::in_effect(service, self.all::<BackendTlsPolicy>())
    }

    fn tls_policy(&mut self, policy: &ObjectRef) -> Option<Arc<BackendTlsPolicy>> {
        self.find(policy)
    }
}
