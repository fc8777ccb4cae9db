//! Rewrites and retries.

use crate::open_enum::open_enum;
use serde::Deserialize;

/// A rewrite by a regular expression.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RegexRewrite {
    /// The regular expression.
    pub pattern: Box<str>,
    /// What a match is replaced with; `\1` is the first group.
    pub substitution: Box<str>,
}

/// Which requests are tried again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RetryPolicy {
    /// The condition.
    pub retry_on: Option<RetryOn>,
    /// How often; once if absent.
    pub num_retries: Option<i64>,
    /// How long each try may take, such as `0.5s`.
    pub per_try_timeout: Option<Box<str>>,
}

open_enum! {
    /// A condition for another try.
    RetryOn {
        /// A status of 500 to 599, or no response.
        ServerError = "5xx",
        /// A status of 502, 503 or 504.
        GatewayError = "gateway-error",
        /// The connection failed.
        ConnectFailure = "connect-failure",
        /// A status of 409.
        Retriable4xx = "retriable-4xx",
        /// The stream was refused.
        RefusedStream = "refused-stream",
        /// A status of a list that Emissary cannot be given.
        RetriableStatusCodes = "retriable-status-codes",
    }
}
