//! Scopes: a resource for each exact host, found by a key that Envoy compares as it is.
//!
//! Envoy's scopes have no default and know neither wildcards nor case. What makes them fit for hosts:
//!
//! - The *key* is `<group>|<host>`, and the group stands for the port, so that all ports of an Envoy share one subscription
//!   without sharing hosts. Before anything else, Envoy writes it into a header of ours, over whatever a client
//!   put there; what follows a `:` is the port and not part of it.
//! - A request that finds no scope goes through the [`fallback`]: a script of fixed text that tries the host in lower case,
//!   then the scope `<group>|*`, in which wildcards and the catch-all stand as in any table. Hosts that were found do not
//!   even build the filter.
//! - *A path miss is not a host miss*: an exact host ends with routes that answer 404, or the fallback would hand the request
//!   to the wildcard above, which may be somebody else's.
//! - Envoy does not write the key again when it follows a redirect by itself: see [`redirects`]. The new request begins in a
//!   scope of all hosts, where the fallback is on.
//! - *The chain of filters is built before the fallback has found a route.* A filter that is off in the chain and switched on
//!   by a route would be passed over; so what protects is on in the chain, and told what to do by its own per-route message.
//! - Hosts whose routes are the same, all of them shared ones, name one `RouteConfiguration` that comes by RDS ([`shared`]). Envoy asks
//!   for one only when a scope names it, and has no routes for that scope until it comes; so a scope that no request finds
//!   ([`anchor`]) names it first.
//! - Under TLS a host has one scope, whatever filter chain a connection took; it answers 421 on those that may not carry its
//!   requests: see [`admission`].

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use envoy_api::{
    any,
    envoy::{
        config::{
            common::mutation_rules::v3::HeaderMutation,
            core::v3::{DataSource, data_source},
            route::v3::{
                FilterConfig, Route, RouteConfiguration, RouteMatch, ScopedRouteConfiguration, VirtualHost,
                route_match::{ConnectMatcher, PathSpecifier},
                scoped_route_configuration::{
                    Key,
                    key::{Fragment, fragment},
                },
            },
        },
        extensions::filters::{
            http::lua::v3::Lua,
            network::http_connection_manager::v3::{
                HttpFilter, ScopedRds, ScopedRoutes,
                http_connection_manager::{RouteSpecifier, UpgradeConfig},
                scoped_routes::{
                    ConfigSpecifier, ScopeKeyBuilder,
                    scope_key_builder::{
                        FragmentBuilder,
                        fragment_builder::{HeaderValueExtractor, Type, header_value_extractor::ExtractType},
                    },
                },
            },
        },
    },
};
use model::{Host, ObjectRef, PortId, tls::Admission};
use prost::Message;

use super::{
    Packing, admission, plain,
    redirects::{self, KEY},
};
use crate::{
    listener::filters,
    name, route, splice,
    virtual_host::{self, tree},
};

/// The filter that finds what has no scope.
pub const FALLBACK: &str = "sesame.fallback";
/// The routes of an exact host that no other route took.
pub const NO_PATH: &str = "no-path";
/// The number of `ScopedRouteConfiguration.route_configuration`.
const ROUTES: u32 = 5;
/// What the fallback runs. Nothing of any tenant's is ever in it.
const SCRIPT: &str = include_str!("scoped/fallback.lua");

/// The scope of an exact host; on a TLS port with the connections that may carry its requests.
pub fn host(port: &PortId, host: &model::VirtualHost, admission: Option<&Admission>) -> Bytes {
    let own = virtual_host::virtual_host(port, host);
    let in_own_scope = admission.is_some_and(|admission| admission.by_server_name);
    let redirected = if in_own_scope { name::scope_key(port, &host.host) } else { name::redirects_key(port) };
    exact(port, &host.host, complete(port, &host.host, host.only_author(), own, &redirected, admission))
}

/// A virtual host of exact names with all that its scope needs.
fn complete(
    port: &PortId,
    of: &Host,
    author: Option<&ObjectRef>,
    mut host: VirtualHost,
    redirected: &str,
    admission: Option<&Admission>,
) -> VirtualHost {
    redirects::prepare(redirected, &mut host);
    if let Some(admission) = admission {
        admission::guard(Packing::Scoped, port, of, author, admission, &mut host);
    }
    host.routes.push(no_path(PathSpecifier::Prefix("/".to_owned()), author));
    host.routes.push(no_path(PathSpecifier::ConnectMatcher(ConnectMatcher {}), author));
    host.typed_per_filter_config.extend(found());
    tree::shape(&mut host);
    host
}

/// The route configuration that exact hosts of a port share, all of which lie below a wildcard, or are any. Their certificates are not
/// shown on demand: then each would have to look at its own server name.
pub fn shared(
    port: &PortId,
    name: String,
    below: &Host,
    host: &model::VirtualHost,
    admission: Option<&Admission>,
) -> Bytes {
    let shared = virtual_host::shared(port, below, host);
    let host = complete(port, below, host.only_author(), shared, &name::redirects_key(port), admission);
    RouteConfiguration { virtual_hosts: vec![host], ..inline(name) }.encode_to_vec().into()
}

/// What stands in for it, while proxies refuse it.
pub fn shared_refused(name: String) -> Bytes {
    let host = VirtualHost { typed_per_filter_config: found(), ..virtual_host::refused(&Host::Any, None) };
    let host = VirtualHost { name: virtual_host::SHARED.to_owned(), ..host };
    RouteConfiguration { virtual_hosts: vec![host], ..inline(name) }.encode_to_vec().into()
}

/// The scope of an exact host that shares its routes.
pub fn sharing(port: &PortId, host: &Host, routes: String) -> Bytes {
    let scope = head(port, name::scope_key(port, host));
    ScopedRouteConfiguration { route_configuration_name: routes, ..scope }.encode_to_vec().into()
}

/// The scope by which proxies have shared routes at hand before a host names them: no request finds it.
pub fn anchor(port: &PortId, routes: String) -> Bytes {
    ScopedRouteConfiguration { route_configuration_name: routes.clone(), ..head(port, routes) }.encode_to_vec().into()
}

/// What stands in for the scope of an exact host, while proxies refuse it.
pub fn refused(port: &PortId, host: &Host, author: Option<&ObjectRef>) -> Bytes {
    let refused = VirtualHost { typed_per_filter_config: found(), ..virtual_host::refused(host, author) };
    exact(port, host, refused)
}

fn exact(port: &PortId, host: &Host, own: VirtualHost) -> Bytes {
    let key = name::scope_key(port, host);
    let routes = RouteConfiguration { virtual_hosts: vec![own], ..inline(key.clone()) };
    ScopedRouteConfiguration { route_configuration: Some(routes), ..head(port, key) }.encode_to_vec().into()
}

/// The scope of all other hosts of a port, from their bytes in the order of the hosts.
pub fn catch_all<'a>(port: &PortId, hosts: impl Iterator<Item = &'a Bytes>) -> Bytes {
    let key = name::scope_key(port, &Host::Any);
    let mut bytes = BytesMut::from(&head(port, key.clone()).encode_to_vec()[..]);
    splice::append(&mut bytes, ROUTES, &plain::routes(inline(key), hosts));
    bytes.freeze()
}

/// The hosts of a scope that was made by [`catch_all`], by name, as they were put in.
pub fn hosts(scope: &Bytes) -> Vec<(String, Bytes)> {
    plain::parts(scope, ROUTES).iter().flat_map(plain::hosts).collect()
}

/// All of the routes of a scope but its hosts. Envoy checks the clusters of routes that do not come by RDS unless it is told
/// not to: one that is absent would be a refusal of every scope in the response. Unchecked, it is a 503 for its own requests.
pub(super) fn inline(name: String) -> RouteConfiguration {
    RouteConfiguration { validate_clusters: Some(false.into()), ..plain::head(name) }
}

/// A scope's name follows from its key alone: Envoy loses scopes whose keys are exchanged.
pub(super) fn head(port: &PortId, key: String) -> ScopedRouteConfiguration {
    let name = name::scope_of_key(port, &key);
    let key = Key { fragments: vec![Fragment { r#type: Some(fragment::Type::StringKey(key)) }] };
    ScopedRouteConfiguration { name, key: Some(key), ..Default::default() }
}

/// The answer to requests that no other route took; access logs have the object whose host it is, where it is of one alone.
fn no_path(path: PathSpecifier, author: Option<&ObjectRef>) -> Route {
    Route {
        name: NO_PATH.to_owned(),
        metadata: author.map(|author| route::metadata(author, None)),
        r#match: Some(RouteMatch { path_specifier: Some(path), ..Default::default() }),
        action: Some(virtual_host::answer(404)),
        ..Default::default()
    }
}

/// A host that was found needs no fallback. It is off for exact hosts alone, not for wildcards: the exact host may be found
/// only in lower case.
fn found() -> BTreeMap<String, envoy_api::Any> {
    BTreeMap::from([(FALLBACK.to_owned(), any(&FilterConfig { disabled: true, ..Default::default() }))])
}

/// Where a connection manager finds scopes: the same for all of them, or Envoy would ask for each.
pub(crate) fn specifier() -> RouteSpecifier {
    let key = HeaderValueExtractor {
        name: KEY.to_owned(),
        element_separator: ":".to_owned(),
        extract_type: Some(ExtractType::Index(0)),
    };
    RouteSpecifier::ScopedRoutes(ScopedRoutes {
        name: "hosts".to_owned(),
        scope_key_builder: Some(ScopeKeyBuilder {
            fragments: vec![FragmentBuilder { r#type: Some(Type::HeaderValueExtractor(key)) }],
        }),
        rds_config_source: Some(name::on_this_stream()),
        config_specifier: Some(ConfigSpecifier::ScopedRds(ScopedRds {
            scoped_rds_config_source: Some(name::on_this_stream()),
            ..Default::default()
        })),
    })
}

/// What writes the key of a request, over whatever the client sent.
pub(crate) fn key_of_requests(port: &PortId) -> HeaderMutation {
    admission::written(KEY, format!("{}|%REQ(:AUTHORITY)%", name::group(port)))
}

/// Lets a CONNECT come as far as the routes that answer 404: Envoy would refuse it with 403 where one of them takes it. There
/// is nothing else for it to find.
pub(crate) fn connect() -> UpgradeConfig {
    UpgradeConfig { upgrade_type: "CONNECT".to_owned(), ..Default::default() }
}

/// The filter for requests that found no scope. It stands first, because it decides about the route.
pub(crate) fn fallback() -> HttpFilter {
    let script =
        DataSource { specifier: Some(data_source::Specifier::InlineString(SCRIPT.to_owned())), ..Default::default() };
    filters::filter(FALLBACK, any(&Lua { default_source_code: Some(script), ..Default::default() }))
}
