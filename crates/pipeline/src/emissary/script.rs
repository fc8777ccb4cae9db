//! The script of the Module in effect, which the slot of every port of the shared fleet has; Mappings read only whether there is one.

use super::Modules;
use crate::settings::ForEmissary;
use engine::Reads;
use model::{FleetId, ObjectRef};
use std::sync::Arc;

/// The script of a fleet and the object that has it, where there is one that may be run.
pub fn of_fleet(fleet: &FleetId, reads: &mut Reads<'_>) -> Option<(ObjectRef, Arc<str>)> {
    if *fleet != FleetId::Shared {
        return None;
    }
    let settings = reads.get::<ForEmissary>(&())?;
    let module = reads.get::<Modules>(&())?;
    Some((module.object.clone(), module.script(settings)?))
}
