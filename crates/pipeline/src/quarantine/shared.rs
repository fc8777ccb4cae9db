//! A resource that many hosts share, found by its name: route configurations, and scopes of wildcards.
//!
//! In: the name that a proxy rejected. Out: the resource as it is made now, and its hosts. Only these resources are indexed by
//! name; there is one for each chain, while a name of everything else would cost memory for each host.

use crate::{
    packing::{ExactHostsByTable, HostsByScope, RouteResources, ScopeKey, ScopeResources},
    resources::Resource,
    translations::HostKey,
};
use engine::{Engine, Index};
use model::{Host, RouteTableId};
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
    /// The one of that type and name; nothing if it belongs to one host or object, or is gone.
    pub fn find(engine: &Engine, kind: Kind, name: &Name) -> Option<Self> {
        let (table, resource) = match kind {
            Kind::Route => {
                let table = *engine.probe::<RoutesByName>(name).first()?;
                (table, engine.get::<RouteResources>(table)?)
            }
            Kind::ScopedRoute => {
                let key = *engine.probe::<SharedScopesByName>(name).first()?;
                (&key.0, engine.get::<ScopeResources>(key)?)
            }
            _ => return None,
        };
        let mut hosts = engine.probe::<HostsByScope>(&(table.clone(), Host::Any));
        if kind == Kind::Route {
            hosts.extend(engine.probe::<ExactHostsByTable>(table));
        }
        hosts.sort();
        Some(Self { resource: resource.clone(), hosts: hosts.into_iter().cloned().collect() })
    }
}

/// Route configurations by name.
struct RoutesByName;

impl Index for RoutesByName {
    type Of = RouteResources;
    type Key = Name;
    const NAME: &'static str = "by name";

    fn keys(_: &RouteTableId, resource: &Resource) -> impl IntoIterator<Item = Name> {
        [resource.name.clone()]
    }
}

/// Scopes that several hosts share, by name.
struct SharedScopesByName;

impl Index for SharedScopesByName {
    type Of = ScopeResources;
    type Key = Name;
    const NAME: &'static str = "shared, by name";

    fn keys((_, host): &ScopeKey, resource: &Resource) -> impl IntoIterator<Item = Name> {
        (*host == Host::Any).then(|| resource.name.clone())
    }
}

pub(super) fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.index::<RoutesByName>().index::<SharedScopesByName>();
}
