//! A virtual host as Envoy's: its domain and its routes.

pub mod tree;

use crate::route::{self, Names, filters};
use envoy_api::envoy::config::route::v3::{
    DirectResponseAction, Route, RouteMatch, VirtualHost, route::Action, route_match::PathSpecifier,
};
use model::Host;

/// The virtual host. A path that no route takes is a 404 of Envoy's: it never reaches another host's routes.
pub fn virtual_host(host: &model::VirtualHost) -> VirtualHost {
    let own = host.routes.iter().map(|route| route::route(&host.host, route, Names::Own));
    let deeper = host.deeper.iter().map(|route| route::route(&host.host, route, Names::Deeper));
    VirtualHost {
        name: host.host.to_string(),
        domains: vec![host.host.to_string()],
        routes: own.chain(deeper).collect(),
        typed_per_filter_config: filters::of_host(host.limit.as_deref()),
        ..Default::default()
    }
}

/// The answer to requests for a host that does not belong to the certificate that their connection was made with: the
/// client is told to ask again on a connection of its own.
pub fn misdirected(host: &Host) -> VirtualHost {
    let route = Route {
        name: "misdirected".to_owned(),
        r#match: Some(RouteMatch { path_specifier: Some(PathSpecifier::Prefix("/".to_owned())), ..Default::default() }),
        action: Some(answer(421)),
        ..Default::default()
    };
    let name = if *host == Host::Any { "misdirected".to_owned() } else { host.to_string() };
    VirtualHost { name, domains: vec![host.to_string()], routes: vec![route], ..Default::default() }
}

/// An answer of the proxy's own, without a text.
pub(crate) fn answer(status: u32) -> Action {
    Action::DirectResponse(DirectResponseAction { status, ..Default::default() })
}
