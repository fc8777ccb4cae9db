//! A resource that many hosts share, found by its name: route configurations, and scopes of wildcards.
//!
//! In: the fleet and the name that a proxy rejected. Out: the resource as it is made now, and its hosts. Only these resources are
//! found by name; there is one for each port, while a name of everything else would cost memory for each host.

use crate::{
    packing::{ExactHostsByPort, HostsByScope, RouteResources, ScopeKey, ScopeResources},
    resources::Resource,
    translations::HostKey,
};
use engine::{Engine, Index};
use model::{FleetId, Host, PortId};
use std::sync::Arc;
use xds::{Kind, Name};

/// A shared resource and its hosts.
pub struct SharedResource {
    /// As it is made now.
    pub resource: Arc<Resource>,
    /// In order.
    pub hosts: Vec<HostKey>,
}

impl SharedResource {
    /// The one of that fleet, type and name; nothing if it belongs to one host or object, or is gone.
    pub fn find(engine: &Engine, (fleet, kind, name): &(FleetId, Kind, Name)) -> Option<Self> {
        let (port, resource) = match kind {
            Kind::Route => {
                let port = PortId::new(fleet.clone(), name.clone());
                let resource = engine.get::<RouteResources>(&port)?;
                (port, resource)
            }
            Kind::ScopedRoute => {
                let key = *engine.probe::<SharedScopesByName>(&(fleet.clone(), name.clone())).first()?;
                (key.0.clone(), engine.get::<ScopeResources>(key)?)
            }
            _ => return None,
        };
        let mut hosts = engine.probe::<HostsByScope>(&(port.clone(), Host::Any));
        if *kind == Kind::Route {
            hosts.extend(engine.probe::<ExactHostsByPort>(&port));
        }
        hosts.sort();
        Some(Self { resource: resource.clone(), hosts: hosts.into_iter().cloned().collect() })
    }
}

/// Scopes that several hosts share, by fleet and name.
struct SharedScopesByName;

impl Index for SharedScopesByName {
    type Of = ScopeResources;
    type Key = (FleetId, Name);
    const NAME: &'static str = "shared, by name";

    fn keys((port, host): &ScopeKey, resource: &Resource) -> impl IntoIterator<Item = (FleetId, Name)> {
        (*host == Host::Any).then(|| (port.fleet().clone(), resource.name.clone()))
    }
}

pub(super) fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.index::<SharedScopesByName>();
}
