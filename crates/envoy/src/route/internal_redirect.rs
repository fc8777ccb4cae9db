//! Redirects of a backend that the proxy follows itself.

use envoy_api::{
    Any, any,
    envoy::{
        config::{core::v3::TypedExtensionConfig, route::v3::InternalRedirectPolicy},
        extensions::internal_redirect::{
            previous_routes::v3::PreviousRoutesConfig, safe_cross_scheme::v3::SafeCrossSchemeConfig,
        },
    },
};
use model::route::{CrossScheme, InternalRedirect};

/// The policy, in Envoy's words.
pub fn policy(redirect: &InternalRedirect) -> InternalRedirectPolicy {
    let predicate = |name: &str, config: Any| TypedExtensionConfig {
        name: format!("envoy.internal_redirect_predicates.{name}"),
        typed_config: Some(config),
    };
    let mut predicates = Vec::new();
    if redirect.cross_scheme == CrossScheme::SafeOnly {
        predicates.push(predicate("safe_cross_scheme", any(&SafeCrossSchemeConfig {})));
    }
    if redirect.no_repeats {
        predicates.push(predicate("previous_routes", any(&PreviousRoutesConfig {})));
    }
    InternalRedirectPolicy {
        max_internal_redirects: redirect.most.map(Into::into),
        redirect_response_codes: redirect.statuses.clone(),
        predicates,
        allow_cross_scheme_redirect: redirect.cross_scheme != CrossScheme::Never,
        ..Default::default()
    }
}
