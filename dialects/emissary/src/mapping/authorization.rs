//! Who is asked about the requests of a Mapping: the AuthService of the instance, unless the Mapping bypasses it.
//!
//! A route only says that the server of the fleet is asked, and what it is told besides, so an edit of the AuthService is no edit of
//! Mappings. One that cannot be used is told on each Mapping, whose requests answer 503.

use super::Work;
use crate::{EmissaryView, Problem};
use kinds::emissary::mapping::MappingSpec;
use model::{
    Code,
    route::{AuthContext, Authorization},
};
use std::sync::Arc;

/// The most text that a server is told besides a request: each route and each call has all of it.
const MOST_CONTEXT: usize = 8 * 1024;

/// Where the Module would keep requests away and cannot, no Mapping is served, be it a redirect.
pub(super) fn report_closed(work: &mut Work<'_, '_, impl EmissaryView>) {
    if let Some(closed) = &work.defaults.closed {
        let why =
            format!("`{}` of {} cannot be applied: {}; requests answer 503", closed.key, closed.module, closed.why);
        work.problems.refuse(Problem::new(Code::EmissaryNotServed, "service", why));
    }
}

/// Reads what a Mapping says; nothing, and a verdict, where it cannot be served.
pub(super) fn read(work: &mut Work<'_, '_, impl EmissaryView>) -> Option<Authorization> {
    let MappingSpec { bypass_auth, auth_context_extensions, .. } = &work.object.spec;
    let bypasses = work.problems.optional("bypass_auth", bypass_auth).copied().unwrap_or_default();
    let written = work.problems.read("auth_context_extensions", auth_context_extensions)?;
    let mut no_effect = |why: &str| {
        if !written.is_empty() {
            work.problems.no_effect("auth_context_extensions", why);
        }
    };
    if bypasses {
        no_effect("the Mapping bypasses the AuthService");
        return Some(Authorization::Unset);
    }
    let Some(service) = work.view.auth_service() else {
        no_effect("there is no AuthService");
        return Some(Authorization::Unset);
    };
    if service.is_over_http {
        no_effect("only gRPC AuthServices receive them");
    }
    if !service.is_usable {
        let why = format!("{} cannot be used, as its events say; requests answer 503", service.object);
        work.problems.add(Problem::new(Code::MappingAuthServiceUnavailable, "bypass_auth", why));
    }
    let context: AuthContext = written.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let bytes: usize = context.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > MOST_CONTEXT {
        let why = format!("{bytes} bytes are more than {MOST_CONTEXT}");
        work.problems.refuse(Problem::new(Code::MappingPolicy, "auth_context_extensions", why));
        return None;
    }
    let context = if service.is_over_http { AuthContext::new() } else { context };
    Some(Authorization::AskFleet(Arc::new(context)))
}
