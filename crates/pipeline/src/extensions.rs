//! Extensions: what is known about each, and which of them proxies use whatever their routes are.
//!
//! A filter, a route or a setting that calls an extension finds it by [`find`]: its cluster, its authority and its timeout, or the
//! reason why there is none. The cluster then exists in the fleets whose routes use it, and in those whose own settings do
//! ([`crate::FleetSettings::rate_limit_service`]); no other fleet is told of it.

use crate::{
    emissary::{authorization, logs, rate_limits, tracing},
    objects::Objects,
    settings::{Fleets, ForHttpProxies},
    view::TableView,
};
use dialect_httpproxy::extension_service::{self, ExtensionView};
use engine::{Derived, Index, Reads, Table};
use kinds::ExtensionService;
use model::{ClusterId, Code, FleetId, ObjectRef, cluster::Extension};
use resolve::{KnownExtension, Rejection};
use std::sync::Arc;

/// An extension by name, as settings refer to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtensionName {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

/// What is known about each extension. In the lane, as its cluster and its endpoints are.
pub struct KnownExtensions {
    /// Whether Secrets are [brought on reference](crate::Settings::fetched_secrets).
    pub fetched_secrets: bool,
}

impl Table for KnownExtensions {
    type Key = ObjectRef;
    type Value = KnownExtension;
    const NAME: &'static str = "known extensions";
}

impl Derived for KnownExtensions {
    fn compute(&self, key: &ObjectRef, reads: &mut Reads<'_>) -> Option<KnownExtension> {
        let object = reads.get::<Objects<ExtensionService>>(key)?.clone();
        let certificate = reads.get::<ForHttpProxies>(&())?.client_certificate.clone();
        let mut view = TableView::new(reads, self.fetched_secrets);
        let known = extension_service::read(key.kind, &object, &mut view, certificate.as_ref());
        let known = KnownExtension { secrets: view.into_secrets(), ..known };
        if is_pending(&known) {
            reads.set_pending();
        }
        Some(known)
    }

    /// It stays what it was until the Secret is read.
    fn while_pending(&self, good: &Arc<KnownExtension>, computed: Option<KnownExtension>) -> Arc<KnownExtension> {
        match computed {
            Some(computed) => Arc::new(KnownExtension { found: good.found.clone(), ..computed }),
            None => Arc::clone(good),
        }
    }
}

/// Read here, not as other certificates are: those are not in the lane.
impl ExtensionView for TableView<'_, '_> {
    fn has_certificate(&mut self, secret: &ObjectRef) -> Option<Result<(), Rejection>> {
        self.secret(secret, |secret| resolve::certificate::read(secret).map(drop))
    }
}

/// Whether an extension depends on a Secret that has not been read yet.
pub fn is_pending(known: &KnownExtension) -> bool {
    known.verdicts.iter().any(|verdict| verdict.code == Code::SecretPending)
}

/// The extension that a setting names, or why there is none.
pub fn find(ExtensionName { namespace, name }: &ExtensionName, reads: &mut Reads<'_>) -> Result<Extension, Rejection> {
    resolve::extension::find(&mut TableView::new(reads, false), namespace, name)
}

/// The clusters of the extensions that settings use, in each fleet.
pub struct FleetExtensions;

impl Table for FleetExtensions {
    type Key = FleetId;
    type Value = Vec<ClusterId>;
    const NAME: &'static str = "extensions of fleets";
}

impl Derived for FleetExtensions {
    fn compute(&self, fleet: &FleetId, reads: &mut Reads<'_>) -> Option<Vec<ClusterId>> {
        let settings = reads.get::<Fleets>(fleet)?.clone();
        let limits = settings.rate_limit_service.iter().map(|(name, _)| name);
        let names = limits.chain(settings.tracing.iter().map(|(name, _)| name));
        let mut clusters: Vec<ClusterId> = names.filter_map(|name| Some(find(name, reads).ok()?.cluster)).collect();
        let authorization = authorization::of_fleet(fleet, reads).and_then(|service| service.server.extension);
        clusters.extend(authorization.map(|extension| extension.cluster));
        let limits = rate_limits::of_fleet(fleet, reads).and_then(|(extension, _)| extension);
        clusters.extend(limits.map(|extension| extension.cluster));
        clusters.extend(tracing::of_fleet(fleet, reads).map(|(tracer, _)| tracer.collector.cluster));
        let servers = logs::of_fleet(fleet, reads).unwrap_or_default();
        clusters.extend(servers.http.iter().chain(&servers.tcp).map(|server| server.extension.cluster.clone()));
        Some(clusters)
    }
}

/// Fleets by the clusters of extensions that they use.
pub struct ExtensionsByFleet;

impl Index for ExtensionsByFleet {
    type Of = FleetExtensions;
    type Key = (FleetId, ClusterId);
    const NAME: &'static str = "by fleet and cluster";

    fn keys(fleet: &FleetId, clusters: &Vec<ClusterId>) -> impl IntoIterator<Item = (FleetId, ClusterId)> {
        let clusters = clusters.iter().filter(|_| *fleet != FleetId::Shared);
        clusters.map(|cluster| (fleet.clone(), cluster.clone())).collect::<Vec<_>>()
    }
}

/// The clusters of extensions that settings use in the shared fleet.
pub struct SharedExtensionsInUse;

impl Index for SharedExtensionsInUse {
    type Of = FleetExtensions;
    type Key = ClusterId;
    const NAME: &'static str = "by cluster";

    fn keys(fleet: &FleetId, clusters: &Vec<ClusterId>) -> impl IntoIterator<Item = ClusterId> {
        clusters.iter().filter(|_| *fleet == FleetId::Shared).cloned().collect::<Vec<_>>()
    }
}

/// The clusters of extensions that settings use in other fleets.
pub struct NamedExtensionsInUse;

impl Index for NamedExtensionsInUse {
    type Of = FleetExtensions;
    type Key = ClusterId;
    const NAME: &'static str = "by cluster of named fleets";

    fn keys(fleet: &FleetId, clusters: &Vec<ClusterId>) -> impl IntoIterator<Item = ClusterId> {
        clusters.iter().filter(|_| *fleet != FleetId::Shared).cloned().collect::<Vec<_>>()
    }
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, fetched_secrets: bool) {
    pipeline.derived(KnownExtensions { fetched_secrets }).each::<Objects<ExtensionService>>().lane().fans_out();
}

/// Declares which of them settings and services of fleets use.
pub fn declare_in_use(pipeline: &mut engine::Pipeline) {
    pipeline.derived(FleetExtensions).each::<Fleets>();
    pipeline.index::<ExtensionsByFleet>().index::<SharedExtensionsInUse>().index::<NamedExtensionsInUse>();
}
