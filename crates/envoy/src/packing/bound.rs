//! Requests are bound to the server name of their connection, where hosts with different certificates share a chain.
//!
//! A chain with one certificate has only its own hosts, and answers 421 for all others. A chain that shows certificates on
//! demand has hosts of many: there, Envoy first writes the server name into a header of ours, over whatever a client put
//! there, and the first route of each virtual host answers 421 where it is another host's. So a connection serves the host
//! that it was made for (a wildcard's serves what lies below the wildcard), and a browser that reuses it for another is told
//! to make another.

use envoy_api::{
    any,
    envoy::{
        config::{
            common::mutation_rules::v3::{HeaderMutation, header_mutation},
            core::v3::{HeaderValue, HeaderValueOption, TypedExtensionConfig, header_value_option::HeaderAppendAction},
            route::v3::{HeaderMatcher, VirtualHost, header_matcher::HeaderMatchSpecifier},
        },
        extensions::http::early_header_mutation::header_mutation::v3::HeaderMutation as EarlyMutation,
        r#type::matcher::v3::{StringMatcher, string_matcher::MatchPattern},
    },
};
use model::{Host, RouteTableId};

use super::redirects;
use crate::virtual_host;

/// The header that holds the server name.
pub const SERVER_NAME: &str = "x-sesame-server-name";

/// Whether the requests of a table have to be bound.
pub(crate) fn is_needed(table: &RouteTableId) -> bool {
    table.termination.as_deref().is_some_and(model::tls::Termination::is_on_demand)
}

/// What writes the server name, over whatever the client sent.
pub(crate) fn server_name_of_requests() -> HeaderMutation {
    written(SERVER_NAME, "%REQUESTED_SERVER_NAME%".to_owned())
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

/// Takes the server name away from what backends see, except where Envoy may need it to follow a redirect: it does not write
/// it again then.
fn hide(host: &mut VirtualHost) {
    for route in host.routes.iter_mut().filter(|route| !redirects::follows(route)) {
        route.request_headers_to_remove.push(SERVER_NAME.to_owned());
    }
}

/// Binds a virtual host of this table to its own server name, if that is needed.
pub(super) fn bind(table: &RouteTableId, of: &Host, host: &mut VirtualHost) {
    let own = match of {
        Host::Exact(name) => MatchPattern::Exact(name.to_string()),
        Host::Wildcard(below) => MatchPattern::Suffix(format!(".{below}")),
        Host::Any => return,
    };
    if !is_needed(table) {
        return;
    }
    let another = HeaderMatcher {
        name: SERVER_NAME.to_owned(),
        header_match_specifier: Some(HeaderMatchSpecifier::StringMatch(StringMatcher {
            match_pattern: Some(own),
            ignore_case: true,
        })),
        invert_match: true,
        treat_missing_header_as_empty: true,
    };
    let mut misdirected = virtual_host::misdirected_route();
    misdirected.r#match.get_or_insert_default().headers.push(another);
    hide(host);
    host.routes.insert(0, misdirected);
}
