//! One route: match, action, and the names it carries into logs.

pub mod action;
pub mod condition;
pub mod cookies;
pub mod filters;
pub mod hash;
pub mod headers;
pub mod internal_redirect;
pub mod path;
pub mod retry;

pub use path::Names;

use envoy_api::{
    envoy::config::{core::v3::Metadata, route::v3::Route},
    google::protobuf::Struct,
};
use model::{Host, ObjectRef};
use std::collections::BTreeMap;

/// Where a route's origin stands in its metadata; access logs read it from there.
pub const ORIGIN: &str = "projectsesame.io";

/// The route, for the virtual host of `host`.
pub fn route(host: &Host, route: &model::Route, names: Names) -> Route {
    Route {
        name: route.origin.to_string(),
        r#match: Some(path::route_match(host, route, names)),
        metadata: Some(origin(&route.origin.object)),
        action: Some(action::action(&route.action)),
        typed_per_filter_config: filters::of_route(&route.policy),
        request_headers_to_add: headers::set(&route.policy.request_headers),
        request_headers_to_remove: headers::remove(&route.policy.request_headers),
        response_headers_to_add: headers::set(&route.policy.response_headers),
        response_headers_to_remove: headers::remove(&route.policy.response_headers),
        ..Default::default()
    }
}

fn origin(object: &ObjectRef) -> Metadata {
    let fields = [("kind", object.kind), ("namespace", &object.namespace), ("name", &object.name)];
    let fields = fields.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
    Metadata { filter_metadata: BTreeMap::from([(ORIGIN.to_owned(), Struct { fields })]), ..Default::default() }
}
