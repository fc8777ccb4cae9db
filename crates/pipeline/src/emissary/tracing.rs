//! The TracingServices of the instance as one row: the tracer of the shared fleet reads it, and no route does.

use crate::{
    settings::{Fleets, ForEmissary},
    view::TableView,
};
use dialect_emissary::tracing_service::TracingServices;
use engine::{Derived, Reads, Table};
use kinds::emissary::TracingService;
use model::{FleetId, ObjectRef, listener::Tracer};
use std::sync::Arc;

/// The TracingServices of the instance, and the Secrets that they ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracingServicesRow {
    /// The one in effect, and what is told about all of them.
    pub all: TracingServices,
    /// The Secrets that were looked for, whether they were there or not.
    pub secrets: Vec<ObjectRef>,
}

/// The TracingServices of the instance; nothing where there is none.
pub struct EmissaryTracingServices {
    /// Whether Secrets are [brought on reference](crate::Settings::fetched_secrets).
    pub fetched_secrets: bool,
}

impl Table for EmissaryTracingServices {
    type Key = ();
    type Value = TracingServicesRow;
    const NAME: &'static str = "tracing services of Emissary";
}

impl Derived for EmissaryTracingServices {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<TracingServicesRow> {
        let settings = reads.get::<ForEmissary>(&())?;
        let objects: Vec<Arc<TracingService>> = super::all(reads).into_iter().map(|(_, object)| object).collect();
        if objects.is_empty() {
            return None;
        }
        let is_operators = reads.get::<Fleets>(&FleetId::Shared)?.tracing.is_some();
        let mut view = TableView::new(reads, self.fetched_secrets);
        let objects = objects.iter().map(|object| &**object);
        let all = TracingServices::of(objects, is_operators, &mut view, settings)?;
        let secrets = view.into_secrets();
        if all.is_pending {
            reads.set_pending();
        }
        Some(TracingServicesRow { all, secrets })
    }

    /// Spans go where they went until the Secret is read.
    fn while_pending(
        &self,
        good: &Arc<TracingServicesRow>,
        computed: Option<TracingServicesRow>,
    ) -> Arc<TracingServicesRow> {
        match computed {
            Some(TracingServicesRow { all, secrets }) => {
                let TracingServices { object, tracer, .. } = good.all.clone();
                Arc::new(TracingServicesRow { all: TracingServices { object, tracer, ..all }, secrets })
            }
            None => Arc::clone(good),
        }
    }
}

/// The tracer that objects ask for in a fleet, if there is one, and the object.
pub fn of_fleet(fleet: &FleetId, reads: &mut Reads<'_>) -> Option<(Tracer, ObjectRef)> {
    if *fleet != FleetId::Shared {
        return None;
    }
    let all = &reads.get::<EmissaryTracingServices>(&())?.all;
    Some((all.tracer.clone()?, all.object.clone()))
}

/// Declares the table.
pub fn declare(pipeline: &mut engine::Pipeline, fetched_secrets: bool) {
    pipeline.derived(EmissaryTracingServices { fetched_secrets }).always(());
}
