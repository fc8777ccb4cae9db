//! What a client says: one stream's half of the protocol, without sockets.
//!
//! In: subscriptions, responses, answers. Out: encoded requests in the order in which they go out, each with the kind whose
//! stream it belongs to. Delta and state of the world differ only here.
//!
//! What a client tells on a new stream that it already has ([`Known`]) is encoded once: messages of protobuf may be
//! concatenated, so thousands of clients send one shared copy behind their own few bytes. The same goes for all of a first request
//! but the node ([`FirstRequests`]), which is not even copied.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use envoy_api::Message;
use envoy_api::envoy::config::core::v3::Node;
use envoy_api::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use envoy_api::google::rpc::Status;

use super::state::Of;
use super::{Kind, Response, State};

/// How a client speaks.
#[derive(Clone, Debug)]
pub(super) struct Manner {
    pub delta: bool,
    pub aggregated: bool,
    /// Says `*` where older clients say nothing.
    pub explicit_all: bool,
    pub node: Node,
    pub known: Known,
    /// Sent before anything else, by clients that ask for what others ask for.
    pub first: FirstRequests,
}

/// What has been said on the present streams.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Kinds that were asked for.
    kinds: BTreeSet<Kind>,
    /// Streams on which the node was named: those of these kinds, or the one for all.
    nodes: BTreeSet<Option<Kind>>,
}

impl Said {
    fn node(&mut self, manner: &Manner, kind: Kind) -> Option<Node> {
        let stream = (!manner.aggregated).then_some(kind);
        self.nodes.insert(stream).then(|| manner.node.clone())
    }

    /// Asks for names, and no longer for others. In state of the world all names are said again.
    pub fn subscribe(&mut self, manner: &Manner, kind: Kind, of: &Of, add: &[String], remove: &[String]) -> Bytes {
        let first = self.kinds.insert(kind);
        let node = self.node(manner, kind);
        if !manner.delta {
            return self.sotw(manner, kind, of, node, None);
        }
        let request = DeltaDiscoveryRequest {
            node,
            type_url: kind.type_url(),
            resource_names_subscribe: if first { wanted(manner, of) } else { add.to_vec() },
            resource_names_unsubscribe: remove.to_vec(),
            ..Default::default()
        };
        let mut bytes = request.encode_to_vec();
        if first {
            bytes.extend_from_slice(&manner.known.part(kind));
        }
        bytes.into()
    }

    /// The beginning of a first request whose rest is one of [`FirstRequests`].
    pub fn beginning(&mut self, manner: &Manner, kind: Kind) -> Vec<u8> {
        self.kinds.insert(kind);
        DeltaDiscoveryRequest { node: self.node(manner, kind), ..Default::default() }.encode_to_vec()
    }

    /// Answers a response: takes it, or refuses it with a text.
    pub fn answer(
        &mut self,
        manner: &Manner,
        kind: Kind,
        of: &Of,
        response: &Response,
        refusal: Option<&str>,
    ) -> Bytes {
        let error_detail = refusal.map(|text| Status { code: 3, message: text.to_owned(), ..Default::default() });
        let node = self.node(manner, kind);
        if !manner.delta {
            return self.sotw(manner, kind, of, node, error_detail);
        }
        let request = DeltaDiscoveryRequest {
            node,
            type_url: kind.type_url(),
            response_nonce: response.nonce.clone(),
            error_detail,
            ..Default::default()
        };
        request.encode_to_vec().into()
    }

    fn sotw(&self, manner: &Manner, kind: Kind, of: &Of, node: Option<Node>, error_detail: Option<Status>) -> Bytes {
        let request = DiscoveryRequest {
            version_info: of.version.clone(),
            node,
            resource_names: wanted(manner, of),
            type_url: kind.type_url(),
            response_nonce: of.nonce.clone(),
            error_detail,
            ..Default::default()
        };
        request.encode_to_vec().into()
    }
}

/// The names of a first request. Only one with no names at all is understood as one for all.
fn wanted(manner: &Manner, of: &Of) -> Vec<String> {
    let mut names: Vec<String> = of.names.iter().cloned().collect();
    if of.all && (manner.explicit_all || !of.names.is_empty()) {
        names.push("*".into());
    }
    names
}

/// First requests by kind without the node of whoever sends them: what they ask for, and what they say that they have. Cheap to copy.
#[derive(Clone, Debug, Default)]
pub struct FirstRequests(Arc<BTreeMap<Kind, Bytes>>);

impl FirstRequests {
    pub(super) fn of(manner: &Manner, kinds: &BTreeMap<Kind, Of>) -> FirstRequests {
        let asked = kinds.iter().filter(|(_, of)| of.all || !of.names.is_empty());
        let encoded = asked.map(|(kind, of)| {
            let request = DeltaDiscoveryRequest {
                type_url: kind.type_url(),
                resource_names_subscribe: wanted(manner, of),
                ..Default::default()
            };
            let mut bytes = request.encode_to_vec();
            bytes.extend_from_slice(&manner.known.part(*kind));
            (*kind, bytes.into())
        });
        FirstRequests(Arc::new(encoded.collect()))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Kind, Bytes)> {
        self.0.iter().map(|(kind, request)| (*kind, request.clone()))
    }
}

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
