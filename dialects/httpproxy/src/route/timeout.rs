//! How long things may take.

use crate::{No, route::said};
use kinds::{Checked, http_proxy::route::TimeoutPolicy};
use model::{Code, FieldPath, Timeout};

/// The three spans.
#[derive(Default)]
pub(crate) struct Times {
    pub response: Timeout,
    pub idle: Timeout,
    pub idle_connection: Timeout,
}

/// Reads the policy.
pub(crate) fn policy(policy: &Checked<Option<Box<TimeoutPolicy>>>, field: &FieldPath) -> Result<Times, No> {
    let Some(policy) = said(policy)? else { return Ok(Times::default()) };
    let field = field.field("timeoutPolicy");
    let read = |name: &str, text: &Option<Box<str>>| {
        Timeout::parse(text.as_deref().unwrap_or_default())
            .map_err(|error| No::new(Code::ProxyTimeout, field.field(name), error.to_string()))
    };
    Ok(Times {
        response: read("response", &policy.response)?,
        idle: read("idle", &policy.idle)?,
        idle_connection: read("idleConnection", &policy.idle_connection)?,
    })
}
