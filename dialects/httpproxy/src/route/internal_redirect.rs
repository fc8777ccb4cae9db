//! Redirects of a backend that the proxy follows itself.

use crate::{No, route::said};
use kinds::{Checked, http_proxy::route as kind};
use model::{
    Code, FieldPath,
    route::{CrossScheme, InternalRedirect},
};

/// Reads the policy.
pub(crate) fn policy(
    policy: &Checked<Option<Box<kind::InternalRedirectPolicy>>>,
    field: &FieldPath,
) -> Result<Option<InternalRedirect>, No> {
    let Some(policy) = said(policy)? else { return Ok(None) };
    let field = field.field("internalRedirectPolicy");
    let no = |name: &str, why: String| No::new(Code::ProxyInternalRedirect, field.field(name), why);
    let most = policy.max_internal_redirects.map(|most| u32::try_from(most).map_err(|_| most)).transpose();
    let most = most.map_err(|most| no("maxInternalRedirects", format!("{most} is not a number from 0")))?;
    let mut statuses = Vec::new();
    for &code in &policy.redirect_response_codes {
        match code {
            301 | 302 | 303 | 307 | 308 => statuses.push(code as u32),
            other => {
                let why = format!("{other} is not one of 301, 302, 303, 307 and 308");
                return Err(no("redirectResponseCodes", why));
            }
        }
    }
    statuses.sort_unstable();
    statuses.dedup();
    let cross_scheme = match &policy.allow_cross_scheme_redirect {
        None | Some(kind::CrossScheme::Never) => CrossScheme::Never,
        Some(kind::CrossScheme::Always) => CrossScheme::Always,
        Some(kind::CrossScheme::SafeOnly) => CrossScheme::SafeOnly,
        Some(kind::CrossScheme::Unknown(word)) => {
            let why = format!("`{word}` is not one of Always, Never and SafeOnly");
            return Err(no("allowCrossSchemeRedirect", why));
        }
    };
    Ok(Some(InternalRedirect { most, statuses, cross_scheme, no_repeats: policy.deny_repeated_route_redirect }))
}
