//! When a request is tried again.

use crate::{No, route::said};
use kinds::{Checked, http_proxy};
use model::{
    Code, FieldPath, Timeout,
    route::{RetryPolicy, action::RetryOn},
};

/// Reads the policy. A count of −1 is "never"; 0 and nothing are "once".
pub(crate) fn policy(
    policy: &Checked<Option<Box<http_proxy::route::RetryPolicy>>>,
    field: &FieldPath,
    notes: &mut Vec<No>,
) -> Result<Option<RetryPolicy>, No> {
    let Some(policy) = said(policy)? else { return Ok(None) };
    let field = field.field("retryPolicy");
    let no = |name: &str, why: String| No::new(Code::ProxyRetry, field.field(name), why);
    let count = match policy.count {
        Some(-1) => None,
        None | Some(0) => Some(1),
        Some(count) => {
            let count = u32::try_from(count).map_err(|_| no("count", format!("{count} is not a number of retries")))?;
            Some(count)
        }
    };
    let per_try = Timeout::parse(policy.per_try_timeout.as_deref().unwrap_or_default())
        .map_err(|error| no("perTryTimeout", error.to_string()))?;
    let mut on = Vec::new();
    for word in &policy.retry_on {
        let found = RetryOn::ALL.iter().find(|known| known.word() == &**word);
        on.push(*found.ok_or_else(|| no("retryOn", format!("`{word}` is not a condition for a retry")))?);
    }
    if on.is_empty() {
        on.push(RetryOn::ServerError);
    }
    let mut status_codes = Vec::new();
    for &code in &policy.retriable_status_codes {
        let fits = u32::try_from(code).ok().filter(|code| (100..600).contains(code));
        status_codes.push(fits.ok_or_else(|| no("retriableStatusCodes", format!("{code} is not a status")))?);
    }
    if !status_codes.is_empty() && !on.contains(&RetryOn::RetriableStatusCodes) {
        let why = "the list has no effect without `retriable-status-codes` in retryOn";
        notes.push(No::new(Code::ProxyIgnored, field.field("retriableStatusCodes"), why));
    }
    Ok(count.map(|count| RetryPolicy { on, count, per_try, status_codes }))
}
