//! Makes the routes of one path such that proxies refuse them: for tests of what happens then, and off otherwise.
//!
//! In: an encoded virtual host, scope or route configuration, and the path. Out: the same with a pattern that does not compile in place of that
//! path. What is spoiled depends on the content alone, so an edit that leaves the path leaves the fault, and one that changes
//! it mends it. Proxies' words about it name neither the host nor the route.

use bytes::Bytes;
use envoy_api::envoy::{
    config::route::v3::{RouteConfiguration, ScopedRouteConfiguration, VirtualHost, route_match::PathSpecifier},
    r#type::matcher::v3::RegexMatcher,
};
use prost::Message;

/// A virtual host.
pub fn host(bytes: Bytes, path: Option<&str>) -> Bytes {
    let Some(path) = path else { return bytes };
    let Ok(mut host) = VirtualHost::decode(bytes.clone()) else { return bytes };
    if spoil(&mut host, path) { host.encode_to_vec().into() } else { bytes }
}

/// A scope with its hosts.
pub fn scope(bytes: Bytes, path: Option<&str>) -> Bytes {
    let Some(path) = path else { return bytes };
    let Ok(mut scope) = ScopedRouteConfiguration::decode(bytes.clone()) else { return bytes };
    let hosts = scope.route_configuration.iter_mut().flat_map(|routes| &mut routes.virtual_hosts);
    let spoiled = hosts.fold(false, |any, host| spoil(host, path) | any);
    if spoiled { scope.encode_to_vec().into() } else { bytes }
}

/// A route configuration with its hosts.
pub fn routes(bytes: Bytes, path: Option<&str>) -> Bytes {
    let Some(path) = path else { return bytes };
    let Ok(mut routes) = RouteConfiguration::decode(bytes.clone()) else { return bytes };
    let spoiled = routes.virtual_hosts.iter_mut().fold(false, |any, host| spoil(host, path) | any);
    if spoiled { routes.encode_to_vec().into() } else { bytes }
}

fn spoil(host: &mut VirtualHost, path: &str) -> bool {
    let mut any = false;
    for found in host.routes.iter_mut().filter_map(|route| route.r#match.as_mut()) {
        if let Some(PathSpecifier::Prefix(text) | PathSpecifier::Path(text) | PathSpecifier::PathSeparatedPrefix(text)) =
            &found.path_specifier
            && text == path
        {
            let pattern = RegexMatcher { regex: "(".to_owned(), ..Default::default() };
            found.path_specifier = Some(PathSpecifier::SafeRegex(pattern));
            any = true;
        }
    }
    any
}
