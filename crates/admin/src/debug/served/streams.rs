//! Connections and datagrams that proxies pass on without looking into them.
//!
//! In: the snapshot of a fleet. Out: each host of a TLS listener, and each TCP or UDP listener, that is passed on, the object that it
//! comes from and where it leads. They are told by the names that `envoy::name` gives them: extensions `tcp:LISTENER/HOST` and
//! `tcp-listener:LISTENER`, clusters `udp:LISTENER`.

use super::RouteView;
use envoy_api::{
    Message,
    envoy::{
        config::core::v3::TypedExtensionConfig,
        extensions::filters::network::tcp_proxy::v3::{TcpProxy, tcp_proxy::ClusterSpecifier},
    },
};
use serde_json::{Value, json};
use xds::{Entry, Kind, Snapshot};

/// What is passed on.
pub(super) struct Stream<'s> {
    pub listener: String,
    /// The server name; empty where it does not matter.
    pub host: String,
    pub kind: Kind,
    pub entry: &'s Entry,
    pub route: RouteView,
}

/// Everything of a fleet that is passed on.
pub(super) fn find(snapshot: &Snapshot) -> impl Iterator<Item = Stream<'_>> {
    let of = |kind: Kind| snapshot.table(kind).iter().map(move |entry| (kind, &**entry));
    of(Kind::Extension).chain(of(Kind::Cluster)).filter_map(|(kind, entry)| {
        let (listener, host, action) = match kind {
            Kind::Extension => {
                let (listener, host) = match entry.name.strip_prefix("tcp:") {
                    Some(name) => name.rsplit_once('/')?,
                    None => (entry.name.strip_prefix("tcp-listener:")?, ""),
                };
                (listener, host, json!({ "tcp_proxy": backends(entry)? }))
            }
            _ => (entry.name.strip_prefix("udp:")?, "", json!({ "udp_proxy": { "cluster": &*entry.name } })),
        };
        let matches = if host.is_empty() { json!({}) } else { json!({ "server_name": host }) };
        let route = entry.origin.as_ref().map(ToString::to_string).unwrap_or_default();
        let route = RouteView { route, matches, action };
        Some(Stream { listener: listener.to_owned(), host: host.to_owned(), kind, entry, route })
    })
}

/// The clusters that connections go to, with their weights.
fn backends(entry: &Entry) -> Option<Value> {
    let config = TypedExtensionConfig::decode(entry.body.clone()).ok()?.typed_config?;
    Some(match TcpProxy::decode(&*config.value).ok()?.cluster_specifier? {
        ClusterSpecifier::Cluster(cluster) => json!({ "cluster": cluster }),
        ClusterSpecifier::WeightedClusters(all) => {
            let clusters = all.clusters.iter().map(|share| json!({ "name": share.name, "weight": share.weight }));
            json!({ "weighted_clusters": clusters.collect::<Vec<_>>() })
        }
    })
}
