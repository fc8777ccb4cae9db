//! Holder clusters: clusters without endpoints and without traffic that keep the certificates of TLS hosts loaded.
//!
//! In: the names of on-demand secrets. Out: a cluster whose upstream TLS context has an on-demand certificate selector that
//! prefetches them. Envoy has one SDS subscription for each secret, whoever uses it, so the first handshake for a host
//! finds its certificate, and needs no xDS server. A list in the listener's own selector would do the same, but every change
//! of it would drain the chain.
//!
//! `removed` takes a secret from its holder as well, and only a changed holder prefetches it again: so a holder lists exactly the
//! secrets that there are.

use crate::listener::tls;
use envoy_api::{
    any,
    envoy::{
        config::{
            cluster::v3::{
                Cluster,
                cluster::{ClusterDiscoveryType, DiscoveryType},
            },
            core::v3::{TransportSocket, TypedExtensionConfig, transport_socket::ConfigType},
            endpoint::v3::ClusterLoadAssignment,
        },
        extensions::transport_sockets::tls::{
            cert_mappers::static_name::v3::StaticName,
            v3::{CommonTlsContext, UpstreamTlsContext},
        },
    },
};

/// The name of all holders in statistics, so that thousands of them make one set of series.
const STATS: &str = "tls_holders";

/// The secret that a connection of a holder would ask for; it makes none, and there is none.
const NO_SECRET: &str = "_";

/// The holder of these secrets.
pub fn holder(name: &str, secrets: Vec<String>) -> Cluster {
    let mapper = TypedExtensionConfig {
        name: "envoy.tls.upstream_certificate_mappers.static_name".to_owned(),
        typed_config: Some(any(&StaticName { name: NO_SECRET.to_owned() })),
    };
    let context = UpstreamTlsContext {
        common_tls_context: Some(CommonTlsContext {
            custom_tls_certificate_selector: Some(tls::on_demand(mapper, secrets)),
            ..Default::default()
        }),
        ..Default::default()
    };
    Cluster {
        name: name.to_owned(),
        alt_stat_name: STATS.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Static.into())),
        load_assignment: Some(ClusterLoadAssignment { cluster_name: name.to_owned(), ..Default::default() }),
        transport_socket: Some(TransportSocket {
            name: "envoy.transport_sockets.tls".to_owned(),
            config_type: Some(ConfigType::TypedConfig(any(&context))),
        }),
        ..Default::default()
    }
}
