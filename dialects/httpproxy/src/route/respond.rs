//! The proxy answers by itself.

use crate::No;
use kinds::http_proxy::route::DirectResponsePolicy;
use model::{
    Code, FieldPath,
    route::{Respond, action::LONGEST_BODY},
};

/// Reads the policy.
pub(crate) fn action(policy: &DirectResponsePolicy, field: &FieldPath) -> Result<Respond, No> {
    let field = field.field("directResponsePolicy");
    let no = |name: &str, why: String| No::new(Code::ProxyDirectResponse, field.field(name), why);
    let status = u16::try_from(policy.status_code).ok().filter(|status| (200..600).contains(status));
    let status = status.ok_or_else(|| no("statusCode", format!("{} is not from 200 to 599", policy.status_code)))?;
    let body = policy.body.as_deref().unwrap_or_default();
    if body.len() > LONGEST_BODY {
        return Err(no("body", format!("the body has {} bytes; {LONGEST_BODY} is the limit", body.len())));
    }
    Ok(Respond { status, body: body.into() })
}
