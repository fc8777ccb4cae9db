//! Which clients take a filter chain, by their address.
//!
//! In: a list of ranges. Out: a part of the listener's matcher that ends with the chain or with a chain that there is not.
//! Envoy looks at it when a connection is accepted and its server name is known: before the handshake, and before a backend
//! is connected.
//!
//! Every way through it names a chain. Where a matcher finds nothing, Envoy goes on with the next wider wildcard and with the
//! default chain: a client that is refused here would be served there.

use envoy_api::{
    any,
    envoy::extensions::matching::common_inputs::network::v3::{DirectSourceIpInput, SourceIpInput},
    xds::{
        core::v3::CidrRange,
        r#type::matcher::v3::{
            IpMatcher, Matcher,
            ip_matcher::IpRangeMatcher,
            matcher::{MatcherTree, MatcherType, OnMatch, matcher_tree::TreeType, on_match},
        },
    },
};
use model::route::{AddressOf, Cidr, IpFilter};

use super::sni::{extension, take};
use crate::name;

/// The chain for those who may, a closed connection for all others. A client that any range of the list has is listed,
/// whichever of its addresses the range is about.
pub(super) fn filtered(ip_filter: &IpFilter, chain: &str) -> OnMatch {
    let (listed, others) = if ip_filter.allow { (chain, name::REFUSED_CHAIN) } else { (name::REFUSED_CHAIN, chain) };
    [AddressOf::Remote, AddressOf::Peer].into_iter().fold(take(others), |others, of| {
        let ranges: Vec<CidrRange> = ip_filter.forms().filter(|form| form.0 == of).map(|form| range(form.1)).collect();
        if ranges.is_empty() { others } else { by_address(of, ranges, take(listed), others) }
    })
}

fn range(cidr: Cidr) -> CidrRange {
    CidrRange { address_prefix: cidr.address.to_string(), prefix_len: Some(u32::from(cidr.bits).into()) }
}

fn by_address(of: AddressOf, ranges: Vec<CidrRange>, listed: OnMatch, others: OnMatch) -> OnMatch {
    let input = match of {
        AddressOf::Peer => any(&DirectSourceIpInput {}),
        AddressOf::Remote => any(&SourceIpInput {}),
    };
    let listed = IpRangeMatcher { ranges, on_match: Some(listed), exclusive: false };
    let tree = MatcherTree {
        input: Some(extension("address", input)),
        tree_type: Some(TreeType::CustomMatch(extension("ranges", any(&IpMatcher { range_matchers: vec![listed] })))),
    };
    let matcher = Matcher { matcher_type: Some(MatcherType::MatcherTree(tree)), on_no_match: Some(Box::new(others)) };
    OnMatch { on_match: Some(on_match::OnMatch::Matcher(Box::new(matcher))), ..Default::default() }
}
