//! Connections that are passed on: a filter chain for each host of a TLS listener, or the only one of a plain TCP listener, the
//! clients that take it, and where it leads.
//!
//! Which clients may connect is decided with the chain, when a connection is accepted: a filter of the chain would look at
//! the first bytes of the client, after the backend was connected and may have spoken. See [`source_ip`].
//!
//! Where it leads is an extension of its own, which Envoy asks for by name: backends and their shares change without the
//! listener, and connections that stand keep their backend.

use super::{access_log, head, sni, source_ip, tls};
use crate::name;
use envoy_api::{
    Any, any,
    envoy::{
        config::{
            core::v3::{ExtensionConfigSource, TypedExtensionConfig},
            listener::v3::{Filter, FilterChain, Listener, filter::ConfigType},
        },
        extensions::filters::network::tcp_proxy::v3::{
            TcpProxy,
            tcp_proxy::{ClusterSpecifier, WeightedCluster, weighted_cluster::ClusterWeight},
        },
    },
    xds::r#type::matcher::v3::{Matcher, matcher::OnMatch},
};
use model::{
    ClusterId, ListenerId, Port, Timeout,
    listener::{ConnectionSettings, HttpSettings},
    route::IpFilter,
    tls::TcpChain,
};
use std::time::Duration;

/// How long a connection may be without a byte, as Contour has it.
const IDLE: Duration = Duration::from_secs(9001);

/// The chain of a host of a TLS listener. Nothing is said about protocols: what client and backend agree on is theirs.
pub fn chain(listener: &ListenerId, chain: &TcpChain, settings: &ConnectionSettings) -> FilterChain {
    let name = name::tcp_chain(listener, &chain.host);
    let transport_socket = chain.termination.as_ref().map(|termination| tls::passed_on(termination, settings));
    FilterChain { filters: vec![by_name(&name)], name, transport_socket, ..Default::default() }
}

/// The filter that leads on, asked for by name.
fn by_name(name: &str) -> Filter {
    let source = ExtensionConfigSource {
        config_source: Some(name::on_this_stream()),
        type_urls: vec![any(&TcpProxy::default()).type_url],
        ..Default::default()
    };
    Filter { name: name.to_owned(), config_type: Some(ConfigType::ConfigDiscovery(source)) }
}

/// What leads to the chain of a host, for the clients that may connect.
pub fn taken(listener: &ListenerId, chain: &TcpChain) -> OnMatch {
    filtered(&name::tcp_chain(listener, &chain.host), chain.ip_filter.as_ref())
}

fn filtered(chain: &str, ip_filter: Option<&IpFilter>) -> OnMatch {
    match ip_filter {
        None => sni::take(chain),
        Some(ip_filter) => source_ip::filtered(ip_filter, chain),
    }
}

/// A plain TCP listener: everything that it accepts, from the clients that may connect, goes one way.
pub fn listener(port: &Port, of: &ListenerId, ip_filter: Option<&IpFilter>) -> Listener {
    let name = name::tcp_listener(of);
    let matcher = ip_filter.map(|ip_filter| Matcher {
        on_no_match: Some(Box::new(source_ip::filtered(ip_filter, &name))),
        ..Default::default()
    });
    let chain = FilterChain { filters: vec![by_name(&name)], name, ..Default::default() };
    Listener { filter_chains: vec![chain], filter_chain_matcher: matcher, ..head(port) }
}

/// Where connections go, under the name of a [host's chain](name::tcp_chain) or a [listener](name::tcp_listener).
pub fn proxy(
    name: String,
    clusters: &[(ClusterId, u32)],
    unavailable: u32,
    idle: Timeout,
    http: &HttpSettings,
) -> TypedExtensionConfig {
    TypedExtensionConfig { name, typed_config: Some(config(clusters, unavailable, idle, http)) }
}

fn config(clusters: &[(ClusterId, u32)], unavailable: u32, idle: Timeout, http: &HttpSettings) -> Any {
    let cluster = match (clusters, unavailable) {
        ([], _) => ClusterSpecifier::Cluster(name::NO_CLUSTER.to_owned()),
        ([(only, _)], 0) => ClusterSpecifier::Cluster(name::cluster(only)),
        (shares, unavailable) => {
            let share = |name, weight| ClusterWeight { name, weight, ..Default::default() };
            let clusters = shares.iter().map(|(cluster, weight)| share(name::cluster(cluster), *weight));
            let no_cluster = (unavailable > 0).then(|| share(name::NO_CLUSTER.to_owned(), unavailable));
            let clusters = clusters.chain(no_cluster);
            ClusterSpecifier::WeightedClusters(WeightedCluster { clusters: clusters.collect() })
        }
    };
    any(&TcpProxy {
        stat_prefix: "ingress_tcp".to_owned(),
        cluster_specifier: Some(cluster),
        idle_timeout: Some(match idle {
            Timeout::Default => IDLE.into(),
            // None at all.
            Timeout::Infinite => Duration::ZERO.into(),
            Timeout::After(span) => span.max(Duration::from_millis(1)).into(),
        }),
        access_log: access_log::of_connections(&http.access_log),
        ..Default::default()
    })
}
