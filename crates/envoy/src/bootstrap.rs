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

mod node;
mod overload;
mod runtime;
mod stats;
mod tls;
mod upstream;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use envoy_api::any;
use envoy_api::envoy::config::bootstrap::v3 as api;
use envoy_api::envoy::config::core::v3 as core;
use envoy_api::envoy::extensions::regex_engines::v3::GoogleRe2;
use serde_json::Value;

pub use node::{FLEET_KEY, Node};
pub use overload::Overload;
pub use stats::Stats;
pub use tls::Tls;
pub use upstream::{DnsFamily, XdsServer};

use crate::name;

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
    pub files: Vec<(PathBuf, Value)>,
}

impl Bootstrap {
    /// Builds the message and the files it points to.
    pub fn render(&self) -> Rendered {
        let tls = self.tls.as_ref().map(tls::transport_socket);
        let bootstrap = api::Bootstrap {
            node: node::message(&self.node),
            static_resources: Some(api::bootstrap::StaticResources {
                clusters: vec![upstream::xds(&self.server, tls), upstream::admin(&self.admin_socket)],
                ..Default::default()
            }),
            dynamic_resources: Some(dynamic_resources()),
            layered_runtime: Some(runtime::layers()),
            admin: Some(admin(&self.admin_socket)),
            overload_manager: overload::message(&self.overload),
            stats_config: Some(stats::config(self.stats)),
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
