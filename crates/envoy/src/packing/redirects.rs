//! Redirects that Envoy follows by itself: which hosts they may lead to.
//!
//! Envoy follows a redirect only if it finds a route for the new host, else the client gets the redirect. It looks for one
//! with the headers of the first request, of which it has changed the host and the path only, and does not write ours again
//! for the second. So a route with such redirects writes into [`KEY`] where to look: under [`name::redirects_key`]. With scopes,
//! that is a scope which lists all hosts of the port, and only there where some route follows redirects; the request that
//! comes of it finds its own scope by the fallback. In a table it only tells the two requests apart: "make another connection"
//! is an answer to a client and nowhere to redirect to.
//!
//! The list is about hosts, not about their paths: with scopes, a redirect to a path that a known host lacks is followed, and
//! not found. Under TLS a redirect leads only to hosts that the connection may carry requests for ([`super::admission`]). Where
//! that depends on the server name, no other host can be reached: an exact host looks in its own scope, and in a table no route of
//! another name is found, so the client gets the redirect.

use bytes::Bytes;
use envoy_api::envoy::config::{
    core::v3::{HeaderValue, HeaderValueOption, header_value_option::HeaderAppendAction},
    route::v3::{Route, RouteConfiguration, ScopedRouteConfiguration, VirtualHost, route::Action},
};
use model::{Host, PortId};
use prost::Message;
use std::sync::Arc;

use super::{admission, scoped};
use crate::{name, virtual_host};

/// The header that says where a request is looked up.
pub const KEY: &str = "x-sesame-host";
/// The virtual host, and its route, that stands for hosts of a port.
pub const AGAIN: &str = "again";

/// Whether Envoy follows redirects of this route's backends.
pub(super) fn follows(route: &Route) -> bool {
    matches!(&route.action, Some(Action::Route(action)) if action.internal_redirect_policy.is_some())
}

/// Writes where redirects are looked up; routes without any take the header away from what backends see.
pub(super) fn prepare(key: &str, host: &mut VirtualHost) {
    for route in &mut host.routes {
        if follows(route) {
            route.request_headers_to_add.push(HeaderValueOption {
                header: Some(HeaderValue { key: KEY.to_owned(), value: key.to_owned(), ..Default::default() }),
                append_action: HeaderAppendAction::OverwriteIfExistsOrAdd.into(),
                ..Default::default()
            });
        } else {
            route.request_headers_to_remove.push(KEY.to_owned());
        }
    }
}

/// Hosts of a port that the same connections serve: the names of their filter chains under TLS, nothing where it is plaintext.
pub type Group<'a> = (Option<&'a [Arc<str>]>, Vec<Host>);

/// The scope that redirects are looked up in: the hosts of the port, each found only by connections that may carry its requests.
/// The fallback is on there.
pub fn scope(port: &PortId, groups: &[Group<'_>]) -> Bytes {
    let listed = |(chains, hosts): &Group<'_>| {
        let again = virtual_host::every_path(AGAIN, virtual_host::answer(404));
        let (name, routes) = match chains {
            None => (AGAIN.to_owned(), vec![again]),
            Some(chains) => (format!("{AGAIN} on {}", chains.join(" ")), admission::on_chains(chains, &again)),
        };
        VirtualHost { name, domains: hosts.iter().map(ToString::to_string).collect(), routes, ..Default::default() }
    };
    let key = name::redirects_key(port);
    let virtual_hosts = groups.iter().map(listed).collect();
    let routes = RouteConfiguration { virtual_hosts, ..scoped::inline(key.clone()) };
    ScopedRouteConfiguration { route_configuration: Some(routes), ..scoped::head(port, key) }.encode_to_vec().into()
}
