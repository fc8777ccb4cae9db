//! Which token a route requires, told to the filter that passes its requests on to the slot of the provider.

use crate::{
    listener::jwt::{FILTER, mark_of},
    name,
};
use envoy_api::{
    Any, any,
    envoy::extensions::filters::http::jwt_authn::v3::{PerRouteConfig, per_route_config::RequirementSpecifier},
};
use model::route::Policy;

/// What a route tells the slot of its provider. The requirement is named after the provider, so that an edit of the provider
/// changes no route; a name that the slot does not have is refused with 403.
pub fn of(policy: &Policy) -> Option<(String, Any)> {
    let provider = policy.jwt.as_deref()?;
    let requirement = RequirementSpecifier::RequirementName(name::jwt_requirement(provider));
    let config = PerRouteConfig { requirement_specifier: Some(requirement) };
    Some((FILTER.to_owned(), any(&config)))
}

/// The mark of the requests of a route, which leads to the slot of its provider.
pub fn mark(policy: &Policy) -> Option<u8> {
    policy.jwt.as_deref().map(mark_of)
}
