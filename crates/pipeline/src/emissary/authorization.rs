//! The AuthServices of the instance as one row, which the slot of every port of the shared fleet reads; Mappings read only whether
//! there is one and whether it can be asked, so an edit of it is no edit of theirs.

use super::Emissary;
use crate::{
    settings::{ForAuthorization, ForEmissary},
    view::TableView,
};
use dialect_emissary::{AuthServiceInEffect, Settings, auth_service::AuthServices, module};
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
/// operator's `globalExtAuth` authorizes Mappings instead. Where it is configured and authorizes none of them, AuthServices that may
/// not take its place close them.
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
        let objects = super::all::<AuthService>(reads);
        let global = reads.get::<ForAuthorization>(&()).and_then(|global| global.as_ref().as_ref());
        // With `authPolicy.disabled` the operator's server is asked only about routes that say so, which a Mapping cannot.
        let is_guarded = global.is_some_and(|global| !global.settings.disabled);
        // What takes the place of the operator's own server stands where the operator alone writes.
        let may_be_asked = global.is_none() || objects.iter().any(|(name, _)| settings.trusts(name));
        if objects.is_empty() || (is_guarded && !may_be_asked) {
            let all = of_module(is_guarded, settings, reads)?;
            return Some(AuthServicesRow { all, secrets: Vec::new() });
        }
        let objects = objects.iter().map(|(_, object)| &**object);
        if !may_be_asked {
            return Some(AuthServicesRow { all: AuthServices::not_operators(objects)?, secrets: Vec::new() });
        }
        let mut view = TableView::new(reads, self.fetched_secrets);
        let all = AuthServices::of(objects, &mut view, settings)?;
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

/// The Module that closes what nobody guards.
fn of_module(is_guarded: bool, settings: &Settings, reads: &mut Reads<'_>) -> Option<AuthServices> {
    let named = reads.scan::<Emissary<Module>>().into_iter().filter(|module| *module.name == *AUTHENTICATION);
    let named = named.filter(|module| !is_guarded || settings.trusts(module)).cloned();
    let modules: Vec<_> = named.filter_map(|name| reads.get::<Emissary<Module>>(&name)).collect();
    module::authentication(modules.iter().map(|module| &*module.object), settings).map(AuthServices::closed)
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
