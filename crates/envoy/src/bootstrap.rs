//! The bootstrap: what an Envoy is started with, everything else comes from the xDS server.
//!
//! In: [`Bootstrap`], what the operator chose. Out: [`Rendered`], the message and the SDS files beside it.
//!
//! What we chose for everyone, and why:
//! - One delta ADS stream carries all types, so that order between types can be kept and an edit costs its own size.
//! - Envoy waits for its server as long as it takes: the usual 15 seconds after which it goes on with nothing would make
//!   it ready, and refuse all traffic, whenever it starts before its server.
//! - Reconnects come quickly (see [`upstream`]): a restarted server has its proxies back within seconds.
//! - Statistics are few and lazily made (see [`stats`]): they dominate Envoy's start-up and memory at scale.
//! - The admin interface is a Unix socket, exempt from connection limits, so that it answers when the proxy is full.

mod stats;
mod tls;
mod token;
mod upstream;

use std::path::{Path, PathBuf};
use std::time::Duration;

use envoy_api::envoy::config::bootstrap::v3 as api;
use envoy_api::envoy::config::bootstrap::v3::{LayeredRuntime, RuntimeLayer, runtime_layer};
use envoy_api::envoy::config::core::v3 as core;
use envoy_api::envoy::config::overload::v3 as overload;
use envoy_api::envoy::extensions::regex_engines::v3::GoogleRe2;
use envoy_api::envoy::extensions::resource_monitors::downstream_connections::v3::DownstreamConnectionsConfig;
use envoy_api::envoy::extensions::resource_monitors::fixed_heap::v3::FixedHeapConfig;
use envoy_api::google::protobuf::value::Kind;
use envoy_api::google::protobuf::{Struct, Value};
use envoy_api::{Name, any};
use model::FleetName;

use crate::name;

pub use stats::Stats;
pub use tls::{CertificateFiles, Tls, Token};
pub use upstream::{DnsFamily, XdsServer};

/// The value of `--component-log-level` that Envoy is started with. Envoy warns at every change of a listener that the matchers by
/// which TLS connections find their chain (`ServerNameMatcher`, `IPMatcher`) are marked as work in progress. That is known, and said
/// once in docs/architecture.md; nobody can do anything about it at night.
pub const COMPONENT_LOG_LEVEL: &str = "misc:error";

/// The owner of the admin socket and its group may use it: the shutdown sidecar runs under the same group.
const ADMIN_SOCKET_MODE: u32 = 0o660;

/// What the operator chose for an Envoy.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    /// Who this Envoy is.
    pub node: Node,
    /// Where its configuration comes from.
    pub server: XdsServer,
    /// How the connection there is secured; nothing for development without TLS.
    pub tls: Option<Tls>,
    /// The Unix socket of the admin interface.
    pub admin_socket: PathBuf,
    /// Limits on the whole process.
    pub overload: Overload,
    /// Which statistics exist.
    pub stats: Stats,
}

/// What is to be written to disk.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The bootstrap itself.
    pub bootstrap: api::Bootstrap,
    /// Files that the bootstrap points to, in JSON.
    pub files: Vec<(PathBuf, serde_json::Value)>,
}

impl Bootstrap {
    /// Builds the message and the files it points to.
    pub fn render(&self) -> Rendered {
        let tls = self.tls.as_ref().map(tls::transport_socket);
        let (filters, ca_expirations): (Vec<_>, &[i64]) = match &self.tls {
            Some(Tls::Token(token)) => (token::filters(token), &token.ca_expirations),
            Some(Tls::Certificate(_)) | None => (Vec::new(), &[]),
        };
        let bootstrap = api::Bootstrap {
            node: node_message(&self.node, ca_expirations),
            static_resources: Some(api::bootstrap::StaticResources {
                clusters: vec![upstream::xds(&self.server, tls, filters), upstream::admin(&self.admin_socket)],
                ..Default::default()
            }),
            dynamic_resources: Some(dynamic_resources()),
            layered_runtime: Some(runtime_layers()),
            admin: Some(admin(&self.admin_socket)),
            overload_manager: overload_manager(&self.overload),
            stats_config: Some(stats::config(self.stats, &self.server)),
            deferred_stat_options: Some(api::bootstrap::DeferredStatOptions { enable_deferred_creation_stats: true }),
            default_regex_engine: Some(core::TypedExtensionConfig {
                name: "envoy.regex_engines.google_re2".to_owned(),
                typed_config: Some(any(&GoogleRe2 {})),
            }),
            ..Default::default()
        };
        Rendered { bootstrap, files: self.tls.as_ref().map(tls::files).unwrap_or_default() }
    }
}

fn dynamic_resources() -> api::bootstrap::DynamicResources {
    api::bootstrap::DynamicResources {
        lds_config: Some(over_ads()),
        cds_config: Some(over_ads()),
        ads_config: Some(upstream::ads()),
        ..Default::default()
    }
}

/// A subscription on the one ADS stream that waits for its first answer without limit.
fn over_ads() -> core::ConfigSource {
    core::ConfigSource { initial_fetch_timeout: Some(Duration::ZERO.into()), ..name::on_this_stream() }
}

fn admin(socket: &Path) -> api::Admin {
    api::Admin {
        address: Some(upstream::pipe(&text(socket), ADMIN_SOCKET_MODE)),
        ignore_global_conn_limit: true,
        ..Default::default()
    }
}

/// Paths in Envoy's configuration are text.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The key in the node's metadata under which an Envoy says its fleet, as `<namespace>/<name>`. An Envoy without it
/// belongs to the fleet that its client certificate names, or to the shared one.
pub const FLEET_KEY: &str = "sesame.fleet";

/// The key under which an Envoy with a token says when the CAs in its bootstrap expire: seconds since 1970, with commas between.
pub const CA_EXPIRATIONS_KEY: &str = "sesame.ca-expirations";

/// Who an Envoy is. What is left out may be given to Envoy itself by `--service-node` and `--service-cluster`, which also
/// win over what stands here.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Its own name; in Kubernetes the pod's.
    pub id: Option<String>,
    /// The name of the group it belongs to, for statistics and logs.
    pub cluster: Option<String>,
    /// The fleet whose configuration it asks for.
    pub fleet: Option<FleetName>,
}

fn node_message(node: &Node, ca_expirations: &[i64]) -> Option<core::Node> {
    let fleet = node.fleet.as_ref().map(|fleet| (FLEET_KEY, fleet.to_string()));
    let cas: Vec<String> = ca_expirations.iter().map(i64::to_string).collect();
    let cas = (!cas.is_empty()).then(|| (CA_EXPIRATIONS_KEY, cas.join(",")));
    if node.id.is_none() && node.cluster.is_none() && fleet.is_none() && cas.is_none() {
        return None;
    }
    let fields = fleet.into_iter().chain(cas).map(|(key, text)| (key.to_owned(), text.as_str().into()));
    let metadata = Struct { fields: fields.collect() };
    Some(core::Node {
        id: node.id.clone().unwrap_or_default(),
        cluster: node.cluster.clone().unwrap_or_default(),
        metadata: (!metadata.fields.is_empty()).then_some(metadata),
        ..Default::default()
    })
}

/// Regular expressions are checked for size before they are sent; Envoy's own limit of 100 would refuse a route that
/// people can write, so it only warns.
pub(crate) const RUNTIME_VALUES: [(&str, f64); 2] =
    [("re2.max_program_size.error_level", 1_048_576.0), ("re2.max_program_size.warn_level", 1000.0)];

/// Runtime values: ours, then the server's, then what an operator sets by hand through the admin interface.
fn runtime_layers() -> LayeredRuntime {
    let values = RUNTIME_VALUES.map(|(key, value)| (key.to_owned(), Value { kind: Some(Kind::NumberValue(value)) }));
    LayeredRuntime {
        layers: vec![
            layer("static", runtime_layer::LayerSpecifier::StaticLayer(Struct { fields: values.into() })),
            layer(
                name::RUNTIME,
                runtime_layer::LayerSpecifier::RtdsLayer(runtime_layer::RtdsLayer {
                    name: name::RUNTIME.to_owned(),
                    rtds_config: Some(over_ads()),
                }),
            ),
            layer("admin", runtime_layer::LayerSpecifier::AdminLayer(runtime_layer::AdminLayer {})),
        ],
    }
}

fn layer(name: &str, specifier: runtime_layer::LayerSpecifier) -> RuntimeLayer {
    RuntimeLayer { name: name.to_owned(), layer_specifier: Some(specifier) }
}

const HEAP_MONITOR: &str = "envoy.resource_monitors.fixed_heap";
const CONNECTION_MONITOR: &str = "envoy.resource_monitors.global_downstream_max_connections";

/// How often pressure is looked at.
const PRESSURE_REFRESH: Duration = Duration::from_millis(250);

/// Limits on the whole process; none unless set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overload {
    /// Bytes of heap: at 95 % unused memory is given back, at 98 % new requests are refused with 503.
    pub max_heap: Option<u64>,
    /// Connections from clients over all listeners; more are closed as they come.
    pub max_downstream_connections: Option<u32>,
}

fn overload_manager(limits: &Overload) -> Option<overload::OverloadManager> {
    let mut manager =
        overload::OverloadManager { refresh_interval: Some(PRESSURE_REFRESH.into()), ..Default::default() };
    if let Some(max_heap_size_bytes) = limits.max_heap {
        let heap = FixedHeapConfig { max_heap_size_bytes, ..Default::default() };
        manager.resource_monitors.push(monitor(HEAP_MONITOR, &heap));
        manager.actions.push(above("envoy.overload_actions.shrink_heap", HEAP_MONITOR, 0.95));
        manager.actions.push(above("envoy.overload_actions.stop_accepting_requests", HEAP_MONITOR, 0.98));
    }
    if let Some(limit) = limits.max_downstream_connections {
        let connections = DownstreamConnectionsConfig { max_active_downstream_connections: limit.into() };
        manager.resource_monitors.push(monitor(CONNECTION_MONITOR, &connections));
    }
    (!manager.resource_monitors.is_empty()).then_some(manager)
}

fn monitor<M: Name>(name: &str, config: &M) -> overload::ResourceMonitor {
    overload::ResourceMonitor {
        name: name.to_owned(),
        config_type: Some(overload::resource_monitor::ConfigType::TypedConfig(any(config))),
    }
}

fn above(action: &str, monitor: &str, value: f64) -> overload::OverloadAction {
    overload::OverloadAction {
        name: action.to_owned(),
        triggers: vec![overload::Trigger {
            name: monitor.to_owned(),
            trigger_oneof: Some(overload::trigger::TriggerOneof::Threshold(overload::ThresholdTrigger { value })),
        }],
        ..Default::default()
    }
}

#[cfg(test)]
mod tests;
