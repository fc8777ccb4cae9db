//! Objects, and the view of them that a route gets.

use crate::{
    GatewayView, Listener, Listeners, Settings, class,
    gateway::{
        backend_certificate::{self, BackendCertificate},
        tls::{self, ListenerTls},
    },
    listeners, route,
    tls_policy::{self, InEffect},
};
use kinds::{
    BackendTlsPolicy, CustomResourceDefinition, Gateway, GatewayClass, GrpcRoute, HttpRoute, Kind, ListenerSet,
    Namespace, Object, ReferenceGrant, TcpRoute, TlsRoute, Typed, UdpRoute, decode_json, kind,
};
use model::{
    Code, ObjectRef, Translation,
    route::{Action, Forward, Route},
    status::{Condition, StatusFacts, StatusValue},
    tls::KeyPair,
};
use resolve::{Certificate, KnownExtension, Rejection, Service, View, certificate::Validity};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};

/// A Gateway `web` with a listener `http` for every host on port 80, the Service `app` with ports 80 (`http`), 81 (`h2c`) and 53
/// (`dns`, UDP), and whatever is put in.
pub struct World {
    pub settings: Settings,
    objects: BTreeMap<ObjectRef, Object>,
    /// What Secrets and ConfigMaps hold as CA bundles.
    pub cas: BTreeMap<ObjectRef, Result<Arc<str>, Rejection>>,
}

/// A listener, with more fields.
pub fn listener(name: &str, protocol: &str, port: u16, more: Value) -> Value {
    let mut value = json!({ "name": name, "protocol": protocol, "port": port });
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    value
}

/// A reference to a port of a Service.
pub fn backend(name: &str, port: u16) -> Value {
    json!({ "name": name, "port": port })
}

impl World {
    pub fn new() -> Self {
        let mut world = Self { settings: Settings::default(), objects: BTreeMap::new(), cas: BTreeMap::new() };
        let ours = json!({ "controllerName": crate::CONTROLLER });
        world.put(kind::GATEWAY_CLASS, json!({ "metadata": { "name": "sesame" }, "spec": ours }));
        world.gateway("web", json!([listener("http", "HTTP", 80, json!({}))]));
        world.service("default", "app");
        world
    }

    pub fn put(&mut self, kind: Kind, object: Value) {
        let decoded = decode_json(kind, object.to_string().as_bytes()).unwrap();
        self.objects.insert(decoded.object.key(), decoded.object);
    }

    pub fn gateway(&mut self, name: &str, listeners: Value) {
        let spec = json!({ "gatewayClassName": "sesame", "listeners": listeners });
        self.put(kind::GATEWAY, json!({ "metadata": { "name": name }, "spec": spec }));
    }

    pub fn service(&mut self, namespace: &str, name: &str) {
        let ports = json!([
            { "name": "http", "port": 80 }, { "name": "h2c", "port": 81, "appProtocol": "kubernetes.io/h2c" },
            { "name": "dns", "port": 53, "protocol": "UDP" },
        ]);
        let meta = json!({ "name": name, "namespace": namespace });
        self.put(kind::SERVICE, json!({ "metadata": meta, "spec": { "ports": ports } }));
    }

    /// A grant of a namespace to a kind of routes in namespace `default`, for its Services.
    pub fn grant(&mut self, namespace: &str, kind: Kind) {
        let from = json!([{ "group": crate::GROUP, "kind": kind.name(), "namespace": "default" }]);
        let to = json!([{ "group": "", "kind": "Service" }]);
        let meta = json!({ "name": "grant", "namespace": namespace });
        self.put(kind::REFERENCE_GRANT, json!({ "metadata": meta, "spec": { "from": from, "to": to } }));
    }

    /// A route of that kind with parent `web`, unless the specification names others.
    pub fn route(&mut self, kind: Kind, spec: Value) -> Translation {
        let mut whole = json!({ "parentRefs": [{ "name": "web" }] });
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let meta = json!({ "name": "r", "creationTimestamp": "2026-01-01T00:00:00Z" });
        self.put(kind, json!({ "metadata": meta, "spec": whole }));
        self.translate(kind, "r")
    }

    /// An HTTPRoute with these rules.
    pub fn http(&mut self, rules: Value) -> Translation {
        self.route(kind::HTTP_ROUTE, json!({ "rules": rules }))
    }

    pub fn translate(&mut self, kind: Kind, name: &str) -> Translation {
        let settings = self.settings.clone();
        let id = ObjectRef::new(kind, "default", name);
        let object = self.objects.get(&id).unwrap().clone();
        if let Some(object) = object.get::<HttpRoute>() {
            route::http::translate(object, self, &settings)
        } else if let Some(object) = object.get::<GrpcRoute>() {
            route::grpc::translate(object, self, &settings)
        } else if let Some(object) = object.get::<TlsRoute>() {
            route::stream::tls(object, self, &settings)
        } else if let Some(object) = object.get::<TcpRoute>() {
            route::stream::tcp(object, self, &settings)
        } else if let Some(object) = object.get::<UdpRoute>() {
            route::stream::udp(object, self, &settings)
        } else {
            tls_policy::translate(object.get::<BackendTlsPolicy>().unwrap(), self, &settings)
        }
    }

    fn find<T: Typed>(&self, id: &ObjectRef) -> Option<Arc<T>> {
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
        let validity = Validity { not_before: 0, not_after: i64::MAX, notice: None };
        let pair = KeyPair { chain: "".into(), key: "".into() };
        match &*id.name {
            "cert" => Some(Arc::new(Ok(Certificate { pair, validity, names: Vec::new() }))),
            "pending" => Some(Arc::new(Err(Rejection::new(Code::SecretPending, "has not been read yet")))),
            _ => None,
        }
    }

    fn ca(&mut self, id: &ObjectRef) -> Option<Arc<Result<Arc<str>, Rejection>>> {
        self.cas.get(id).cloned().map(Arc::new)
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

    fn definitions(&mut self, _: &str) -> Vec<Arc<CustomResourceDefinition>> {
        Vec::new()
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

/// The routes in order, each once.
pub fn routes(translation: &Translation) -> Vec<&Arc<Route>> {
    let mut routes: Vec<&Arc<Route>> = translation.routes.iter().map(|piece| &piece.route).collect();
    routes.sort_by_key(|route| route.precedence.index);
    routes.dedup();
    routes
}

/// The only route, which forwards.
pub fn forward(translation: &Translation) -> Forward {
    let routes = routes(translation);
    let [only] = &routes[..] else { panic!("{} routes: {:?}", routes.len(), translation.verdicts) };
    match &only.action {
        Action::Forward(forward) => Forward::clone(forward),
        other => panic!("{other:?}"),
    }
}

/// Where a route leads, with weights; the share that cannot be used as `-`.
pub fn backends(forward: &Forward) -> Vec<(String, u32)> {
    let clusters = forward.clusters.iter().map(|share| (share.cluster.backend.to_string(), share.weight));
    clusters.chain(forward.unavailable.map(|share| ("-".to_owned(), share.weight))).collect()
}

/// The codes of all verdicts.
pub fn codes(translation: &Translation) -> Vec<Code> {
    translation.verdicts.iter().map(|verdict| verdict.code).collect()
}

/// For each entry of the only list of a status: its conditions, as `Type=Status Reason`.
pub fn conditions(facts: &StatusFacts) -> Vec<Vec<String>> {
    let [(_, entries)] = &facts.lists[..] else { panic!("one list: {facts:?}") };
    let shown = |condition: &Condition| format!("{}={} {}", condition.kind, condition.status.word(), condition.reason);
    entries.iter().map(|entry| entry.scope.conditions.iter().map(shown).collect()).collect()
}

/// The conditions of the parents of a route.
pub fn parents(translation: &Translation) -> Vec<Vec<String>> {
    conditions(translation.facts.as_ref().unwrap())
}

/// The message of a condition of the first entry.
pub fn message(translation: &Translation, kind: &str) -> String {
    let entries = &translation.facts.as_ref().unwrap().lists[0].1;
    let mut conditions = entries.iter().flat_map(|entry| &entry.scope.conditions);
    conditions.find(|condition| condition.kind == kind).map(|it| it.message.clone()).unwrap_or_default()
}

/// The names in the references of the entries.
pub fn names(translation: &Translation) -> Vec<String> {
    let entries = &translation.facts.as_ref().unwrap().lists[0].1;
    let name = |value: &StatusValue| {
        let StatusValue::Record(fields) = value else { panic!("{value:?}") };
        let found = fields.iter().find(|(field, _)| *field == "name").map(|(_, value)| value.clone());
        match found {
            Some(StatusValue::Text(text)) => text,
            other => panic!("{other:?}"),
        }
    };
    entries.iter().map(|entry| name(&entry.identity[0].1)).collect()
}

pub const FINE: [&str; 2] = ["Accepted=True Accepted", "ResolvedRefs=True ResolvedRefs"];
