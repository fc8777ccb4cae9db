//! A virtual host as Envoy's: its domain and its routes.

pub mod tree;

use crate::{
    listener::local_replies,
    route::{self, Names, filters},
};
use envoy_api::envoy::config::route::v3::{
    DirectResponseAction, Route, RouteMatch, VirtualHost, route::Action, route_match::PathSpecifier,
};
use model::{Code, Host, ObjectRef, PortId};

/// The route that answers requests on a connection that may not carry them.
pub(crate) const MISDIRECTED: &str = "misdirected";
/// The virtual host that exact hosts share.
pub const SHARED: &str = "shared";
/// The route that answers for a host that a listener has and nobody has routes for.
const NO_ROUTES: &str = "no-routes";

/// The virtual host. Requests for deeper names are not its own: its limit does not count them. A
/// path that no route takes is a 404 of Envoy's: it never reaches another host's routes. A host without any route says so.
pub fn virtual_host(port: &PortId, host: &model::VirtualHost) -> VirtualHost {
    let own = host.routes.iter().map(|route| route::route(port, &host.host, route, Names::Own));
    let catch_all = host.catch_all.iter().map(|route| {
        let mut route = route::route(port, &host.host, route, Names::Deeper);
        if host.local_rate_limit.is_some() {
            filters::not_counted(&mut route);
        }
        route
    });
    let mut routes: Vec<Route> = own.chain(catch_all).collect();
    if routes.is_empty() {
        routes.push(no_routes());
    }
    VirtualHost {
        name: host.host.to_string(),
        domains: vec![host.host.to_string()],
        routes,
        typed_per_filter_config: filters::of_host(host.local_rate_limit.as_deref()),
        ..Default::default()
    }
}

/// The virtual host that exact hosts of a port share, all of which lie below a wildcard, or are any. Which one a request is for was
/// found before.
pub fn shared(port: &PortId, below: &Host, host: &model::VirtualHost) -> VirtualHost {
    let routes = host.routes.iter().map(|route| route::route(port, below, route, Names::Shared));
    let mut routes: Vec<Route> = routes.collect();
    if routes.is_empty() {
        routes.push(no_routes());
    }
    VirtualHost {
        name: SHARED.to_owned(),
        domains: vec![Host::Any.to_string()],
        routes,
        typed_per_filter_config: filters::of_host(host.local_rate_limit.as_deref()),
        ..Default::default()
    }
}

/// The answer for a host that has no routes at all: to the client it is as unknown as one that no listener has.
fn no_routes() -> Route {
    Route { metadata: Some(local_replies::metadata(Code::HostNotFound)), ..every_path(NO_ROUTES, answer(404)) }
}

/// The answer to requests on a connection that may not carry them: the client is told to ask again on a connection that it makes
/// for the host. Access logs have the object whose host it is, where it is of one alone.
pub(crate) fn misdirected_route(author: Option<&ObjectRef>) -> Route {
    Route { metadata: author.map(|author| route::metadata(author, None)), ..every_path(MISDIRECTED, answer(421)) }
}

/// The answer to every request for a host while proxies refuse what was made for it: 503, with a reason that is the same on
/// every replica and says nothing of what is inside; access logs have the object, where it is of one alone.
pub fn refused(host: &Host, author: Option<&ObjectRef>) -> VirtualHost {
    let metadata = match author {
        Some(author) => route::metadata(author, Some(Code::EnvoyRejected)),
        None => local_replies::metadata(Code::EnvoyRejected),
    };
    always(host, Route { metadata: Some(metadata), ..every_path("refused", answer(503)) })
}

/// A host that has one answer for everybody.
fn always(host: &Host, route: Route) -> VirtualHost {
    VirtualHost { name: host.to_string(), domains: vec![host.to_string()], routes: vec![route], ..Default::default() }
}

/// A route for every path.
pub(crate) fn every_path(name: &str, action: Action) -> Route {
    Route {
        name: name.to_owned(),
        r#match: Some(RouteMatch { path_specifier: Some(PathSpecifier::Prefix("/".to_owned())), ..Default::default() }),
        action: Some(action),
        ..Default::default()
    }
}

/// An answer of the proxy's own, without a text.
pub(crate) fn answer(status: u32) -> Action {
    Action::DirectResponse(DirectResponseAction { status, ..Default::default() })
}
