//! The RateLimitServices of the instance as one row, which the slot of every port of the shared fleet reads; Mappings read only which is
//! in effect and its domain.

use crate::{
    settings::{Fleets, ForEmissary},
    view::TableView,
};
use dialect_emissary::{RateLimitServiceInEffect, rate_limit_service::RateLimitServices};
use engine::{Derived, Reads, Table};
use kinds::emissary::RateLimitService;
use model::{FleetId, ObjectRef, cluster::Extension, listener};
use std::sync::Arc;

/// The RateLimitServices of the instance, and the Secrets that they ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimitServicesRow {
    /// The one in effect, and what is told about all of them.
    pub all: RateLimitServices,
    /// The Secrets that were looked for, whether they were there or not.
    pub secrets: Vec<ObjectRef>,
}

/// The RateLimitServices of the instance; nothing where there is none.
pub struct EmissaryRateLimitServices {
    /// Whether Secrets are [brought on reference](crate::Settings::fetched_secrets).
    pub fetched_secrets: bool,
}

impl Table for EmissaryRateLimitServices {
    type Key = ();
    type Value = RateLimitServicesRow;
    const NAME: &'static str = "rate limit services of Emissary";
}

impl Derived for EmissaryRateLimitServices {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<RateLimitServicesRow> {
        let settings = reads.get::<ForEmissary>(&())?;
        let objects: Vec<Arc<RateLimitService>> = super::all(reads).into_iter().map(|(_, object)| object).collect();
        if objects.is_empty() {
            return None;
        }
        let is_operators = reads.get::<Fleets>(&FleetId::Shared)?.rate_limit_service.is_some();
        let mut view = TableView::new(reads, self.fetched_secrets);
        let objects = objects.iter().map(|object| &**object);
        let all = RateLimitServices::of(objects, is_operators, &mut view, settings)?;
        let secrets = view.into_secrets();
        if all.is_pending {
            reads.set_pending();
        }
        Some(RateLimitServicesRow { all, secrets })
    }

    /// What proxies ask stays what it was until the Secret is read.
    fn while_pending(
        &self,
        good: &Arc<RateLimitServicesRow>,
        computed: Option<RateLimitServicesRow>,
    ) -> Arc<RateLimitServicesRow> {
        match computed {
            Some(RateLimitServicesRow { all, secrets }) => {
                let RateLimitServices { in_effect, service, .. } = good.all.clone();
                Arc::new(RateLimitServicesRow { all: RateLimitServices { in_effect, service, ..all }, secrets })
            }
            None => Arc::clone(good),
        }
    }
}

/// What Mappings know about it.
pub struct EmissaryRateLimitService;

impl Table for EmissaryRateLimitService {
    type Key = ();
    type Value = RateLimitServiceInEffect;
    const NAME: &'static str = "rate limit service of Emissary";
}

impl Derived for EmissaryRateLimitService {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<RateLimitServiceInEffect> {
        Some(reads.get::<EmissaryRateLimitServices>(&())?.all.in_effect.clone())
    }
}

/// The rate limit service that objects name for a fleet, if there is one, without an extension where it cannot be called.
pub fn of_fleet(fleet: &FleetId, reads: &mut Reads<'_>) -> Option<(Option<Extension>, listener::RateLimitService)> {
    if *fleet != FleetId::Shared {
        return None;
    }
    reads.get::<EmissaryRateLimitServices>(&())?.all.service.clone()
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, fetched_secrets: bool) {
    pipeline.derived(EmissaryRateLimitServices { fetched_secrets }).always(());
    pipeline.derived(EmissaryRateLimitService).always(()).fans_out();
}
