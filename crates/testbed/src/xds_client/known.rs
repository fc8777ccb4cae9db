//! What a client tells on a new stream that it already has.
//!
//! In: a [`State`]. Out: per kind, the encoded part of a delta request that lists names and versions. Messages of protobuf
//! may be concatenated, so thousands of clients send one shared copy behind their own few bytes.

use std::collections::BTreeMap;

use bytes::Bytes;
use envoy_api::Message;
use envoy_api::envoy::service::discovery::v3::DeltaDiscoveryRequest;

use super::{Kind, State};

/// Names and versions by kind; cheap to copy.
#[derive(Clone, Debug, Default)]
pub struct Known(BTreeMap<Kind, Bytes>);

impl Known {
    pub(super) fn of(state: &State) -> Known {
        let versions = |of: &super::state::Of| {
            let initial_resource_versions =
                of.held.iter().map(|(name, held)| (name.clone(), held.version.clone())).collect();
            let part = DeltaDiscoveryRequest { initial_resource_versions, ..Default::default() };
            Bytes::from(part.encode_to_vec())
        };
        Known(state.kinds.iter().map(|(kind, of)| (*kind, versions(of))).collect())
    }

    pub(super) fn part(&self, kind: Kind) -> Bytes {
        self.0.get(&kind).cloned().unwrap_or_default()
    }
}
