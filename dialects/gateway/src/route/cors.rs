//! The CORS filter.

use super::{Rejection, Wrong};
use kinds::gateway::filter;
use model::{
    Code, FieldPath, Regex,
    route::{
        Cors, StringMatch,
        cors::{AllowedOrigin, HeaderToken},
    },
};
use std::time::Duration;

/// How long a browser may keep the answer, where nothing is said.
const MAX_AGE: i64 = 5;

/// Reads the filter. One that is wrong in part is not used, so what is left out here does not matter.
pub(crate) fn policy(written: &filter::Cors, field: &FieldPath, wrong: &mut Wrong) -> Cors {
    let reject = |name: &str, why: String| Rejection::new(Code::GatewayRouteFilter, field.field(name), why);
    let tokens = |name: &str, words: &[Box<str>], wrong: &mut Wrong| -> Vec<HeaderToken> {
        let tokens = words.iter().map(|word| HeaderToken::parse(word).map_err(|error| reject(name, error.to_string())));
        tokens.filter_map(|token| wrong.take(token)).collect()
    };
    if written.allow_origins.is_empty() {
        wrong.add(reject("allowOrigins", "must have at least one origin".to_owned()));
    }
    let origins = written.allow_origins.iter().map(|text| origin(text).map_err(|why| reject("allowOrigins", why)));
    let origins = origins.filter_map(|origin| wrong.take(origin)).collect();
    let max_age = written.max_age.unwrap_or(MAX_AGE);
    let max_age = u32::try_from(max_age).map_err(|_| reject("maxAge", format!("must be at least 0, not {max_age}")));
    let max_age = wrong.take(max_age).unwrap_or_default();
    let exposed = tokens("exposeHeaders", &written.expose_headers, wrong);
    let credentials = written.allow_credentials.unwrap_or(false);
    if credentials && exposed.iter().any(|header| header.as_str() == "*") {
        let why = "`*` cannot be used with allowCredentials: browsers take it for the name of a header";
        wrong.add(reject("exposeHeaders", why.to_owned()));
    }
    Cors {
        origins,
        methods: tokens("allowMethods", &written.allow_methods, wrong),
        headers: tokens("allowHeaders", &written.allow_headers, wrong),
        exposed,
        credentials,
        max_age: Some(Duration::from_secs(max_age.into())),
        private_network: false,
        forwards_other_preflights: false,
    }
}

/// `*`, an origin, or one whose host begins with a wildcard that stands for any number of labels.
fn origin(text: &str) -> Result<AllowedOrigin, String> {
    if text == "*" {
        return Ok(AllowedOrigin::Any);
    }
    let wrong = || format!("`{}` is not `*` or scheme://host[:port]", text.escape_debug());
    let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
    let is_plain =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && !b"/?#@\\*".contains(&b));
    match rest.strip_prefix("*.") {
        _ if !is_plain(scheme) => Err(wrong()),
        Some(below) if is_plain(below) => {
            let pattern = format!("{}://[^/]+\\.{}", Regex::literal(scheme), Regex::literal(below));
            Regex::parse(&format!("(?i){pattern}"))
                .map(|regex| AllowedOrigin::Matching(StringMatch::Regex(regex)))
                .map_err(|error| error.to_string())
        }
        None if is_plain(rest) => Ok(AllowedOrigin::Matching(StringMatch::Exact(text.into()))),
        _ => Err(wrong()),
    }
}
