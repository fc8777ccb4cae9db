//! What a fleet has by itself, whatever routes there are: runtime values, the token buckets of its access logs, and the secrets of its
//! metrics listener.

use crate::{
    emissary::runtime_flags,
    listeners::ListenerResources,
    ports::{PortRow, PortSettings, Ports},
    resources::Resource,
    settings::{FleetSettings, Fleets},
    withheld::WithheldRows,
};
use engine::{Derived, Index, Reads, Table};
use envoy::{listener::access_log::handshakes, name, runtime};
use model::{FleetId, Port, PortId, PortProtocol};
use std::num::NonZeroU32;
use xds::Kind;

/// The ports of a fleet whose connections are counted.
pub struct PortsByFleet;

impl Index for PortsByFleet {
    type Of = Ports;
    type Key = FleetId;
    const NAME: &'static str = "by fleet";

    fn keys(id: &PortId, port: &PortRow) -> impl IntoIterator<Item = FleetId> {
        (port.protocol != PortProtocol::Udp && port.plaintext_of.is_none()).then(|| id.fleet().clone())
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
        let settings = reads.get::<Fleets>(fleet)?.runtime.clone().with_defaults(runtime_flags::of_fleet(fleet, reads));
        let limited = settings.max_connections.is_some();
        let ports = limited.then(|| reads.probe::<PortsByFleet>(fleet)).into_iter().flatten();
        let message = runtime::layer(&settings, ports.map(name::port))?;
        let resource = Resource::new(name::RUNTIME.to_owned(), &message).in_fleet(fleet);
        Some(resource.unless_withheld(Kind::Runtime, reads))
    }
}

/// The name of the runtime values of a fleet.
pub fn runtime_name(_: &FleetId) -> String {
    name::RUNTIME.to_owned()
}

/// A token bucket of a fleet: how many lines a second it has.
pub type TokenBucketKey = (FleetId, NonZeroU32);

/// TLS ports by the token bucket of their access log.
pub struct TokenBuckets;

impl Index for TokenBuckets {
    type Of = PortSettings;
    type Key = TokenBucketKey;
    const NAME: &'static str = "by token bucket";

    fn keys(id: &PortId, port: &Port) -> impl IntoIterator<Item = TokenBucketKey> {
        let limit = handshakes::limit(&port.http.access_log).filter(|_| port.protocol == PortProtocol::Tls);
        limit.map(|limit| (id.fleet().clone(), limit))
    }
}

/// The token buckets that listeners refer to. A listener waits for its bucket, so there is one for as long as a listener has it.
pub struct TokenBucketResources;

impl Table for TokenBucketResources {
    type Key = TokenBucketKey;
    type Value = Resource;
    const NAME: &'static str = "token bucket resources";
}

impl Derived for TokenBucketResources {
    fn compute(&self, key: &TokenBucketKey, reads: &mut Reads<'_>) -> Option<Resource> {
        let mut ports = reads.probe::<TokenBuckets>(key);
        let (fleet, limit) = key;
        let bucket = || Resource::new(name::handshake_log(*limit), &handshakes::token_bucket(*limit)).in_fleet(fleet);
        ports.any(|port| reads.get::<ListenerResources>(port).is_some()).then(bucket)
    }
}

/// The name of a token bucket.
pub fn token_bucket_name((_, limit): &TokenBucketKey) -> String {
    name::handshake_log(*limit)
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
        Some(resource.unless_withheld(Kind::Secret, reads))
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
    pipeline.derived(TokenBucketResources).per::<TokenBuckets>().output();
    pipeline.derived(MetricsSecretResources).per::<MetricsSecrets>().output();
    pipeline.index::<WithheldRows<RuntimeResources>>();
    pipeline.index::<WithheldRows<MetricsSecretResources>>();
}
