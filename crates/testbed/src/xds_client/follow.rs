//! What a resource points at: the names that an Envoy asks for when it has been given one.

use bytes::Bytes;
use envoy_api::envoy::config::cluster::v3::Cluster;
use envoy_api::envoy::config::cluster::v3::cluster::{ClusterDiscoveryType, DiscoveryType};
use envoy_api::envoy::config::core::v3::{TransportSocket, transport_socket};
use envoy_api::envoy::config::listener::v3::{Filter, FilterChain, Listener, filter};
use envoy_api::envoy::config::route::v3::{RouteConfiguration, ScopedRouteConfiguration};
use envoy_api::envoy::extensions::common::matching::v3::ExtensionWithMatcher;
use envoy_api::envoy::extensions::filters::http::composite::v3::ExecuteFilterAction;
use envoy_api::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, HttpFilter, http_connection_manager::RouteSpecifier, http_filter, scoped_routes,
};
use envoy_api::envoy::extensions::transport_sockets::tls::cert_selectors::on_demand_secret::v3::Config as OnDemandSecret;
use envoy_api::envoy::extensions::transport_sockets::tls::v3::common_tls_context::ValidationContextType;
use envoy_api::envoy::extensions::transport_sockets::tls::v3::{
    CommonTlsContext, DownstreamTlsContext, SdsSecretConfig, UpstreamTlsContext,
};
use envoy_api::xds::r#type::matcher::v3::Matcher;
use envoy_api::xds::r#type::matcher::v3::matcher::{MatcherType, OnMatch, on_match};
use envoy_api::{Message, unpack};

use super::Kind;

/// A reference: to one name, or to all there are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Ref {
    One(Kind, String),
    All(Kind),
}

/// The references of an encoded resource. What cannot be decoded has none: refusing it is the caller's business.
pub(super) fn refs(kind: Kind, message: &Bytes) -> Vec<Ref> {
    let mut refs = match kind {
        Kind::Cluster => Cluster::decode(message.clone()).map(|cluster| of_cluster(&cluster)),
        Kind::Listener => Listener::decode(message.clone()).map(|listener| of_listener(&listener)),
        Kind::ScopedRoute => ScopedRouteConfiguration::decode(message.clone()).map(|scope| of_scope(&scope)),
        Kind::Route => RouteConfiguration::decode(message.clone()).map(|route| of_route(&route)),
        _ => Ok(Vec::new()),
    }
    .unwrap_or_default();
    refs.sort();
    refs.dedup();
    refs
}

fn of_cluster(cluster: &Cluster) -> Vec<Ref> {
    let mut refs = Vec::new();
    if cluster.cluster_discovery_type == Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())) {
        let service = cluster.eds_cluster_config.as_ref().map(|eds| eds.service_name.as_str()).unwrap_or_default();
        let name = if service.is_empty() { &cluster.name } else { service };
        refs.push(Ref::One(Kind::Endpoints, name.to_owned()));
    }
    let matches = cluster.transport_socket_matches.iter().filter_map(|m| m.transport_socket.as_ref());
    for socket in cluster.transport_socket.iter().chain(matches) {
        refs.extend(of_socket(socket));
    }
    refs
}

fn of_listener(listener: &Listener) -> Vec<Ref> {
    let mut refs = Vec::new();
    for chain in listener.filter_chains.iter().chain(&listener.default_filter_chain) {
        refs.extend(of_chain(chain));
    }
    refs
}

fn of_chain(chain: &FilterChain) -> Vec<Ref> {
    let mut refs: Vec<Ref> = chain.transport_socket.iter().flat_map(of_socket).collect();
    refs.extend(chain.filters.iter().flat_map(of_filter));
    refs
}

fn of_filter(filter: &Filter) -> Vec<Ref> {
    match &filter.config_type {
        Some(filter::ConfigType::ConfigDiscovery(_)) => vec![Ref::One(Kind::Extension, filter.name.clone())],
        Some(filter::ConfigType::TypedConfig(any)) => {
            unpack::<HttpConnectionManager>(any).map(|manager| of_manager(&manager)).unwrap_or_default()
        }
        None => Vec::new(),
    }
}

fn of_manager(manager: &HttpConnectionManager) -> Vec<Ref> {
    let mut refs = Vec::new();
    match &manager.route_specifier {
        Some(RouteSpecifier::Rds(rds)) => refs.push(Ref::One(Kind::Route, rds.route_config_name.clone())),
        Some(RouteSpecifier::ScopedRoutes(scoped)) => {
            if let Some(scoped_routes::ConfigSpecifier::ScopedRds(_)) = scoped.config_specifier {
                refs.push(Ref::All(Kind::ScopedRoute));
            }
        }
        Some(RouteSpecifier::RouteConfig(route)) => refs.extend(of_route(route)),
        None => {}
    }
    refs.extend(manager.http_filters.iter().flat_map(of_http_filter));
    refs
}

fn of_http_filter(filter: &HttpFilter) -> Vec<Ref> {
    match &filter.config_type {
        Some(http_filter::ConfigType::ConfigDiscovery(_)) => vec![Ref::One(Kind::Extension, filter.name.clone())],
        Some(http_filter::ConfigType::TypedConfig(any)) => {
            let matching = unpack::<ExtensionWithMatcher>(any).ok().and_then(|extension| extension.xds_matcher);
            matching.iter().flat_map(of_matcher).collect()
        }
        None => Vec::new(),
    }
}

/// The filters among which a composite filter chooses.
fn of_matcher(matcher: &Matcher) -> Vec<Ref> {
    let listed = match &matcher.matcher_type {
        Some(MatcherType::MatcherList(list)) => list.matchers.iter().filter_map(|one| one.on_match.as_ref()).collect(),
        Some(MatcherType::MatcherTree(_)) | None => Vec::new(),
    };
    listed.into_iter().chain(matcher.on_no_match.as_deref()).flat_map(of_match).collect()
}

fn of_match(matched: &OnMatch) -> Vec<Ref> {
    match &matched.on_match {
        Some(on_match::OnMatch::Matcher(matcher)) => of_matcher(matcher),
        Some(on_match::OnMatch::Action(action)) => {
            let action = action.typed_config.as_ref().and_then(|any| unpack::<ExecuteFilterAction>(any).ok());
            let discovered = action.and_then(|action| action.dynamic_config);
            discovered.map(|discovered| Ref::One(Kind::Extension, discovered.name)).into_iter().collect()
        }
        None => Vec::new(),
    }
}

/// A scope that is loaded on demand waits for a request.
fn of_scope(scope: &ScopedRouteConfiguration) -> Vec<Ref> {
    let named = !scope.on_demand && !scope.route_configuration_name.is_empty();
    named.then(|| Ref::One(Kind::Route, scope.route_configuration_name.clone())).into_iter().collect()
}

/// Virtual hosts are asked for by the name of their route configuration.
fn of_route(route: &RouteConfiguration) -> Vec<Ref> {
    route.vhds.iter().map(|_| Ref::One(Kind::VirtualHost, route.name.clone())).collect()
}

fn of_socket(socket: &TransportSocket) -> Vec<Ref> {
    let Some(transport_socket::ConfigType::TypedConfig(any)) = &socket.config_type else { return Vec::new() };
    let upstream = unpack::<UpstreamTlsContext>(any).ok().and_then(|tls| tls.common_tls_context);
    let downstream = || unpack::<DownstreamTlsContext>(any).ok().and_then(|tls| tls.common_tls_context);
    upstream.or_else(downstream).map(|tls| of_tls(&tls)).unwrap_or_default()
}

fn of_tls(tls: &CommonTlsContext) -> Vec<Ref> {
    let validation = match &tls.validation_context_type {
        Some(ValidationContextType::ValidationContextSdsSecretConfig(sds)) => Some(sds),
        Some(ValidationContextType::CombinedValidationContext(both)) => {
            both.validation_context_sds_secret_config.as_ref()
        }
        _ => None,
    };
    let by_name = |sds: &SdsSecretConfig| Ref::One(Kind::Secret, sds.name.clone());
    // Without a source the secret is part of the bootstrap.
    let discovered = tls.tls_certificate_sds_secret_configs.iter().chain(validation).filter(|s| s.sds_config.is_some());
    let selector = tls.custom_tls_certificate_selector.as_ref().and_then(|selector| selector.typed_config.as_ref());
    let selector = selector.and_then(|selector| unpack::<OnDemandSecret>(selector).ok());
    let prefetched = selector.into_iter().flat_map(|selector| selector.prefetch_secret_names);
    let prefetched = prefetched.map(|name| Ref::One(Kind::Secret, name));
    discovered.map(by_name).chain(prefetched).collect()
}
