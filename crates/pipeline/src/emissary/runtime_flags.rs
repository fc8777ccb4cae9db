//! Runtime values that the Module in effect has for the proxies of the shared fleet.

use super::Modules;
use crate::settings::ForEmissary;
use engine::Reads;
use model::FleetId;
use std::{collections::BTreeMap, sync::Arc};

/// The values for a fleet.
pub fn of_fleet(fleet: &FleetId, reads: &mut Reads<'_>) -> BTreeMap<Arc<str>, Arc<str>> {
    if *fleet != FleetId::Shared {
        return BTreeMap::new();
    }
    let settings = reads.get::<ForEmissary>(&());
    let module = reads.get::<Modules>(&());
    module.zip(settings).map(|(module, settings)| module.runtime_flags(settings)).unwrap_or_default()
}
