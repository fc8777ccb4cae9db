//! Connections that are passed on: a filter chain for each host, the names and clients that take it, and where it leads.
//!
//! Which clients may connect is decided with the chain, when a connection is accepted: a filter of the chain would look at
//! the first bytes of the client, after the backend was connected and may have spoken. See [`source_ip`].
//!
//! Where it leads is an extension of its own, which Envoy asks for by name: backends and their shares change without the
//! listener, and connections that stand keep their backend.

use super::{access_log, sni, source_ip, tls};
use crate::name;
use bytes::Bytes;
use envoy_api::{
    Any, any,
    envoy::{
        config::{
            core::v3::{ExtensionConfigSource, TypedExtensionConfig},
            listener::v3::{Filter, FilterChain, filter::ConfigType},
        },
        extensions::filters::network::tcp_proxy::v3::{
            TcpProxy,
            tcp_proxy::{ClusterSpecifier, WeightedCluster, weighted_cluster::ClusterWeight},
        },
    },
};
use model::{
    Host,
    listener::{ConnectionSettings, HttpSettings},
    tls::{self as model_tls, TcpChain},
};
use std::time::Duration;

/// How long a connection may be without a byte, as Contour has it.
const IDLE: Duration = Duration::from_secs(9001);

/// The chain of a host. Nothing is said about protocols: what client and backend agree on is theirs.
pub fn chain(chain: &TcpChain, settings: &ConnectionSettings) -> FilterChain {
    let source = ExtensionConfigSource {
        config_source: Some(name::on_this_stream()),
        type_urls: vec![any(&TcpProxy::default()).type_url],
        ..Default::default()
    };
    let proxy = Filter { name: name::tcp_chain(&chain.host), config_type: Some(ConfigType::ConfigDiscovery(source)) };
    FilterChain {
        name: name::tcp_chain(&chain.host),
        filters: vec![proxy],
        transport_socket: chain.termination.as_ref().map(|termination| tls::terminated(termination, settings, &[])),
        ..Default::default()
    }
}

/// The name that leads to the chain of a host, for the clients that may connect; encoded.
pub fn names(chain: &TcpChain) -> Bytes {
    let name = name::tcp_chain(&chain.host);
    let on_match = match &chain.clients {
        None => sni::take(&name),
        Some(clients) => source_ip::filtered(clients, &name),
    };
    sni::leading(std::slice::from_ref(&chain.host), on_match)
}

/// Where the connections of a host go.
pub fn proxy(host: &Host, proxy: &model_tls::TcpProxy, http: &HttpSettings) -> TypedExtensionConfig {
    let name = name::tcp_chain(host);
    TypedExtensionConfig { name, typed_config: Some(config(proxy, http)) }
}

fn config(proxy: &model_tls::TcpProxy, http: &HttpSettings) -> Any {
    let cluster = match &proxy.clusters[..] {
        [] => ClusterSpecifier::Cluster(name::NOWHERE.to_owned()),
        [(only, _)] => ClusterSpecifier::Cluster(name::cluster(only)),
        shares => {
            let clusters = shares.iter().map(|(cluster, weight)| ClusterWeight {
                name: name::cluster(cluster),
                weight: *weight,
                ..Default::default()
            });
            ClusterSpecifier::WeightedClusters(WeightedCluster { clusters: clusters.collect() })
        }
    };
    any(&TcpProxy {
        stat_prefix: "ingress_tcp".to_owned(),
        cluster_specifier: Some(cluster),
        idle_timeout: Some(IDLE.into()),
        access_log: access_log::access_log(&http.access_log),
        ..Default::default()
    })
}
