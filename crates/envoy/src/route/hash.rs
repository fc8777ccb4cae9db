//! What the hash of a request is made of, where one chooses the endpoint.

use envoy_api::{
    envoy::config::route::v3::route_action::{
        HashPolicy,
        hash_policy::{ConnectionProperties, Cookie, Header, PolicySpecifier, QueryParameter},
    },
    google::protobuf::Duration,
};
use model::route::{Hash, HashOf};

/// One part of it.
pub fn policy(hash: &Hash) -> HashPolicy {
    let specifier = match &hash.of {
        HashOf::Cookie(name) => PolicySpecifier::Cookie(Cookie {
            name: name.to_string(),
            ttl: Some(Duration::default()),
            path: "/".to_owned(),
            ..Default::default()
        }),
        HashOf::Header(name) => PolicySpecifier::Header(Header { header_name: name.to_string(), ..Default::default() }),
        HashOf::Query(name) => PolicySpecifier::QueryParameter(QueryParameter { name: name.to_string() }),
        HashOf::SourceIp => PolicySpecifier::ConnectionProperties(ConnectionProperties { source_ip: true }),
    };
    HashPolicy { policy_specifier: Some(specifier), terminal: hash.terminal }
}
