//! Objects, and the view of them that a route gets.

pub use crate::tests::world::listener;

use crate::{route, tests::world::World as Objects, tls_policy};
use kinds::{BackendTlsPolicy, GrpcRoute, HttpRoute, Kind, TcpRoute, TlsRoute, UdpRoute, kind};
use model::{
    Code, ObjectRef, Translation,
    route::{Action, Forward, Route},
    status::{Condition, StatusFacts, StatusValue},
};
use serde_json::{Value, json};
use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

/// A Gateway `web` with a listener `http` for every host on port 80, the Service `app` with ports 80 (`http`), 81 (`h2c`) and 53
/// (`dns`, UDP), the Secrets `cert` and `pending`, and whatever is put in.
pub struct World(Objects);

impl Deref for World {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        &self.0
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Objects {
        &mut self.0
    }
}

/// A reference to a port of a Service.
pub fn backend(name: &str, port: u16) -> Value {
    json!({ "name": name, "port": port })
}

impl World {
    pub fn new() -> Self {
        let mut world = Self(Objects::default());
        world.settings = crate::Settings::default();
        world.secret("cert", &[]);
        world.bad_secret("pending", Code::SecretPending);
        world.gateway("web", json!([listener("http", "HTTP", 80, json!({}))]));
        world.service("default", "app");
        world
    }

    pub fn gateway(&mut self, name: &str, listeners: Value) {
        self.0.gateway(name, listeners, json!({}));
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
        let (id, world) = (ObjectRef::new(kind, "default", name), &mut self.0);
        if let Some(object) = world.find::<HttpRoute>(&id) {
            route::http::translate(&object, world, &settings)
        } else if let Some(object) = world.find::<GrpcRoute>(&id) {
            route::grpc::translate(&object, world, &settings)
        } else if let Some(object) = world.find::<TlsRoute>(&id) {
            route::stream::tls(&object, world, &settings)
        } else if let Some(object) = world.find::<TcpRoute>(&id) {
            route::stream::tcp(&object, world, &settings)
        } else if let Some(object) = world.find::<UdpRoute>(&id) {
            route::stream::udp(&object, world, &settings)
        } else {
            tls_policy::translate(&world.find::<BackendTlsPolicy>(&id).unwrap(), world, &settings)
        }
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
