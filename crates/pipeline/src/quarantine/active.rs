//! Which of the withheld targets are in effect: what is made of the objects now is the version that is withheld.
//!
//! In: the withheld rows of every table of resources. Out: a row for each target in effect. An edit that ends one removes its
//! row, which is how [`Quarantine`](super::Quarantine) learns of it without asking about every target after every batch.

use super::shared;
use crate::{
    holders::HolderResources,
    listeners::ListenerResources,
    packing::{EncodedHosts, RouteResources, ScopeResources},
    redirects::RedirectScopes,
    resources::{
        CaResources, ClusterResources, EndpointResources, HostSecretResources, SecretResources, StreamResources,
        TcpResources, UdpClusterResources, UdpEndpointResources,
    },
    withheld::{FleetTarget, WithheldRows, WithheldVersions, Withholdable},
};
use engine::{Derived, Reads, Table};
use xds::Kind;

/// The targets that are withheld in the version that is made now.
pub struct ActiveTargets;

impl Table for ActiveTargets {
    type Key = FleetTarget;
    type Value = ();
    const NAME: &'static str = "active withheld targets";
}

impl Derived for ActiveTargets {
    fn compute(&self, target: &FleetTarget, reads: &mut Reads<'_>) -> Option<()> {
        let is_active = match target.target.kind {
            _ if target.target.host.is_some() => any::<EncodedHosts>(target, reads),
            Kind::Cluster => {
                any::<ClusterResources>(target, reads)
                    || any::<HolderResources>(target, reads)
                    || any::<UdpClusterResources>(target, reads)
            }
            Kind::Endpoints => any::<EndpointResources>(target, reads) || any::<UdpEndpointResources>(target, reads),
            Kind::Secret => {
                any::<SecretResources>(target, reads)
                    || any::<HostSecretResources>(target, reads)
                    || any::<CaResources>(target, reads)
            }
            Kind::Route => any::<RouteResources>(target, reads),
            Kind::ScopedRoute => any::<ScopeResources>(target, reads) || any::<RedirectScopes>(target, reads),
            Kind::Listener => any::<ListenerResources>(target, reads),
            Kind::Extension => any::<TcpResources>(target, reads) || any::<StreamResources>(target, reads),
            Kind::Runtime | Kind::VirtualHost => false,
        };
        is_active.then_some(())
    }
}

fn any<T: Table>(target: &FleetTarget, reads: &mut Reads<'_>) -> bool
where
    T::Value: Withholdable,
{
    reads.probe::<WithheldRows<T>>(target).len() > 0
}

/// Declares the tables and indexes that a [`Quarantine`](super::Quarantine) works with.
pub fn declare(pipeline: &mut engine::Pipeline) {
    shared::declare(pipeline);
    pipeline.derived(ActiveTargets).each::<WithheldVersions>().output();
}
