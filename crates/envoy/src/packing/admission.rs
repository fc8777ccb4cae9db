//! Which connections of a TLS port may carry the requests for a host; the others are answered with 421.
//!
//! All hosts of a port are looked up together, whatever filter chain a connection took. Before anything else, Envoy writes the
//! chain's name into a header of ours, over whatever a client put there, and each virtual host answers 421 where that is not
//! the chain of the host. So a connection serves the hosts that share its certificate and settings, and a browser that reuses
//! it for another host is told to make another. A host that nobody has is not found (404), on whichever connection.
//!
//! A chain that shows certificates on demand has hosts with different ones. Its virtual hosts look at the chain and the server name
//! of the connection instead, which Envoy writes into another header: they must be the host's own. The server name alone would
//! not do: a host whose lowest TLS version is raised takes another chain, and connections of the old one must not go on. Such
//! hosts are never wildcards.
//!
//! With scopes, the first route of a virtual host is the one that answers 421. In a table it is the last, and each other route
//! asks for the chain or the server name: a redirect that Envoy follows by itself is looked up there too ([`redirects`]), and may find no route of a
//! host that its connection does not serve.

use envoy_api::{
    any,
    envoy::{
        config::{
            common::mutation_rules::v3::{HeaderMutation, header_mutation},
            core::v3::{HeaderValue, HeaderValueOption, TypedExtensionConfig, header_value_option::HeaderAppendAction},
            route::v3::{HeaderMatcher, Route, VirtualHost, header_matcher::HeaderMatchSpecifier},
        },
        extensions::http::early_header_mutation::header_mutation::v3::HeaderMutation as EarlyMutation,
        r#type::matcher::v3::{RegexMatcher, StringMatcher, string_matcher::MatchPattern},
    },
};
use model::{ChainId, Host, ObjectRef, PortId, PortProtocol, tls::Admission};
use std::sync::Arc;

use super::{
    Packing,
    redirects::{self, KEY},
};
use crate::{name, virtual_host};

/// The header that holds the name of the filter chain.
pub const CHAIN: &str = "x-sesame-chain";
/// The header that holds the name of the filter chain and the server name, where certificates are shown on demand.
pub const SERVER_NAME: &str = "x-sesame-server-name";

/// What writes the headers about the connection of a request, over whatever the client sent, or takes them away.
pub(crate) fn of_requests(protocol: PortProtocol, chain: Option<&ChainId>) -> [HeaderMutation; 2] {
    let on_demand = chain.is_some_and(|chain| chain.termination.is_on_demand());
    // Over QUIC, Envoy has no name of the chain at hand; a manager belongs to one chain, so it is known here.
    let chain_name = |chain: &ChainId| match protocol {
        PortProtocol::Quic => name::chain(chain).replace('%', "%%"),
        PortProtocol::Http | PortProtocol::Tls | PortProtocol::Tcp | PortProtocol::Udp => {
            "%FILTER_CHAIN_NAME%".to_owned()
        }
    };
    [
        chain.map_or_else(|| removed(CHAIN), |chain| written(CHAIN, chain_name(chain))),
        if on_demand {
            written(SERVER_NAME, server_name("%FILTER_CHAIN_NAME%", "%REQUESTED_SERVER_NAME%"))
        } else {
            removed(SERVER_NAME)
        },
    ]
}

/// What [`SERVER_NAME`] holds. No chain's name has a `|`, so a client that names a host cannot name a chain.
fn server_name(chain: &str, host: &str) -> String {
    format!("{chain}|{host}")
}

/// Writes a header of ours over whatever the client sent, also where there is nothing to write: without `keep_empty_value`
/// an empty value would leave the client's in place.
pub(super) fn written(name: &str, value: String) -> HeaderMutation {
    let header = HeaderValueOption {
        header: Some(HeaderValue { key: name.to_owned(), value, ..Default::default() }),
        append_action: HeaderAppendAction::OverwriteIfExistsOrAdd.into(),
        keep_empty_value: true,
        ..Default::default()
    };
    HeaderMutation { action: Some(header_mutation::Action::Append(header)) }
}

/// Takes a header of ours away that nothing writes here: nobody but us may say anything in it.
pub(crate) fn removed(name: &str) -> HeaderMutation {
    HeaderMutation { action: Some(header_mutation::Action::Remove(name.to_owned())) }
}

/// What is done with headers of ours before anything else looks at a request.
pub(crate) fn early(mutations: Vec<HeaderMutation>) -> TypedExtensionConfig {
    TypedExtensionConfig {
        name: "envoy.http.early_header_mutation.header_mutation".to_owned(),
        typed_config: Some(any(&EarlyMutation { mutations })),
    }
}

/// Tells clients for a day that the host is served by HTTP/3 at a port; under its draft name, too, for those that know no other. What a
/// backend says about it stands.
fn alternative(port: u16) -> HeaderValueOption {
    let value = format!(r#"h3=":{port}"; ma=86400, h3-29=":{port}"; ma=86400"#);
    HeaderValueOption {
        header: Some(HeaderValue { key: "alt-svc".to_owned(), value, ..Default::default() }),
        append_action: HeaderAppendAction::AddIfAbsent.into(),
        ..Default::default()
    }
}

/// Makes a virtual host of a TLS port answer 421 on connections that may not carry its requests; access logs of that answer have its
/// only author.
pub(super) fn guard(
    packing: Packing,
    port: &PortId,
    of: &Host,
    author: Option<&ObjectRef>,
    admission: &Admission,
    host: &mut VirtualHost,
) {
    hide(admission, host);
    host.response_headers_to_add.extend(admission.http3_port.map(alternative));
    if packing == Packing::Scoped {
        host.routes.insert(0, misdirected(author, elsewhere(of, admission)));
        return;
    }
    // A route has to match all of its conditions, so there is one for each way to be admitted; mostly one.
    let admitted = admitted(of, admission);
    let on_own = |route: Route| {
        admitted.iter().map(move |condition| {
            let mut route = route.clone();
            route.r#match.get_or_insert_default().headers.push(condition.clone());
            route
        })
    };
    host.routes = std::mem::take(&mut host.routes).into_iter().flat_map(on_own).collect();
    // A client is answered, a redirect finds nothing.
    let mut conditions = elsewhere(of, admission);
    conditions.push(matcher(KEY, MatchPattern::Exact(name::redirects_key(port)), true));
    host.routes.push(misdirected(author, conditions));
}

fn misdirected(author: Option<&ObjectRef>, conditions: Vec<HeaderMatcher>) -> Route {
    let mut route = virtual_host::misdirected_route(author);
    route.r#match.get_or_insert_default().headers = conditions;
    route
}

/// The routes of a virtual host that stands for others in a scope of redirects: one for each chain of these hosts.
pub(super) fn on_chains(chains: &[Arc<str>], route: &Route) -> Vec<Route> {
    let on_chain = |chain: &Arc<str>| {
        let mut route = route.clone();
        let conditions = &mut route.r#match.get_or_insert_default().headers;
        conditions.push(matcher(CHAIN, MatchPattern::Exact(chain.to_string()), false));
        route
    };
    chains.iter().map(on_chain).collect()
}

/// What tells requests whose connection is none of the admitted: all of it holds.
fn elsewhere(of: &Host, admission: &Admission) -> Vec<HeaderMatcher> {
    let not_on = |chain: &Arc<str>| matcher(CHAIN, MatchPattern::Exact(chain.to_string()), true);
    let Admission { chains, by_server_name, .. } = admission;
    match (of, chains.split_first()) {
        (Host::Exact(name), Some((own, others))) if *by_server_name => {
            let other_name = matcher(SERVER_NAME, MatchPattern::Exact(server_name(own, name.as_str())), true);
            std::iter::once(other_name).chain(others.iter().map(not_on)).collect()
        }
        _ => chains.iter().map(not_on).collect(),
    }
}

/// What tells requests whose connection is admitted: one of these holds.
fn admitted(of: &Host, admission: &Admission) -> Vec<HeaderMatcher> {
    let Admission { chains, by_server_name, .. } = admission;
    match (of, chains.split_first()) {
        (Host::Exact(name), Some((own, others))) if *by_server_name => {
            let own_name = matcher(SERVER_NAME, MatchPattern::Exact(server_name(own, name.as_str())), false);
            std::iter::once(own_name).chain(on_one_of(others)).collect()
        }
        _ => on_one_of(chains).into_iter().collect(),
    }
}

/// The connection took one of these chains; nothing if there are none.
fn on_one_of(chains: &[Arc<str>]) -> Option<HeaderMatcher> {
    let pattern = match chains {
        [] => return None,
        [only] => MatchPattern::Exact(only.to_string()),
        several => {
            let escaped: Vec<String> = several.iter().map(|chain| escaped(chain)).collect();
            MatchPattern::SafeRegex(RegexMatcher { regex: escaped.join("|"), ..Default::default() })
        }
    };
    Some(matcher(CHAIN, pattern, false))
}

/// A text as a pattern that matches it and nothing else.
fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        if character.is_ascii() && !character.is_ascii_alphanumeric() {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

fn matcher(name: &str, pattern: MatchPattern, invert_match: bool) -> HeaderMatcher {
    // The names of chains have upper and lower case, server names are as the client wrote them.
    let ignore_case = name == SERVER_NAME;
    HeaderMatcher {
        name: name.to_owned(),
        header_match_specifier: Some(HeaderMatchSpecifier::StringMatch(StringMatcher {
            match_pattern: Some(pattern),
            ignore_case,
        })),
        invert_match,
        treat_missing_header_as_empty: invert_match,
    }
}

/// Takes the headers about the connection away from what backends see, except where Envoy may need them to follow a redirect:
/// it does not write them again then.
fn hide(admission: &Admission, host: &mut VirtualHost) {
    for route in host.routes.iter_mut().filter(|route| !redirects::follows(route)) {
        route.request_headers_to_remove.push(CHAIN.to_owned());
        route.request_headers_to_remove.extend(admission.by_server_name.then(|| SERVER_NAME.to_owned()));
    }
}
