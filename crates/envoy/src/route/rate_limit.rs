//! What a rate limit service is asked about the requests of a route.

use super::header;
use envoy_api::envoy::config::route::v3::{
    RateLimit,
    rate_limit::{
        Action,
        action::{
            ActionSpecifier, DestinationCluster, GenericKey, HeaderValueMatch, RemoteAddress, RequestHeaders,
            SourceCluster,
        },
    },
};
use model::route::{Descriptor, DescriptorEntry};

/// The descriptors.
pub fn rate_limits(descriptors: &[Descriptor]) -> Vec<RateLimit> {
    let one = |descriptor: &Descriptor| {
        let actions = descriptor.entries.iter().map(|entry| Action { action_specifier: Some(specifier(entry)) });
        RateLimit { actions: actions.collect(), ..Default::default() }
    };
    descriptors.iter().map(one).collect()
}

fn specifier(entry: &DescriptorEntry) -> ActionSpecifier {
    match entry {
        DescriptorEntry::Generic { key, value } => ActionSpecifier::GenericKey(GenericKey {
            descriptor_key: key.as_deref().unwrap_or_default().to_owned(),
            descriptor_value: value.to_string(),
            ..Default::default()
        }),
        DescriptorEntry::Header { name, key, skip_if_absent } => ActionSpecifier::RequestHeaders(RequestHeaders {
            header_name: name.to_string(),
            descriptor_key: key.to_string(),
            skip_if_absent: *skip_if_absent,
        }),
        DescriptorEntry::HeaderMatch { headers, expected, value } => {
            ActionSpecifier::HeaderValueMatch(HeaderValueMatch {
                descriptor_value: value.to_string(),
                expect_match: Some((*expected).into()),
                headers: headers.iter().map(header).collect(),
                ..Default::default()
            })
        }
        DescriptorEntry::RemoteAddress => ActionSpecifier::RemoteAddress(RemoteAddress {}),
        DescriptorEntry::SourceCluster => ActionSpecifier::SourceCluster(SourceCluster {}),
        DescriptorEntry::DestinationCluster => ActionSpecifier::DestinationCluster(DestinationCluster {}),
    }
}
