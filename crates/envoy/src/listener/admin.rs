//! Envoy's own pages for others: readiness and metrics for the cluster, a read-only part of the admin interface for
//! whoever has a shell on the node.
//!
//! The admin interface itself listens on a Unix socket, because some of its pages change or stop the proxy.

use super::{filters, keepalive};
use crate::{endpoints::socket, name};
use envoy_api::{
    any,
    envoy::{
        config::{
            listener::v3::{Filter, FilterChain, Listener, filter::ConfigType},
            route::v3::{
                HeaderMatcher, Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost,
                header_matcher::HeaderMatchSpecifier, route::Action, route_action::ClusterSpecifier,
                route_match::PathSpecifier,
            },
        },
        extensions::filters::{
            http::router::v3::Router,
            network::http_connection_manager::v3::{
                HttpConnectionManager,
                http_connection_manager::{CodecType, RouteSpecifier},
            },
        },
        r#type::matcher::v3::{StringMatcher, string_matcher::MatchPattern},
    },
};
use std::net::{IpAddr, Ipv4Addr};

/// What the readiness and metrics listener shows.
const STATS: [&str; 3] = ["/ready", "/stats", "/stats/prometheus"];
/// What the read-only listener shows.
const READ_ONLY: [&str; 11] = [
    "/certs",
    "/clusters",
    "/config_dump",
    "/listeners",
    "/memory",
    "/ready",
    "/runtime",
    "/server_info",
    "/stats",
    "/stats/prometheus",
    "/stats/recentlookups",
];

/// Readiness and metrics, on an address that probes and scrapers reach. It answers whatever the connection limit says.
pub fn stats(address: IpAddr, port: u16) -> Listener {
    Listener { ignore_global_conn_limit: true, ..pages("stats-health", address, port, &STATS) }
}

/// The pages of the admin interface that change nothing, on loopback.
pub fn read_only(port: u16) -> Listener {
    pages("envoy-admin", Ipv4Addr::LOCALHOST.into(), port, &READ_ONLY)
}

fn pages(name: &str, address: IpAddr, port: u16, paths: &[&str]) -> Listener {
    let routes = RouteConfiguration {
        name: name.to_owned(),
        virtual_hosts: vec![VirtualHost {
            name: name.to_owned(),
            domains: vec!["*".to_owned()],
            routes: paths.iter().map(|path| page(path)).collect(),
            ..Default::default()
        }],
        ..Default::default()
    };
    let manager = HttpConnectionManager {
        stat_prefix: name.to_owned(),
        codec_type: CodecType::Auto.into(),
        route_specifier: Some(RouteSpecifier::RouteConfig(routes)),
        http_filters: vec![filters::filter("envoy.filters.http.router", any(&Router::default()))],
        normalize_path: Some(true.into()),
        ..Default::default()
    };
    Listener {
        name: name.to_owned(),
        address: Some(socket(&address.to_string(), port)),
        socket_options: keepalive(),
        filter_chains: vec![FilterChain {
            filters: vec![Filter {
                name: "envoy.filters.network.http_connection_manager".to_owned(),
                config_type: Some(ConfigType::TypedConfig(any(&manager))),
            }],
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn page(path: &str) -> Route {
    let get = HeaderMatcher {
        name: ":method".to_owned(),
        header_match_specifier: Some(HeaderMatchSpecifier::StringMatch(StringMatcher {
            match_pattern: Some(MatchPattern::Exact("GET".to_owned())),
            ..Default::default()
        })),
        ..Default::default()
    };
    Route {
        r#match: Some(RouteMatch {
            path_specifier: Some(PathSpecifier::Path(path.to_owned())),
            headers: vec![get],
            ..Default::default()
        }),
        action: Some(Action::Route(RouteAction {
            cluster_specifier: Some(ClusterSpecifier::Cluster(name::ADMIN_CLUSTER.to_owned())),
            ..Default::default()
        })),
        ..Default::default()
    }
}
