//! Gateway API, wired: classes, the listeners of each Gateway, ListenerSets, grants.
//!
//! [`GatewayListeners`] is a table of its own, so that a certificate or a grant of a Gateway wakes no route, and a route wakes no
//! Gateway. How many routes are attached is asked when the status is decided, by an index ([`crate::facts::AttachedTo`]).

mod fleets;

pub use fleets::{FleetStates, GatewayFleets};

use super::Dialect;
use crate::{facts::AttachedTo, objects::Objects, ports::ActiveListeners, settings::ForGateways, view::TableView};
use dialect_gateway::{GatewayView, Listeners, class, gateway, grants, listener_set, listeners, status};
use engine::{Derived, Index, Reads, Table};
use kinds::{Gateway, GatewayClass, Kind, ListenerSet, Namespace, ReferenceGrant, kind};
use model::{ObjectRef, Translation, status::StatusFacts, translation::Section};
use std::sync::Arc;

/// Gateway API.
pub struct GatewayDialect;

impl Dialect for GatewayDialect {
    fn translates(&self) -> &'static [Kind] {
        &[kind::GATEWAY_CLASS, kind::GATEWAY, kind::LISTENER_SET]
    }

    fn looks_up(&self) -> &'static [Kind] {
        &[kind::NAMESPACE, kind::REFERENCE_GRANT]
    }

    fn declare(&self, pipeline: &mut engine::Pipeline) {
        pipeline.index::<SetsByGateway>().index::<GrantsBySource>();
        pipeline.derived(GatewayListeners).each::<Objects<Gateway>>();
        pipeline.input::<FleetStates>();
        pipeline.derived(GatewayFleets).each::<GatewayListeners>().output();
    }

    fn translate(&self, object: &ObjectRef, view: &mut TableView<'_, '_>) -> Option<Translation> {
        let settings = view.reads().get::<ForGateways>(&())?;
        if object.kind == kind::GATEWAY_CLASS {
            class::translate(&*view.get::<GatewayClass>(object)?, settings)
        } else if object.kind == kind::GATEWAY {
            gateway::translate(&*view.get::<Gateway>(object)?, view, settings)
        } else {
            listener_set::translate(&*view.get::<ListenerSet>(object)?, view, settings)
        }
    }

    fn exceeds(&self, _: &ObjectRef, _: usize, _: &mut TableView<'_, '_>) -> bool {
        false
    }

    fn awaits_facts(&self, object: &ObjectRef, reads: &mut Reads<'_>) -> bool {
        reads.get::<GatewayFleets>(object).is_some() && fleets::state(object, reads).is_none()
    }

    fn facts(&self, object: &ObjectRef, facts: &StatusFacts, reads: &mut Reads<'_>) -> Option<StatusFacts> {
        let gateway = if object.kind == kind::GATEWAY {
            object.clone()
        } else if object.kind == kind::LISTENER_SET {
            listeners::parent(reads.get::<Objects<ListenerSet>>(object)?)?
        } else {
            return None;
        };
        let merged = reads.get::<GatewayListeners>(&gateway)?;
        let is_gateway = object.kind == kind::GATEWAY;
        let whole = Section { object: object.clone(), name: "".into() };
        let sets = is_gateway.then(|| reads.probe::<AttachedTo>(&whole).len());
        let state = fleets::state(object, reads);
        let facts = status::complete(facts, sets, |name| {
            let section = Section { object: object.clone(), name: name.into() };
            let listener = merged.of(object).find(|listener| *listener.name == *name);
            status::Outside {
                attached: reads.probe::<AttachedTo>(&section).len(),
                has_port: listener.is_some_and(|listener| reads.get::<ActiveListeners>(&listener.id).is_some()),
            }
        });
        Some(match state {
            Some(state) => status::of_fleet(facts, &state),
            None => facts,
        })
    }
}

/// The listeners of each Gateway that is ours, with those of its ListenerSets.
pub struct GatewayListeners;

impl Table for GatewayListeners {
    type Key = ObjectRef;
    type Value = Listeners;
    const NAME: &'static str = "listeners of gateways";
}

impl Derived for GatewayListeners {
    fn compute(&self, key: &ObjectRef, reads: &mut Reads<'_>) -> Option<Listeners> {
        let gateway = reads.get::<Objects<Gateway>>(key)?;
        let settings = reads.get::<ForGateways>(&())?;
        let mut view = TableView::new(reads, false);
        class::owns(gateway, &mut view, settings).then(|| listeners::merge(gateway, &mut view, settings))
    }
}

/// ListenerSets by the Gateway that they name as their parent.
pub struct SetsByGateway;

impl Index for SetsByGateway {
    type Of = Objects<ListenerSet>;
    type Key = ObjectRef;
    const NAME: &'static str = "by parent gateway";

    fn keys(_: &ObjectRef, set: &ListenerSet) -> impl IntoIterator<Item = ObjectRef> {
        listeners::parent(set)
    }
}

/// Who refers to what: the namespace that is referred to, and the kind and namespace of those who refer.
type Source = (Arc<str>, Kind, Arc<str>);

/// ReferenceGrants by whom they let refer to objects of their namespace.
pub struct GrantsBySource;

impl Index for GrantsBySource {
    type Of = Objects<ReferenceGrant>;
    type Key = Source;
    const NAME: &'static str = "by source";

    fn keys(key: &ObjectRef, grant: &ReferenceGrant) -> impl IntoIterator<Item = Source> {
        let mut sources: Vec<Source> = Vec::new();
        for (group, name, namespace) in grants::sources(grant) {
            let kind = kind::named(name).find(|kind| kind.group() == group);
            sources.extend(kind.map(|kind| (key.namespace.clone(), kind, namespace.into())));
        }
        sources.sort_unstable();
        sources.dedup();
        sources
    }
}

impl GatewayView for TableView<'_, '_> {
    fn class(&mut self, name: &str) -> Option<Arc<GatewayClass>> {
        self.get(&ObjectRef::new(kind::GATEWAY_CLASS, "", name))
    }

    fn gateway(&mut self, gateway: &ObjectRef) -> Option<Arc<Gateway>> {
        self.get(gateway)
    }

    fn listener_set(&mut self, set: &ObjectRef) -> Option<Arc<ListenerSet>> {
        self.get(set)
    }

    fn sets_of(&mut self, gateway: &ObjectRef) -> Vec<Arc<ListenerSet>> {
        let keys: Vec<_> = self.reads().probe::<SetsByGateway>(gateway).collect();
        keys.into_iter().filter_map(|key| self.get(key)).collect()
    }

    fn listeners(&mut self, gateway: &ObjectRef) -> Option<Arc<Listeners>> {
        self.reads().get::<GatewayListeners>(gateway).cloned()
    }

    fn namespace(&mut self, name: &str) -> Option<Arc<Namespace>> {
        self.get(&ObjectRef::new(kind::NAMESPACE, "", name))
    }

    fn grants(&mut self, of: &str, from: Kind, namespace: &str) -> Vec<Arc<ReferenceGrant>> {
        let keys: Vec<_> = self.reads().probe::<GrantsBySource>(&(of.into(), from, namespace.into())).collect();
        keys.into_iter().filter_map(|key| self.get(key)).collect()
    }
}
