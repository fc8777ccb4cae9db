//! Gateway API, wired: classes, the listeners of each Gateway, ListenerSets, grants, routes, policies.
//!
//! Listeners have [tables of their own](listeners), so that a certificate or a grant of a Gateway wakes no route, and a route wakes no
//! Gateway. How many routes are attached is asked when the status is decided, by an index ([`crate::facts::AttachedTo`]).

mod fleets;
mod listeners;

pub use fleets::{FleetStates, GatewayFleets};

use self::listeners::{
    BackendCertificates, GatewayListeners, GatewaysByOwner, ListenerCertificates, RouteListeners, SetsByGateway,
    TerminatedByListener,
};
use super::Dialect;
use crate::{
    facts::{AttachedTo, TranslationsByBackend},
    objects::Objects,
    ports::ActiveListeners,
    settings::ForGateways,
    translations::Translations,
    view::TableView,
};
use dialect_gateway::{
    GatewayView, Listener, Listeners, class,
    gateway::{self, backend_certificate::BackendCertificate, tls::ListenerTls},
    listener_set, route, status,
    tls_policy::{self, InEffect},
};
use engine::{Derived, Index, Reads, Table};
use kinds::{
    BackendTlsPolicy, CustomResourceDefinition, Gateway, GatewayClass, GrpcRoute, HttpRoute, Kind, ListenerSet,
    Namespace, TcpRoute, TlsRoute, UdpRoute, kind,
};
use model::{ObjectRef, Translation, status::StatusFacts, translation::Section};
use std::{collections::BTreeSet, sync::Arc};

/// Gateway API.
pub struct GatewayDialect;

impl Dialect for GatewayDialect {
    fn translates(&self) -> &'static [Kind] {
        &[
            kind::GATEWAY_CLASS,
            kind::GATEWAY,
            kind::LISTENER_SET,
            kind::HTTP_ROUTE,
            kind::GRPC_ROUTE,
            kind::TLS_ROUTE,
            kind::TCP_ROUTE,
            kind::UDP_ROUTE,
            kind::BACKEND_TLS_POLICY,
        ]
    }

    fn looks_up(&self) -> &'static [Kind] {
        &[kind::NAMESPACE, kind::CONFIG_MAP, kind::CUSTOM_RESOURCE_DEFINITION]
    }

    fn declare(&self, pipeline: &mut engine::Pipeline, fetched_secrets: bool) {
        pipeline.index::<DefinitionsByGroup>().index::<SetsByGateway>().index::<PoliciesByService>();
        pipeline.derived(GatewayListeners).each::<Objects<Gateway>>().fans_out();
        pipeline.derived(RouteListeners).per::<GatewaysByOwner>().fans_out();
        pipeline.derived(ListenerCertificates { fetched_secrets }).per::<TerminatedByListener>().fans_out();
        pipeline.derived(BackendCertificates { fetched_secrets }).each::<GatewayListeners>().fans_out();
        pipeline.input::<FleetStates>();
        pipeline.derived(GatewayFleets).each::<GatewayListeners>().output();
        pipeline.derived(PoliciesInEffect).per::<PoliciesByService>().fans_out();
    }

    fn translate(&self, object: &ObjectRef, view: &mut TableView<'_, '_>) -> Option<Translation> {
        let settings = view.reads().get::<ForGateways>(&())?;
        match object.kind {
            kind if kind == kind::GATEWAY_CLASS => {
                class::translate(&*view.get::<GatewayClass>(object)?, view, settings)
            }
            kind if kind == kind::GATEWAY => gateway::translate(&*view.get::<Gateway>(object)?, view, settings),
            kind if kind == kind::LISTENER_SET => {
                listener_set::translate(&*view.get::<ListenerSet>(object)?, view, settings)
            }
            kind if kind == kind::HTTP_ROUTE => {
                Some(route::http::translate(&*view.get::<HttpRoute>(object)?, view, settings))
            }
            kind if kind == kind::GRPC_ROUTE => {
                Some(route::grpc::translate(&*view.get::<GrpcRoute>(object)?, view, settings))
            }
            kind if kind == kind::TLS_ROUTE => {
                Some(route::stream::tls(&*view.get::<TlsRoute>(object)?, view, settings))
            }
            kind if kind == kind::TCP_ROUTE => {
                Some(route::stream::tcp(&*view.get::<TcpRoute>(object)?, view, settings))
            }
            kind if kind == kind::UDP_ROUTE => {
                Some(route::stream::udp(&*view.get::<UdpRoute>(object)?, view, settings))
            }
            _ => Some(tls_policy::translate(&*view.get::<BackendTlsPolicy>(object)?, view, settings)),
        }
    }

    fn exceeds(&self, object: &ObjectRef, routes: usize, view: &mut TableView<'_, '_>) -> bool {
        if object.kind == kind::HTTP_ROUTE {
            return view.get::<HttpRoute>(object).is_some_and(|route| route::http::size(&route) > routes);
        }
        object.kind == kind::GRPC_ROUTE
            && view.get::<GrpcRoute>(object).is_some_and(|route| route::grpc::size(&route) > routes)
    }

    fn awaits_facts(&self, object: &ObjectRef, reads: &mut Reads<'_>) -> bool {
        object.kind == kind::GATEWAY
            && reads.get::<GatewayFleets>(object).is_some()
            && fleets::state(object, reads).is_none()
    }

    fn facts(&self, object: &ObjectRef, facts: &StatusFacts, reads: &mut Reads<'_>) -> Option<StatusFacts> {
        let gateway = if object.kind == kind::GATEWAY {
            object.clone()
        } else if object.kind == kind::LISTENER_SET {
            dialect_gateway::listeners::parent(reads.get::<Objects<ListenerSet>>(object)?)?
        } else if object.kind == kind::BACKEND_TLS_POLICY {
            let policy = reads.get::<Objects<BackendTlsPolicy>>(object)?;
            let services: BTreeSet<_> = tls_policy::targets(policy).map(|(service, _)| service).collect();
            return Some(tls_policy::complete(facts, gateways_of(&services, reads)));
        } else {
            return None;
        };
        let merged = reads.get::<GatewayListeners>(&gateway)?;
        let is_gateway = object.kind == kind::GATEWAY;
        let sets = is_gateway.then(|| attached_sets(object, merged, reads));
        let state = fleets::state(object, reads);
        let facts = status::complete(facts, sets, |name| {
            let section = Section { object: object.clone(), name: name.into() };
            status::Outside {
                attached: reads.probe::<AttachedTo>(&section).len(),
                has_port: has_port(object, name, merged, reads),
            }
        });
        Some(match state {
            Some((own, state)) => status::of_fleet(facts, &own, &state),
            None => facts,
        })
    }
}

/// Whether a listener has its port.
fn has_port(owner: &ObjectRef, name: &str, listeners: &Listeners, reads: &mut Reads<'_>) -> bool {
    let listener = listeners.of(owner).find(|listener| *listener.name == *name);
    listener.is_some_and(|listener| reads.get::<ActiveListeners>(&listener.id).is_some())
}

/// How many ListenerSets are attached to a Gateway: those that are accepted, which one without any port is not.
fn attached_sets(gateway: &ObjectRef, listeners: &Listeners, reads: &mut Reads<'_>) -> usize {
    let whole = Section { object: gateway.clone(), name: "".into() };
    let sets: Vec<_> = reads.probe::<AttachedTo>(&whole).collect();
    let is_accepted = |set: &&ObjectRef| {
        let facts = reads.get::<Translations>(set).and_then(|translation| translation.facts.as_deref());
        let has_port = |name: &str| has_port(set, name, listeners, reads);
        facts.is_some_and(|facts| status::has_usable_listener(facts, has_port))
    };
    sets.into_iter().filter(is_accepted).count()
}

/// The Gateways whose routes refer to one of these Services.
fn gateways_of(services: &BTreeSet<ObjectRef>, reads: &mut Reads<'_>) -> BTreeSet<ObjectRef> {
    let mut owners = BTreeSet::new();
    for service in services {
        for (_, sections) in reads.parts::<TranslationsByBackend>(service) {
            owners.extend(sections.iter().map(|section| &section.object));
        }
    }
    let gateway = |owner: &ObjectRef| match owner.kind == kind::LISTENER_SET {
        true => dialect_gateway::listeners::parent(reads.get::<Objects<ListenerSet>>(owner)?),
        false => Some(owner.clone()),
    };
    owners.into_iter().filter_map(gateway).collect()
}

/// BackendTLSPolicies by the Services that they name.
pub struct PoliciesByService;

impl Index for PoliciesByService {
    type Of = Objects<BackendTlsPolicy>;
    type Key = ObjectRef;
    const NAME: &'static str = "by service";

    fn keys(_: &ObjectRef, policy: &BackendTlsPolicy) -> impl IntoIterator<Item = ObjectRef> {
        tls_policy::targets(policy).map(|(service, _)| service).collect::<BTreeSet<_>>()
    }
}

/// The BackendTLSPolicies that are in effect for each Service, by section. A row of its own, so that one of many that lose wakes
/// neither routes nor the others.
pub struct PoliciesInEffect;

impl Table for PoliciesInEffect {
    type Key = ObjectRef;
    type Value = InEffect;
    const NAME: &'static str = "TLS policies in effect";
}

impl Derived for PoliciesInEffect {
    fn compute(&self, service: &ObjectRef, reads: &mut Reads<'_>) -> Option<InEffect> {
        let keys: Vec<_> = reads.probe::<PoliciesByService>(service).collect();
        let policies: Vec<_> = keys.into_iter().filter_map(|key| reads.get::<Objects<BackendTlsPolicy>>(key)).collect();
        Some(tls_policy::in_effect(service, policies))
    }
}

/// CRDs by their API group.
pub struct DefinitionsByGroup;

impl Index for DefinitionsByGroup {
    type Of = Objects<CustomResourceDefinition>;
    type Key = Arc<str>;
    const NAME: &'static str = "by group";

    fn keys(key: &ObjectRef, _: &CustomResourceDefinition) -> impl IntoIterator<Item = Arc<str>> {
        [CustomResourceDefinition::group(&key.name).into()]
    }
}

impl GatewayView for TableView<'_, '_> {
    fn class(&mut self, name: &str) -> Option<Arc<GatewayClass>> {
        self.get(&ObjectRef::new(kind::GATEWAY_CLASS, "", name))
    }

    fn definitions(&mut self, group: &str) -> Vec<Arc<CustomResourceDefinition>> {
        let keys: Vec<_> = self.reads().probe::<DefinitionsByGroup>(&group.into()).collect();
        keys.into_iter().filter_map(|key| self.get(key)).collect()
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

    fn route_listeners(&mut self, owner: &ObjectRef) -> Option<Arc<Vec<Listener>>> {
        self.reads().get::<RouteListeners>(owner).cloned()
    }

    fn listener_certificates(&mut self, listener: &Listener) -> Option<Arc<ListenerTls>> {
        self.reads().get::<ListenerCertificates>(&listener.section()).cloned()
    }

    fn backend_certificate(&mut self, gateway: &ObjectRef) -> Option<Arc<BackendCertificate>> {
        self.reads().get::<BackendCertificates>(gateway).cloned()
    }

    fn namespace(&mut self, name: &str) -> Option<Arc<Namespace>> {
        self.get(&ObjectRef::new(kind::NAMESPACE, "", name))
    }

    fn policies_in_effect(&mut self, service: &ObjectRef) -> InEffect {
        self.reads().get::<PoliciesInEffect>(service).map(|policies| policies.as_ref().clone()).unwrap_or_default()
    }

    fn tls_policy(&mut self, policy: &ObjectRef) -> Option<Arc<BackendTlsPolicy>> {
        self.get(policy)
    }
}
