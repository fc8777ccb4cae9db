//! The AuthServices of the instance as one row, which the slot of every port of the shared fleet reads; Mappings read only whether
//! there is one and whether it can be asked, so an edit of it is no edit of theirs.

use super::Emissary;
use crate::{
    settings::{ForAuthorization, ForEmissary},
    view::TableView,
};
use dialect_emissary::{AuthServiceInEffect, auth_service::AuthServices, module};
use engine::{Derived, Reads, Table};
use kinds::emissary::{AuthService, Module, module::AUTHENTICATION};
use model::{FleetId, ObjectRef, listener::AuthorizationService};
use std::sync::Arc;

/// The AuthServices of the instance, and the Secrets that they ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthServicesRow {
    /// All of them as one.
    pub all: AuthServices,
    /// The Secrets that were looked for, whether they were there or not.
    pub secrets: Vec<ObjectRef>,
}

/// The AuthServices of the instance, or the Module that is one in its older form; nothing where there is none, and where the
/// operator's `globalExtAuth` holds instead.
pub struct EmissaryAuthServices {
    /// Whether Secrets are [brought on reference](crate::Settings::fetched_secrets).
    pub fetched_secrets: bool,
}

impl Table for EmissaryAuthServices {
    type Key = ();
    type Value = AuthServicesRow;
    const NAME: &'static str = "authorization services of Emissary";
}

impl Derived for EmissaryAuthServices {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<AuthServicesRow> {
        let settings = reads.get::<ForEmissary>(&())?;
        let mut objects: Vec<Arc<AuthService>> = super::all(reads).into_iter().map(|(_, object)| object).collect();
        let is_operators = |namespace: &str| settings.cross_namespace || *namespace == *settings.namespace;
        // What takes the place of the operator's own server stands where the operator alone writes.
        let global = reads.get::<ForAuthorization>(&()).and_then(|global| global.as_ref().as_ref());
        if global.is_some() && !objects.iter().any(|object| is_operators(&object.meta.namespace)) {
            objects.clear();
        }
        if objects.is_empty() {
            // A Module closes what nobody guards: also where the operator's server is asked only about routes that say so, which
            // a Mapping cannot.
            let is_guarded = global.is_some_and(|global| !global.settings.disabled);
            let named = reads.scan::<Emissary<Module>>().into_iter().filter(|module| *module.name == *AUTHENTICATION);
            let named = named.filter(|module| !is_guarded || is_operators(&module.namespace)).cloned();
            let modules: Vec<_> = named.filter_map(|name| reads.get::<Emissary<Module>>(&name)).collect();
            let module = module::authentication(modules.iter().map(|module| &*module.object), settings)?;
            return Some(AuthServicesRow { all: AuthServices::closed(module), secrets: Vec::new() });
        }
        let mut view = TableView::new(reads, self.fetched_secrets);
        let all = AuthServices::of(objects.iter().map(|object| &**object), &mut view, settings)?;
        let secrets = view.into_secrets();
        if all.is_pending {
            reads.set_pending();
        }
        Some(AuthServicesRow { all, secrets })
    }

    /// What proxies ask stays what it was until the Secret is read.
    fn while_pending(&self, good: &Arc<AuthServicesRow>, computed: Option<AuthServicesRow>) -> Arc<AuthServicesRow> {
        match computed {
            Some(AuthServicesRow { all, secrets }) => {
                let AuthServices { object, service, .. } = good.all.clone();
                Arc::new(AuthServicesRow { all: AuthServices { object, service, ..all }, secrets })
            }
            None => Arc::clone(good),
        }
    }
}

/// What Mappings know about it.
pub struct EmissaryAuthService;

impl Table for EmissaryAuthService {
    type Key = ();
    type Value = AuthServiceInEffect;
    const NAME: &'static str = "authorization service of Emissary";
}

impl Derived for EmissaryAuthService {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<AuthServiceInEffect> {
        Some(reads.get::<EmissaryAuthServices>(&())?.all.in_effect())
    }
}

/// The authorization server of a fleet, if it has one: one that cannot be asked refuses all requests about which it is to be asked.
pub fn of_fleet(fleet: &FleetId, reads: &mut Reads<'_>) -> Option<AuthorizationService> {
    if *fleet != FleetId::Shared {
        return None;
    }
    let row = reads.get::<EmissaryAuthServices>(&())?;
    Some(row.all.service.clone().unwrap_or_else(AuthorizationService::closed))
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, fetched_secrets: bool) {
    pipeline.derived(EmissaryAuthServices { fetched_secrets }).always(());
    pipeline.derived(EmissaryAuthService).always(()).fans_out();
}
