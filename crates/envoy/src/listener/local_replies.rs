//! What stands in answers that are the proxy's own because there is nothing to serve: a code from the table and its meaning, in
//! one line. Answers that a user wrote are left as they are, and so are those of Envoy's filters, on whatever route: who is denied
//! is told so by the filter.
//!
//! The texts stand in the listener, not in the routes: a host costs nothing for them. A route that answers in the place of
//! something has its own reason in its metadata, since there are many of them.

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
/// Envoy's response flag of a request that no route matched.
const NO_ROUTE: &str = "NR";

/// What a route's metadata says about the reason for which it answers by itself.
pub(crate) fn reason(code: Code) -> [(String, Value); 2] {
    [(REASON.to_owned(), code.to_string().as_str().into()), (TEXT.to_owned(), code.title().into())]
}

/// The metadata of a route that answers by itself and is nobody's.
pub(crate) fn metadata(code: Code) -> Metadata {
    let code_text = code.to_string();
    route::facts([(REASON, code_text.as_str()), (TEXT, code.title())].into_iter())
}

/// The bodies of a listener's own answers.
pub(super) fn config(body: LocalReplyBody) -> Option<LocalReplyConfig> {
    if body == LocalReplyBody::Empty {
        return None;
    }
    let no_route = || FilterSpecifier::ResponseFlagFilter(ResponseFlagFilter { flags: vec![NO_ROUTE.to_owned()] });
    let of_found_host =
        AndFilter { filters: vec![filter(no_route()), filter(expression("xds.virtual_host_name != ''"))] };
    let of_route = |condition: &str| expression(&format!("response.code_details == '{DIRECT}' && {condition}"));
    let own_reason = format!("'{REASON}' in xds.route_metadata.filter_metadata['{ORIGIN}']");
    let in_metadata = |key: &str| format!("%METADATA(ROUTE:{ORIGIN}:{key})%");
    let mappers = vec![
        mapper(FilterSpecifier::AndFilter(of_found_host), line(Code::PathNotFound)),
        mapper(no_route(), line(Code::HostNotFound)),
        mapper(of_route(&format!("xds.route_name == '{NO_PATH}'")), line(Code::PathNotFound)),
        mapper(of_route(&format!("xds.route_name == '{MISDIRECTED}'")), line(Code::Misdirected)),
        mapper(of_route(&own_reason), format!("{}: {}\n", in_metadata(REASON), in_metadata(TEXT))),
    ];
    Some(LocalReplyConfig { mappers, ..Default::default() })
}

fn line(code: Code) -> String {
    format!("{code}: {}\n", code.title())
}

fn mapper(of: FilterSpecifier, body: String) -> ResponseMapper {
    let source = DataSource { specifier: Some(Specifier::InlineString(body)), ..Default::default() };
    let body = SubstitutionFormatString { format: Some(Format::TextFormatSource(source)), ..Default::default() };
    ResponseMapper { filter: Some(filter(of)), body_format_override: Some(body), ..Default::default() }
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
