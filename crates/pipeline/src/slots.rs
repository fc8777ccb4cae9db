//! What fills the slots of protecting filters on a port: see [`envoy::listener::slots`].
//!
//! In: the ports whose requests are looked at. Out: a resource for each of their slots, also for those that are empty: an
//! Envoy that comes back asks for what it has, and is sent nothing again. Slots of JWT verification belong to filter chains: [`jwt`].

mod ext_authz;
pub mod jwt;
mod rate_limit;
mod script;

use crate::{
    hosts::ChainsByListener,
    ports::{PortSettings, Ports},
    resources::Resource,
    withheld::WithheldRows,
};
use engine::{Derived, Index, Reads, Table};
use envoy::{listener::slots::Slot, name};
use model::{Port, PortId, PortProtocol};

/// A slot of a port.
pub type SlotKey = (PortId, Slot);

/// Ports by their slots.
pub struct SlotsOfPorts;

impl Index for SlotsOfPorts {
    type Of = PortSettings;
    type Key = SlotKey;
    const NAME: &'static str = "by slot";

    fn keys(id: &PortId, port: &Port) -> impl IntoIterator<Item = SlotKey> {
        let has_slots = port.protocol.has_hosts();
        let slots = has_slots.then(|| Slot::of(&port.http)).into_iter().flatten();
        slots.map(|slot| (id.clone(), slot)).collect::<Vec<_>>()
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
            Slot::ExtAuthzOfFleet => ext_authz::filled_by_fleet(id, reads),
            Slot::RateLimit => rate_limit::filled(id, reads),
            Slot::Script => script::filled(id, reads),
        };
        Some(filled.unwrap_or_else(|| {
            let empty = Resource::new(name::slot(id, *slot), &slot.empty(id));
            Resource { idle: true, ..empty }
        }))
    }
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
