//! When a request is tried again.

use super::action::timeout;
use envoy_api::envoy::config::route::v3::RetryPolicy;

/// The policy, in Envoy's words.
pub fn retry_policy(policy: &model::route::RetryPolicy) -> RetryPolicy {
    let words: Vec<&str> = policy.on.iter().map(|on| on.word()).collect();
    RetryPolicy {
        retry_on: words.join(","),
        num_retries: Some(policy.count.into()),
        retriable_status_codes: policy.status_codes.clone(),
        per_try_timeout: timeout(policy.per_try),
        ..Default::default()
    }
}
