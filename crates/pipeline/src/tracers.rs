//! Who gets the spans of each fleet.
//!
//! In: the settings of fleets, and the extensions that they name. Out: a tracer for each fleet that traces requests, and why it
//! gets no spans, where that is so. The listeners of a fleet carry the tracer, so a change of the operator's settings is one of
//! listeners; an extension that comes or goes is one only if its server name or its timeout is another.

use crate::{
    extensions::{self, ExtensionName},
    settings::Fleets,
};
use engine::{Derived, Reads, Table};
use kinds::kind;
use model::{Code, FleetId, ObjectRef, cluster::Extension, listener::Tracer};
use resolve::Rejection;

/// The tracer of a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracerRow {
    /// What proxies are told.
    pub tracer: Tracer,
    /// Why no spans are sent.
    pub problem: Option<Rejection>,
}

/// The tracers of fleets.
pub struct Tracers;

impl Table for Tracers {
    type Key = FleetId;
    type Value = TracerRow;
    const NAME: &'static str = "tracers";
}

impl Derived for Tracers {
    fn compute(&self, fleet: &FleetId, reads: &mut Reads<'_>) -> Option<TracerRow> {
        let (named, tracing) = reads.get::<Fleets>(fleet)?.tracing.clone()?;
        let (collector, problem) = match extensions::find(&named, reads) {
            Ok(found) => (found, None),
            Err(problem) => {
                if problem.code == Code::SecretPending {
                    reads.set_pending();
                }
                let ExtensionName { namespace, name } = named;
                let object = ObjectRef::new(kind::CONTOUR_EXTENSION_SERVICE, namespace, name);
                (Extension::absent(object), Some(problem))
            }
        };
        Some(TracerRow { tracer: Tracer { tracing, collector }, problem })
    }
}

/// Declares the table.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.derived(Tracers).each::<Fleets>();
}
