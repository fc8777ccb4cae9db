//! The fleets that Gateways have of their own: a row for each, for whoever provisions proxies.

use super::listeners::GatewayListeners;
use crate::{objects::Objects, settings::ForGateways};
use dialect_gateway::fleet::{self, FleetState, OwnFleet};
use engine::{Derived, Input, Reads, Table};
use kinds::Gateway;
use model::ObjectRef;
use std::sync::Arc;

/// The fleet of each Gateway that has one of its own.
pub struct GatewayFleets;

impl Table for GatewayFleets {
    type Key = ObjectRef;
    type Value = OwnFleet;
    const NAME: &'static str = "fleets of gateways";
}

/// What is known of the fleet of each Gateway that has one of its own: said by whoever provisions proxies.
pub struct FleetStates;

impl Table for FleetStates {
    type Key = ObjectRef;
    type Value = FleetState;
    const NAME: &'static str = "states of fleets";
}

impl Input for FleetStates {}

/// The fleet of a Gateway and what is known of it, if it has one of its own. What was said about an earlier Gateway of that name is not
/// about this one.
pub fn state(gateway: &ObjectRef, reads: &mut Reads<'_>) -> Option<(Arc<OwnFleet>, Arc<FleetState>)> {
    let own = reads.get::<GatewayFleets>(gateway)?.clone();
    let state = reads.get::<FleetStates>(gateway).filter(|state| state.uid == own.uid)?.clone();
    Some((own, state))
}

impl Derived for GatewayFleets {
    fn compute(&self, key: &ObjectRef, reads: &mut Reads<'_>) -> Option<OwnFleet> {
        let listeners = reads.get::<GatewayListeners>(key)?;
        let gateway = reads.get::<Objects<Gateway>>(key)?;
        fleet::own(gateway, listeners, reads.get::<ForGateways>(&())?)
    }
}
