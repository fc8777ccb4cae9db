//! Responses to requests that an authorization server allowed: their status and length are those of whoever answered.
//!
//! The server may add headers to the response, and Envoy has rules for those of requests only. With a length or a status that does not
//! fit the body it would write what a client takes for the next response of the connection, which may be that of another host. So one
//! filter notes both before the server's headers are added, and [the script](super::response_script) writes them back afterwards, since
//! the filter that changes headers does not change a status. The connection manager removes what else would matter:
//! `transfer-encoding`, `connection` and `upgrade`.
//!
//! Both filters are in every chain, on either side of those that ask, and do nothing for other routes.

use crate::listener::ext_authz::AuthorizationFilter;
use envoy_api::{
    Any, any,
    envoy::extensions::filters::http::header_to_metadata::v3::{
        Config,
        config::{KeyValuePair, Rule},
    },
};
use model::route::Policy;

/// The filter that notes what the response had.
pub const NOTED: &str = "envoy.filters.http.header_to_metadata";

/// Where it is noted, in the metadata of the request; the script reads it there.
pub(super) const METADATA: &str = "sesame.response";

/// What a route tells the filter, if a server is asked about its requests.
pub fn of(policy: &Policy) -> Option<(String, Any)> {
    AuthorizationFilter::of(&policy.authorization).map(|_| (NOTED.to_owned(), any(&noted())))
}

fn noted() -> Config {
    let rule = |header: &str, key: &str| Rule {
        header: header.to_owned(),
        on_header_present: Some(KeyValuePair {
            metadata_namespace: METADATA.to_owned(),
            key: key.to_owned(),
            ..Default::default()
        }),
        ..Default::default()
    };
    Config { response_rules: vec![rule("content-length", "length"), rule(":status", "status")], ..Default::default() }
}
