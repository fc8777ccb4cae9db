//! Who gets the spans of each fleet.
//!
//! In: the settings of fleets, and the extensions that they name; where they name none, what objects ask for. Out: a tracer for each
//! fleet that traces requests, and why it gets no spans, where that is so. The listeners of a fleet carry the tracer, so a change of the
//! settings is one of listeners; an extension that comes or goes is one only if its server name or its timeout is another.

use crate::{
    emissary,
    extensions::{self, ExtensionName},
    settings::Fleets,
};
use engine::{Derived, Reads, Table};
use kinds::kind;
use model::{
    Code, FleetId, ObjectRef,
    cluster::Extension,
    listener::{Exporter, Tracer},
};
use resolve::Rejection;

/// The tracer of a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracerRow {
    /// What proxies are told.
    pub tracer: Tracer,
    /// Why no spans are sent.
    pub problem: Option<Rejection>,
    /// The object that asks for it, where it is not the operator's settings.
    pub object: Option<ObjectRef>,
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
        let Some((named, tracing)) = reads.get::<Fleets>(fleet)?.tracing.clone() else {
            let (tracer, object) = emissary::tracing::of_fleet(fleet, reads)?;
            return Some(TracerRow { tracer, problem: None, object: Some(object) });
        };
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
        Some(TracerRow { tracer: Tracer { tracing, collector, exporter: Exporter::Otlp }, problem, object: None })
    }
}

/// Declares the table.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.derived(Tracers).each::<Fleets>();
}
