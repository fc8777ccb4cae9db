//! What a fleet has because of the operator's settings alone: runtime values, and the secrets of its metrics listener.

use crate::{
    ports::{PortRow, Ports},
    resources::Resource,
    settings::{FleetSettings, Fleets},
    withheld::WithheldRows,
};
use engine::{Derived, Index, Reads, Table};
use envoy::{name, runtime};
use model::{FleetId, PortId, PortProtocol};
use xds::Kind;

/// The ports of a fleet whose connections are counted.
pub struct PortsByFleet;

impl Index for PortsByFleet {
    type Of = Ports;
    type Key = FleetId;
    const NAME: &'static str = "by fleet";

    fn keys(id: &PortId, port: &PortRow) -> impl IntoIterator<Item = FleetId> {
        (port.protocol != PortProtocol::Udp).then(|| id.fleet().clone())
    }
}

/// The runtime values of each fleet that has any.
pub struct RuntimeResources;

impl Table for RuntimeResources {
    type Key = FleetId;
    type Value = Resource;
    const NAME: &'static str = "runtime resources";
}

impl Derived for RuntimeResources {
    fn compute(&self, fleet: &FleetId, reads: &mut Reads<'_>) -> Option<Resource> {
        let settings = reads.get::<Fleets>(fleet)?.runtime.clone();
        let limited = settings.max_connections.is_some();
        let ports = limited.then(|| reads.probe::<PortsByFleet>(fleet)).into_iter().flatten();
        let message = runtime::layer(&settings, ports.map(name::port))?;
        let resource = Resource::new(name::RUNTIME.to_owned(), &message).in_fleet(fleet);
        Some(resource.unless_held(Kind::Runtime, reads))
    }
}

/// The name of the runtime values of a fleet.
pub fn runtime_name(_: &FleetId) -> String {
    name::RUNTIME.to_owned()
}

/// A secret of the metrics listener of a fleet.
pub type MetricsSecret = (FleetId, &'static str);

/// Fleets by the secrets of their metrics listener.
pub struct MetricsSecrets;

impl Index for MetricsSecrets {
    type Of = Fleets;
    type Key = MetricsSecret;
    const NAME: &'static str = "by metrics secret";

    fn keys(fleet: &FleetId, settings: &FleetSettings) -> impl IntoIterator<Item = MetricsSecret> {
        use envoy::listener::admin::{METRICS_CA, METRICS_CERTIFICATE};
        let tls = settings.metrics.and(settings.metrics_tls.as_ref());
        let names = tls.map(|tls| [Some(METRICS_CERTIFICATE), tls.ca.as_ref().map(|_| METRICS_CA)]);
        names.into_iter().flatten().flatten().map(|name| (fleet.clone(), name)).collect::<Vec<_>>()
    }
}

/// The secrets of metrics listeners: where Envoy finds the files.
pub struct MetricsSecretResources;

impl Table for MetricsSecretResources {
    type Key = MetricsSecret;
    type Value = Resource;
    const NAME: &'static str = "metrics secret resources";
}

impl Derived for MetricsSecretResources {
    fn compute(&self, (fleet, name): &MetricsSecret, reads: &mut Reads<'_>) -> Option<Resource> {
        let tls = reads.get::<Fleets>(fleet)?.metrics_tls.clone()?;
        let secret = tls.secrets().into_iter().find(|secret| secret.name == *name)?;
        let resource = Resource::new(secret.name.clone(), &secret).in_fleet(fleet);
        Some(resource.unless_held(Kind::Secret, reads))
    }
}

/// The name of a secret of a metrics listener.
pub fn secret_name((_, name): &MetricsSecret) -> String {
    (*name).to_owned()
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.index::<PortsByFleet>();
    pipeline.derived(RuntimeResources).each::<Fleets>().output();
    pipeline.derived(MetricsSecretResources).per::<MetricsSecrets>().output();
    pipeline.index::<WithheldRows<RuntimeResources>>();
    pipeline.index::<WithheldRows<MetricsSecretResources>>();
}
