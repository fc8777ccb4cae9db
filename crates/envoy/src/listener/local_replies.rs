//! What stands in answers that are the proxy's own because there is nothing to serve: a code from the table and its meaning, in
//! one line. Answers that a user wrote are left as they are, and so are those of Envoy's filters, on whatever route: who is denied
//! is told so by the filter.
//!
//! What an authorization server says in a denial is left as it is, too, but for a status that can have no body.
//!
//! The texts stand in the listener, not in the routes: a host costs nothing for them. A route that answers in the place of
//! something has its own reason in its metadata, since there are many of them. Access logs have the same code ([`logged`]),
//! whatever the bodies are.

use crate::{
    packing::scoped::NO_PATH,
    route::{self, ORIGIN},
    virtual_host::MISDIRECTED,
};
use envoy_api::{
    any,
    envoy::{
        config::{
            accesslog::v3::{
                AccessLogFilter, AndFilter, ExtensionFilter, ResponseFlagFilter, access_log_filter::FilterSpecifier,
                extension_filter,
            },
            core::v3::{
                DataSource, Metadata, SubstitutionFormatString, data_source::Specifier,
                substitution_format_string::Format,
            },
        },
        extensions::{
            access_loggers::filters::cel::v3::ExpressionFilter,
            filters::network::http_connection_manager::v3::{LocalReplyConfig, ResponseMapper},
        },
    },
    google::protobuf::Value,
};
use model::{Code, listener::LocalReplyBody};

/// The code in the metadata of a route.
pub(super) const REASON: &str = "reason";
/// What it means, there.
const TEXT: &str = "text";
/// What Envoy says of an answer that a route gave by itself, and not a filter before it.
const DIRECT: &str = "direct_response";
/// Envoy's response flag of a request that an authorization server denied.
const DENIED: &str = "UAEX";
/// What Envoy says of an answer to a request that no route matched.
const NO_ROUTE: &str = "route_not_found";
/// What Envoy says of an answer to a request of HTTP/1.0, where that is not accepted.
const LOW_VERSION: &str = "low_version";

/// What a route's metadata says about the reason for which it answers by itself. There are as many redirects as there are hosts with
/// TLS: what theirs means stands in the listener.
pub(crate) fn reason(code: Code) -> impl Iterator<Item = (String, Value)> {
    let text = (code != Code::Redirected).then(|| (TEXT.to_owned(), code.title().into()));
    std::iter::once((REASON.to_owned(), code.to_string().as_str().into())).chain(text)
}

/// The metadata of a route that answers by itself and is nobody's.
pub(crate) fn metadata(code: Code) -> Metadata {
    let code_text = code.to_string();
    route::facts([(REASON, code_text.as_str()), (TEXT, code.title())].into_iter())
}

/// The operator that writes the code of an answer of the proxy's own into an access log; nothing for all others, since Envoy writes
/// nothing where an expression finds no value.
pub(super) fn logged() -> String {
    let cases = [
        (of_route_named(NO_PATH), Code::PathNotFound),
        (of_route_named(MISDIRECTED), Code::Misdirected),
        (format!("{} && has(xds.virtual_host_name)", details(NO_ROUTE)), Code::PathNotFound),
        (details(NO_ROUTE), Code::HostNotFound),
        (details(LOW_VERSION), Code::HttpVersion),
    ];
    let known: String = cases.iter().map(|(condition, code)| format!("{condition} ? '{code}' : ")).collect();
    // What a filter answers has not the reason of the route that it stands before.
    let of_route = format!("{}[{} ? '{REASON}' : '']", metadata_of_route(), details(DIRECT));
    format!("%CEL({known}{of_route})%")
}

/// The bodies of a listener's own answers.
pub(super) fn config(body: LocalReplyBody) -> Option<LocalReplyConfig> {
    let mut mappers = vec![denied()];
    if body == LocalReplyBody::Empty {
        return Some(LocalReplyConfig { mappers, ..Default::default() });
    }
    let of_route = |condition: &str| format!("{} && {condition}", details(DIRECT));
    let own = metadata_of_route();
    let in_metadata = |key: &str| format!("%METADATA(ROUTE:{ORIGIN}:{key})%");
    mappers.extend([
        mapper(&format!("{} && has(xds.virtual_host_name)", details(NO_ROUTE)), line(Code::PathNotFound)),
        mapper(&details(NO_ROUTE), line(Code::HostNotFound)),
        mapper(&details(LOW_VERSION), line(Code::HttpVersion)),
        mapper(&of_route_named(NO_PATH), line(Code::PathNotFound)),
        mapper(&of_route_named(MISDIRECTED), line(Code::Misdirected)),
        mapper(&of_route(&format!("{own}['{REASON}'] == '{}'", Code::Redirected)), line(Code::Redirected)),
        mapper(&of_route(&format!("'{REASON}' in {own}")), format!("{}: {}\n", in_metadata(REASON), in_metadata(TEXT))),
    ]);
    Some(LocalReplyConfig { mappers, ..Default::default() })
}

/// A status that has no body is none for a denial: Envoy would send the body of the authorization server nevertheless, and the client
/// would take it for the next response of the connection.
fn denied() -> ResponseMapper {
    let by_server = FilterSpecifier::ResponseFlagFilter(ResponseFlagFilter { flags: vec![DENIED.to_owned()] });
    let without_body = expression("response.code < 200 || response.code == 204 || response.code == 304");
    let both = [by_server, without_body].map(filter).to_vec();
    let filter = filter(FilterSpecifier::AndFilter(AndFilter { filters: both }));
    ResponseMapper { filter: Some(filter), status_code: Some(403.into()), ..Default::default() }
}

/// Our metadata of the route, in CEL.
fn metadata_of_route() -> String {
    format!("xds.route_metadata.filter_metadata['{ORIGIN}']")
}

/// A condition: this is Envoy's word for how the answer came about.
fn details(word: &str) -> String {
    format!("response.code_details == '{word}'")
}

/// A condition: the route of this name answered by itself.
fn of_route_named(name: &str) -> String {
    format!("{} && xds.route_name == '{name}'", details(DIRECT))
}

fn line(code: Code) -> String {
    format!("{code}: {}\n", code.title())
}

fn mapper(condition: &str, body: String) -> ResponseMapper {
    let source = DataSource { specifier: Some(Specifier::InlineString(body)), ..Default::default() };
    let body = SubstitutionFormatString { format: Some(Format::TextFormatSource(source)), ..Default::default() };
    let filter = filter(expression(condition));
    ResponseMapper { filter: Some(filter), body_format_override: Some(body), ..Default::default() }
}

fn filter(specifier: FilterSpecifier) -> AccessLogFilter {
    AccessLogFilter { filter_specifier: Some(specifier) }
}

/// A condition in CEL: access log filters have no other words for routes.
pub(super) fn expression(text: &str) -> FilterSpecifier {
    let filter = ExpressionFilter { expression: text.to_owned(), ..Default::default() };
    FilterSpecifier::ExtensionFilter(ExtensionFilter {
        name: "envoy.access_loggers.extension_filters.cel".to_owned(),
        config_type: Some(extension_filter::ConfigType::TypedConfig(any(&filter))),
    })
}
