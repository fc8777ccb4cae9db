//! Global rate limits: what proxies ask a rate limit service about a request.
//!
//! The service counts by descriptors, which it knows from its own configuration: what is written is what is asked, byte for byte.

use super::{HeaderMatch, Policy};
use crate::HeaderName;
use std::sync::Arc;

/// The descriptors of a request: the service answers whether any of them is over its limit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GlobalRateLimit {
    /// In the order in which they are written; never empty.
    pub descriptors: Vec<Descriptor>,
}

/// One descriptor. It is not asked about where one of its entries has no value for the request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Descriptor {
    /// Its entries, in order; never empty.
    pub entries: Vec<DescriptorEntry>,
}

/// A key and the value that a request has for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DescriptorEntry {
    /// A fixed value.
    Generic {
        /// The key; `generic_key` where there is none.
        key: Option<Arc<str>>,
        /// The value; never empty.
        value: Arc<str>,
    },
    /// The value of a header.
    Header {
        /// The header.
        name: HeaderName,
        /// The key; never empty.
        key: Arc<str>,
        /// Whether a request without the header is asked about without this entry; otherwise the descriptor is not asked about.
        skip_if_absent: bool,
    },
    /// A fixed value, for requests whose headers match, under the key `header_match`.
    HeaderMatch {
        /// What they have to fulfil; never empty.
        headers: Vec<HeaderMatch>,
        /// Whether they have to; otherwise they may not.
        expected: bool,
        /// The value; never empty.
        value: Arc<str>,
    },
    /// The client's address, under the key `remote_address`.
    RemoteAddress,
    /// The cluster of the proxy itself, under the key `source_cluster`.
    SourceCluster,
    /// The cluster that the request is sent to, under the key `destination_cluster`.
    DestinationCluster,
}

impl GlobalRateLimit {
    /// How much text it holds, about as much as a proxy is sent for it.
    pub fn bytes(&self) -> usize {
        let entry = |entry: &DescriptorEntry| match entry {
            DescriptorEntry::Generic { key, value } => value.len() + key.as_ref().map_or(0, |key| key.len()),
            DescriptorEntry::Header { name, key, .. } => name.as_str().len() + key.len(),
            DescriptorEntry::HeaderMatch { headers, value, .. } => {
                let headers = headers.iter().map(|it| it.name.as_str().len() + it.value.bytes());
                value.len() + headers.sum::<usize>()
            }
            DescriptorEntry::RemoteAddress | DescriptorEntry::SourceCluster | DescriptorEntry::DestinationCluster => 0,
        };
        let entries = self.descriptors.iter().flat_map(|descriptor| &descriptor.entries);
        entries.map(|one| ENTRY + entry(one)).sum()
    }
}

/// What an entry takes besides its text.
const ENTRY: usize = 16;

impl Policy {
    /// The global rate limit of a route. Proxies ask about requests that they forward, and about no others.
    pub fn descriptors(&self) -> &[Descriptor] {
        self.global_limit.as_deref().map_or(&[], |limit| &limit.descriptors)
    }
}
