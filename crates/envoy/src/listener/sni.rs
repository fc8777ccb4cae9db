//! Which filter chain a connection of a TLS listener takes: by the server name that the client asks for.
//!
//! The names stand beside the chains, not in them: `server_names` would be part of a chain's identity, and every host that
//! joins would cut the connections of all others. A name that is not listed leads to the chain of the host that takes every name,
//! or to the on-demand chain, whose certificates tell which hosts there are, or to that of the fallback certificate, or ends the
//! connection where there is none of them. Each chain's names are encoded by themselves, when they change: see [`crate::splice`].
//! A listener that takes plaintext as well has a chain for it, which no server name leads to.

use bytes::{Bytes, BytesMut};
pub use envoy_api::xds::r#type::matcher::v3::matcher::OnMatch;
use envoy_api::{
    Any, Name, any,
    envoy::extensions::matching::common_inputs::network::v3::{ServerNameInput, TransportProtocolInput},
    google::protobuf::StringValue,
    xds::{
        core::v3::TypedExtensionConfig,
        r#type::matcher::v3::{
            Matcher, RegexMatcher, ServerNameMatcher, StringMatcher,
            matcher::{
                MatcherList, MatcherTree, MatcherType,
                matcher_list::{
                    FieldMatcher, Predicate,
                    predicate::{self, SinglePredicate, single_predicate},
                },
                matcher_tree::{MatchMap, TreeType},
                on_match,
            },
            regex_matcher::{EngineType, GoogleRe2},
            server_name_matcher::DomainMatcher,
            string_matcher::MatchPattern,
        },
    },
};
use model::Host;
use prost::Message;

use crate::{name, splice};

/// The number of `ServerNameMatcher.domain_matchers`.
const DOMAIN_MATCHERS: u32 = 1;

/// What Envoy takes a connection for that does not begin with a TLS handshake.
const PLAINTEXT: &str = "raw_buffer";

/// What a client may ask for where certificates tell which hosts there are. Anything else is the name of no host, but might be
/// that of another resource of ours.
const HOST_NAME: &str = r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*";

/// The names that lead to a chain, encoded.
pub fn names(chain: &str, hosts: &[Host]) -> Bytes {
    leading(hosts, take(chain))
}

/// Names with where they lead, encoded.
pub fn leading(hosts: &[Host], on_match: OnMatch) -> Bytes {
    let domains = hosts.iter().map(ToString::to_string).collect();
    DomainMatcher { domains, on_match: Some(on_match) }.encode_to_vec().into()
}

/// The connection takes this chain. If there is no chain of this name it is closed, whatever other chains there are.
pub fn take(chain: &str) -> OnMatch {
    let chain = any(&StringValue { value: chain.to_owned() });
    OnMatch { on_match: Some(on_match::OnMatch::Action(extension("filter-chain", chain))), ..Default::default() }
}

/// Every name of a host leads to one chain.
pub fn every(chain: &str) -> OnMatch {
    let host_name = StringMatcher {
        match_pattern: Some(MatchPattern::SafeRegex(RegexMatcher {
            engine_type: Some(EngineType::GoogleRe2(GoogleRe2 {})),
            regex: HOST_NAME.to_owned(),
        })),
        ..Default::default()
    };
    let predicate = SinglePredicate {
        input: Some(extension("server-name", any(&ServerNameInput {}))),
        matcher: Some(single_predicate::Matcher::ValueMatch(host_name)),
    };
    let matcher = FieldMatcher {
        predicate: Some(Predicate { match_type: Some(predicate::MatchType::SinglePredicate(predicate)) }),
        on_match: Some(take(chain)),
    };
    let matcher = Matcher {
        matcher_type: Some(MatcherType::MatcherList(MatcherList { matchers: vec![matcher] })),
        ..Default::default()
    };
    OnMatch { on_match: Some(on_match::OnMatch::Matcher(Box::new(matcher))), ..Default::default() }
}

/// The map from server names to the names of chains, and the chain for all other clients, those without a name among them.
pub fn matcher<'a>(names: impl Iterator<Item = &'a Bytes>, others: Option<OnMatch>) -> Matcher {
    let mut map = BytesMut::new();
    names.for_each(|names| splice::append(&mut map, DOMAIN_MATCHERS, names));
    if map.is_empty() {
        match others {
            Some(OnMatch { on_match: Some(on_match::OnMatch::Matcher(only)), .. }) => return *only,
            Some(others) => return Matcher { on_no_match: Some(Box::new(others)), ..Default::default() },
            None => {}
        }
    }
    let on_no_match = others.map(Box::new);
    let map = Any { type_url: ServerNameMatcher::type_url(), value: map.freeze() };
    Matcher {
        matcher_type: Some(MatcherType::MatcherTree(MatcherTree {
            input: Some(extension("server-name", any(&ServerNameInput {}))),
            tree_type: Some(TreeType::CustomMatch(extension("server-names", map))),
        })),
        on_no_match,
    }
}

/// The same, with plaintext connections in [a chain of theirs](super::plaintext_chain).
pub fn beside_plaintext(names: Matcher) -> Matcher {
    let plaintext = MatchMap { map: [(PLAINTEXT.to_owned(), take(name::PLAINTEXT_CHAIN))].into() };
    let names = on_match::OnMatch::Matcher(Box::new(names));
    Matcher {
        matcher_type: Some(MatcherType::MatcherTree(MatcherTree {
            input: Some(extension("transport-protocol", any(&TransportProtocolInput {}))),
            tree_type: Some(TreeType::ExactMatchMap(plaintext)),
        })),
        on_no_match: Some(Box::new(OnMatch { on_match: Some(names), ..Default::default() })),
    }
}

pub(super) fn extension(name: &str, config: Any) -> TypedExtensionConfig {
    TypedExtensionConfig { name: name.to_owned(), typed_config: Some(config) }
}
