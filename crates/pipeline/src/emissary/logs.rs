//! The LogServices of the instance as one row: the ports of the shared fleet read who is sent the access log, and no route does.

use crate::{settings::ForEmissary, view::TableView};
use dialect_emissary::log_service::LogServices;
use engine::{Derived, Reads, Table};
use kinds::emissary::LogService;
use model::{FleetId, ObjectRef, listener::AccessLogServers};
use std::sync::Arc;

/// The LogServices of the instance, and the Secrets that they ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogServicesRow {
    /// Those in effect, and what is told about all of them.
    pub all: LogServices,
    /// The Secrets that were looked for, whether they were there or not.
    pub secrets: Vec<ObjectRef>,
}

/// The LogServices of the instance; nothing where there is none.
pub struct EmissaryLogServices {
    /// Whether Secrets are [brought on reference](crate::Settings::fetched_secrets).
    pub fetched_secrets: bool,
}

impl Table for EmissaryLogServices {
    type Key = ();
    type Value = LogServicesRow;
    const NAME: &'static str = "log services of Emissary";
}

impl Derived for EmissaryLogServices {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<LogServicesRow> {
        let settings = reads.get::<ForEmissary>(&())?;
        let objects: Vec<Arc<LogService>> = super::all(reads).into_iter().map(|(_, object)| object).collect();
        let mut view = TableView::new(reads, self.fetched_secrets);
        let all = LogServices::of(objects.iter().map(|object| &**object), &mut view, settings)?;
        let secrets = view.into_secrets();
        if all.is_pending {
            reads.set_pending();
        }
        Some(LogServicesRow { all, secrets })
    }

    /// Entries go where they went until the Secret is read.
    fn while_pending(&self, good: &Arc<LogServicesRow>, computed: Option<LogServicesRow>) -> Arc<LogServicesRow> {
        match computed {
            Some(LogServicesRow { all, secrets }) => {
                let LogServices { http, tcp, objects, .. } = good.all.clone();
                Arc::new(LogServicesRow { all: LogServices { http, tcp, objects, ..all }, secrets })
            }
            None => Arc::clone(good),
        }
    }
}

/// Who is sent the access log of a fleet because objects say so.
pub struct FleetLogServers;

impl Table for FleetLogServers {
    type Key = ();
    type Value = AccessLogServers;
    const NAME: &'static str = "access log servers of Emissary";
}

impl Derived for FleetLogServers {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<AccessLogServers> {
        let LogServices { http, tcp, .. } = &reads.get::<EmissaryLogServices>(&())?.all;
        Some(AccessLogServers { http: http.clone(), tcp: tcp.clone() })
    }
}

/// Who is sent the access log of a fleet.
pub fn of_fleet(fleet: &FleetId, reads: &mut Reads<'_>) -> Option<Arc<AccessLogServers>> {
    if *fleet != FleetId::Shared {
        return None;
    }
    reads.get::<FleetLogServers>(&()).cloned()
}

/// The objects that name them.
pub fn objects(fleet: &FleetId, reads: &mut Reads<'_>) -> Vec<ObjectRef> {
    if *fleet != FleetId::Shared {
        return Vec::new();
    }
    reads.get::<EmissaryLogServices>(&()).map(|row| row.all.objects.clone()).unwrap_or_default()
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, fetched_secrets: bool) {
    pipeline.derived(EmissaryLogServices { fetched_secrets }).always(());
    pipeline.derived(FleetLogServers).always(());
}
