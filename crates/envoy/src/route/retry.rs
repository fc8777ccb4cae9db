//! When a request is tried again: after a failure, or because the backend sent a redirect that the proxy follows
//! itself.

use super::action::{SHORTEST, timeout};
use envoy_api::{
    Any, any,
    envoy::{
        config::{
            core::v3::TypedExtensionConfig,
            route::v3::{InternalRedirectPolicy, RetryPolicy, retry_policy::RetryBackOff},
        },
        extensions::internal_redirect::{
            previous_routes::v3::PreviousRoutesConfig, safe_cross_scheme::v3::SafeCrossSchemeConfig,
        },
    },
};
use model::route::{CrossScheme, InternalRedirect};

/// The policy, in Envoy's words.
pub fn retry_policy(policy: &model::route::RetryPolicy) -> RetryPolicy {
    let words: Vec<&str> = policy.on.iter().map(|on| on.word()).collect();
    RetryPolicy {
        retry_on: words.join(","),
        num_retries: Some(policy.count.into()),
        retriable_status_codes: policy.status_codes.clone(),
        per_try_timeout: timeout(policy.per_try),
        retry_back_off: policy
            .backoff
            .map(|base| RetryBackOff { base_interval: Some(base.max(SHORTEST).into()), ..Default::default() }),
        ..Default::default()
    }
}

/// Which redirects of a backend the proxy follows itself.
pub fn internal_redirect_policy(redirect: &InternalRedirect) -> InternalRedirectPolicy {
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
