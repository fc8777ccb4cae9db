//! Redirects that Envoy follows by itself: which hosts they may lead to.
//!
//! Envoy follows a redirect only if it finds a route for the new host, else the client gets the redirect. It looks for one
//! with the headers of the first request, of which it has changed the host and the path only, and does not write ours again
//! for the second. So a route with such redirects writes into [`KEY`] where to look: under [`name::redirects_key`]. With scopes,
//! that is a scope which lists all hosts of the table, and only there where some route follows redirects; the request that
//! comes of it finds its own scope by the fallback. In a table it only tells the two requests apart: "this host is served
//! elsewhere" is an answer to a client and nowhere to redirect to.
//!
//! The list is about hosts, not about their paths: with scopes, a redirect to a path that a known host lacks is followed, and
//! not found. Where requests are [bound](super::bound) to the server name of their connection, no other host can be reached on
//! it: an exact host looks in its own scope. (A wildcard's and a table's redirects to a host of another name are followed
//! there, and told that they are misdirected.)

use bytes::Bytes;
use envoy_api::envoy::{
    config::{
        core::v3::{HeaderValue, HeaderValueOption, header_value_option::HeaderAppendAction},
        route::v3::{
            HeaderMatcher, Route, RouteConfiguration, ScopedRouteConfiguration, VirtualHost,
            header_matcher::HeaderMatchSpecifier, route::Action,
        },
    },
    r#type::matcher::v3::{StringMatcher, string_matcher::MatchPattern},
};
use model::{Host, RouteTableId};
use prost::Message;

use super::scoped;
use crate::{name, virtual_host};

/// The header that says where a request is looked up.
pub const KEY: &str = "x-sesame-host";
/// The virtual host, and its route, that stands for all hosts of a table.
pub const AGAIN: &str = "again";
/// The virtual host of those that stand in another table.
pub const ELSEWHERE: &str = "elsewhere";

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

/// The answer to clients that ask for a host which stands elsewhere. No redirect leads there.
pub(super) fn misdirected(table: &RouteTableId, host: &Host) -> VirtualHost {
    let mut misdirected = virtual_host::misdirected(host);
    for route in &mut misdirected.routes {
        route.r#match.get_or_insert_default().headers.push(HeaderMatcher {
            name: KEY.to_owned(),
            header_match_specifier: Some(HeaderMatchSpecifier::StringMatch(StringMatcher {
                match_pattern: Some(MatchPattern::Exact(name::redirects_key(table))),
                ..Default::default()
            })),
            invert_match: true,
            treat_missing_header_as_empty: true,
        });
    }
    misdirected
}

/// The scope that redirects are looked up in: the hosts of the table, and those below its wildcards that stand in another.
/// The fallback is on there.
pub fn scope(table: &RouteTableId, hosts: &[Host], elsewhere: &[Host]) -> Bytes {
    let listed = |name: &str, hosts: &[Host]| VirtualHost {
        name: name.to_owned(),
        domains: hosts.iter().map(ToString::to_string).collect(),
        ..Default::default()
    };
    let mut again = listed(AGAIN, hosts);
    again.routes.push(virtual_host::every_path(AGAIN, virtual_host::answer(404)));
    let all = [again, listed(ELSEWHERE, elsewhere)];
    let key = name::redirects_key(table);
    let virtual_hosts = all.into_iter().filter(|host| !host.domains.is_empty()).collect();
    let routes = RouteConfiguration { virtual_hosts, ..scoped::inline(key.clone()) };
    ScopedRouteConfiguration { route_configuration: Some(routes), ..scoped::head(table, key) }.encode_to_vec().into()
}
