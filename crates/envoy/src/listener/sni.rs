//! Which filter chain a TLS connection takes: by the server name that the client asks for.
//!
//! The names stand beside the chains, not in them: `server_names` would be part of a chain's identity, and every host that
//! joins would cut the connections of all others. A name that is not listed leads to the chain of the fallback certificate,
//! or ends the connection where there is none.

use crate::name;
use envoy_api::{
    any,
    envoy::extensions::matching::common_inputs::network::v3::ServerNameInput,
    google::protobuf::StringValue,
    xds::{
        core::v3::TypedExtensionConfig,
        r#type::matcher::v3::{
            Matcher, ServerNameMatcher,
            matcher::{MatcherTree, MatcherType, OnMatch, matcher_tree::TreeType, on_match},
            server_name_matcher::DomainMatcher,
        },
    },
};
use model::{
    Host,
    tls::{Chain, TcpChain},
};

/// The map from server names to the names of chains.
pub fn matcher(chains: &[Chain], tcp: &[TcpChain]) -> Matcher {
    let http = chains.iter().map(|chain| names_of(chain.termination.to_string(), &chain.hosts));
    let tcp = tcp.iter().map(|chain| names_of(name::tcp_chain(&chain.host), std::slice::from_ref(&chain.host)));
    let names = ServerNameMatcher { domain_matchers: http.chain(tcp).collect() };
    Matcher {
        matcher_type: Some(MatcherType::MatcherTree(MatcherTree {
            input: Some(extension("server-name", any(&ServerNameInput {}))),
            tree_type: Some(TreeType::CustomMatch(extension("server-names", any(&names)))),
        })),
        ..Default::default()
    }
}

fn names_of(chain: String, hosts: &[Host]) -> DomainMatcher {
    let action = any(&StringValue { value: chain });
    DomainMatcher {
        domains: hosts.iter().map(ToString::to_string).collect(),
        on_match: Some(OnMatch {
            on_match: Some(on_match::OnMatch::Action(extension("filter-chain", action))),
            ..Default::default()
        }),
    }
}

fn extension(name: &str, config: envoy_api::Any) -> TypedExtensionConfig {
    TypedExtensionConfig { name: name.to_owned(), typed_config: Some(config) }
}
