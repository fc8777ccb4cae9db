//! Which token a route requires, told to the slot that has its provider.

use crate::{listener::slots::Slot, name};
use envoy_api::{
    Any, any,
    envoy::extensions::filters::http::jwt_authn::v3::{PerRouteConfig, per_route_config::RequirementSpecifier},
};
use model::{PortId, route::Policy};

/// What a route tells the slot of its provider. The requirement is named after the provider, so that an edit of the provider
/// changes no route; a name that the slot does not have is refused with 403.
pub fn of(port: &PortId, policy: &Policy) -> Option<(String, Any)> {
    let provider = policy.jwt.as_deref()?;
    let requirement = RequirementSpecifier::RequirementName(name::jwt_requirement(provider));
    let config = PerRouteConfig { requirement_specifier: Some(requirement) };
    Some((name::slot(port, Slot::of_jwt_provider(provider)), any(&config)))
}
