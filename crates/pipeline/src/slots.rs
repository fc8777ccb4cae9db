//! What fills the slots of protecting filters on a port: see [`envoy::listener::slots`].
//!
//! In: the ports whose requests are looked at. Out: a resource for each of their slots, also for those that are empty: an
//! Envoy that comes back asks for what it has, and is sent nothing again.

pub mod jwt;

use crate::{
    extensions::{self, ExtensionName},
    hosts::ChainsByListener,
    ports::{PortSettings, Ports},
    resources::Resource,
    settings::Fleets,
    withheld::WithheldRows,
};
use engine::{Derived, Index, Reads, Table};
use envoy::{
    listener::slots::{self, Slot},
    name,
};
use kinds::kind;
use model::{ObjectRef, Port, PortId, PortProtocol, cluster::Extension};
use xds::{Kind, Ref};

/// A slot of a port.
pub type SlotKey = (PortId, Slot);

/// Ports by their slots.
pub struct SlotsOfPorts;

impl Index for SlotsOfPorts {
    type Of = PortSettings;
    type Key = SlotKey;
    const NAME: &'static str = "by slot";

    fn keys(id: &PortId, port: &Port) -> impl IntoIterator<Item = SlotKey> {
        let slots: &[Slot] = match port.protocol {
            PortProtocol::Http | PortProtocol::Tls => &Slot::ALL,
            PortProtocol::Tcp | PortProtocol::Udp => &[],
        };
        slots.iter().map(|slot| (id.clone(), *slot)).collect::<Vec<_>>()
    }
}

/// What fills the slots.
pub struct SlotResources;

impl Table for SlotResources {
    type Key = SlotKey;
    type Value = Resource;
    const NAME: &'static str = "slot resources";
}

impl Derived for SlotResources {
    fn compute(&self, (id, slot): &SlotKey, reads: &mut Reads<'_>) -> Option<Resource> {
        let port = reads.get::<Ports>(id)?;
        // Envoy asks for the slots of chains that it has.
        let has_chain = port.protocol == PortProtocol::Http
            || port.listeners.iter().any(|(listener, _)| reads.probe::<ChainsByListener>(listener).len() > 0);
        if !has_chain {
            return None;
        }
        let filled = match slot {
            Slot::JwtAuthn(_) => jwt::filled(id, *slot, port, reads),
            Slot::RateLimit => rate_limit(id, reads),
            Slot::ExtAuthz => None,
        };
        Some(filled.unwrap_or_else(|| {
            let empty = Resource::new(name::slot(id, *slot), &slot.empty(id));
            Resource { idle: true, ..empty }
        }))
    }
}

/// The filter of global rate limits, in a fleet that has a service. One that cannot be used is asked all the same: requests
/// are denied, or let through if the operator says so.
fn rate_limit(port: &PortId, reads: &mut Reads<'_>) -> Option<Resource> {
    let fleet = reads.get::<Fleets>(port.fleet())?.clone();
    let (named, service) = fleet.rate_limit_service.as_ref()?;
    let (extension, refs) = match extensions::find(named, reads) {
        Ok(found) => {
            let refs = vec![Ref::To(Kind::Cluster, name::cluster(&found.cluster).into())];
            (found, refs)
        }
        Err(_) => {
            let ExtensionName { namespace, name } = named.clone();
            let object = ObjectRef::new(kind::CONTOUR_EXTENSION_SERVICE, namespace, name);
            (Extension::absent(object), Vec::new())
        }
    };
    let message = slots::rate_limit::filled(port, service, &extension);
    Some(Resource { refs, ..Resource::new(message.name.clone(), &message) })
}

/// The name of what fills a slot.
pub fn slot_name((port, slot): &SlotKey) -> String {
    name::slot(port, *slot)
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline) {
    jwt::declare(pipeline);
    pipeline.derived(SlotResources).per::<SlotsOfPorts>().output();
    pipeline.index::<WithheldRows<SlotResources>>();
}
