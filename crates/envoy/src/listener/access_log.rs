//! Where requests are written down: Envoy's own line, another one, or JSON with chosen fields; and the servers that are sent an entry
//! besides.

pub mod handshakes;
mod servers;

pub use model::listener::access_log_format as format;

use super::local_replies;
use crate::{
    name,
    route::{self, ORIGIN},
};
use envoy_api::{
    any,
    envoy::{
        config::{
            accesslog::v3::{
                AccessLog, AccessLogFilter, ComparisonFilter, OrFilter, ResponseFlagFilter, StatusCodeFilter,
                access_log, access_log_filter::FilterSpecifier, comparison_filter::Op,
            },
            core::v3::{
                DataSource, Metadata, RuntimeUInt32, SubstitutionFormatString, data_source::Specifier,
                substitution_format_string::Format,
            },
        },
        extensions::access_loggers::file::v3::{FileAccessLog, file_access_log},
    },
    google::protobuf::Struct,
};
use model::{
    PortId,
    listener::{AccessLogFormat, AccessLogLevel},
};

/// The JSON fields that are written when none were chosen: Contour's, whose route it was, and why it was answered so.
pub const DEFAULT_FIELDS: [&str; 31] = [
    "@timestamp",
    "authority",
    "bytes_received",
    "bytes_sent",
    "downstream_local_address",
    "downstream_remote_address",
    "duration",
    "fleet",
    "grpc_status",
    "grpc_status_number",
    "listener",
    "method",
    "origin_kind",
    "origin_name",
    "origin_namespace",
    "path",
    "protocol",
    "reason",
    "request_id",
    "requested_server_name",
    "response_code",
    "response_code_details",
    "response_flags",
    "route",
    "uber_trace_id",
    "upstream_cluster",
    "upstream_host",
    "upstream_local_address",
    "upstream_service_time",
    "user_agent",
    "x_forwarded_for",
];

/// Envoy's own line, as it writes it by itself.
const LINE: &str = concat!(
    "[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" ",
    "%RESPONSE_CODE% %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% ",
    "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% \"%REQ(X-FORWARDED-FOR)%\" \"%REQ(USER-AGENT)%\" ",
    "\"%REQ(X-REQUEST-ID)%\" \"%REQ(:AUTHORITY)%\" \"%UPSTREAM_HOST%\"",
);

/// Envoy's own line, and after it why it was answered so: Envoy's word for it, our code, the route with its object and field, the
/// listener and the fleet.
fn line() -> String {
    let (reason, listener, fleet) = (local_replies::logged(), own("LISTENER", "listener"), own("LISTENER", "fleet"));
    format!("{LINE} %RESPONSE_CODE_DETAILS% {reason} \"%ROUTE_NAME%\" {listener} {fleet}\n")
}

/// What the metadata of a listener has for access logs.
pub(super) fn listener(port: &PortId) -> Metadata {
    let (listener, fleet) = (name::port(port), port.fleet().to_string());
    route::facts([("listener", &*listener), ("fleet", &*fleet)].into_iter())
}

/// The access log of HTTP requests.
pub fn of_requests(log: &model::listener::AccessLog) -> Vec<AccessLog> {
    file(log).into_iter().chain(servers::http(&log.servers.http)).collect()
}

/// The access log of TCP connections.
pub fn of_connections(log: &model::listener::AccessLog) -> Vec<AccessLog> {
    file(log).into_iter().chain(servers::tcp(&log.servers.tcp)).collect()
}

/// The file.
fn file(log: &model::listener::AccessLog) -> Option<AccessLog> {
    if log.level == AccessLogLevel::Disabled {
        return None;
    }
    let file = FileAccessLog {
        path: log.path.to_string(),
        access_log_format: match &log.format {
            AccessLogFormat::Envoy => Some(file_access_log::AccessLogFormat::LogFormat(text(&line()))),
            AccessLogFormat::Text(line) => Some(file_access_log::AccessLogFormat::LogFormat(text(line))),
            AccessLogFormat::Json(fields) => Some(file_access_log::AccessLogFormat::LogFormat(json(fields))),
        },
    };
    Some(AccessLog {
        name: "envoy.access_loggers.file".to_owned(),
        filter: filter(log.level),
        config_type: Some(access_log::ConfigType::TypedConfig(any(&file))),
    })
}

fn text(line: &str) -> SubstitutionFormatString {
    let source = DataSource { specifier: Some(Specifier::InlineString(line.to_owned())), ..Default::default() };
    SubstitutionFormatString { format: Some(Format::TextFormatSource(source)), ..Default::default() }
}

fn json(chosen: &[std::sync::Arc<str>]) -> SubstitutionFormatString {
    let fields: Vec<&str> =
        if chosen.is_empty() { DEFAULT_FIELDS.to_vec() } else { chosen.iter().map(|field| &**field).collect() };
    let fields = fields.into_iter().filter_map(|field| {
        let (name, format) = match field.split_once('=') {
            Some((name, format)) => (name, format.to_owned()),
            None => (field, operator(field)?),
        };
        Some((name.to_owned(), format.as_str().into()))
    });
    SubstitutionFormatString {
        format: Some(Format::JsonFormat(Struct { fields: fields.collect() })),
        omit_empty_values: true,
        ..Default::default()
    }
}

/// What Envoy writes for a field that is known by name.
pub fn operator(field: &str) -> Option<String> {
    let operator = match field {
        "@timestamp" | "ts" => "%START_TIME%",
        "authority" => "%REQ(:AUTHORITY)%",
        "bytes_received" => "%BYTES_RECEIVED%",
        "bytes_sent" => "%BYTES_SENT%",
        "downstream_local_address" => "%DOWNSTREAM_LOCAL_ADDRESS%",
        "downstream_remote_address" => "%DOWNSTREAM_REMOTE_ADDRESS%",
        "downstream_transport_failure_reason" => "%DOWNSTREAM_TRANSPORT_FAILURE_REASON%",
        "duration" => "%DURATION%",
        "grpc_status" => "%GRPC_STATUS%",
        "grpc_status_number" => "%GRPC_STATUS_NUMBER%",
        "method" => "%REQ(:METHOD)%",
        "path" => "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
        "protocol" => "%PROTOCOL%",
        "request_id" => "%REQ(X-REQUEST-ID)%",
        "requested_server_name" => "%REQUESTED_SERVER_NAME%",
        "response_code" => "%RESPONSE_CODE%",
        "response_code_details" => "%RESPONSE_CODE_DETAILS%",
        "response_flags" => "%RESPONSE_FLAGS%",
        "uber_trace_id" => "%REQ(UBER-TRACE-ID)%",
        "upstream_cluster" => "%UPSTREAM_CLUSTER%",
        "upstream_host" => "%UPSTREAM_HOST%",
        "upstream_local_address" => "%UPSTREAM_LOCAL_ADDRESS%",
        "upstream_service_time" => "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%",
        "route" => "%ROUTE_NAME%",
        "user_agent" => "%REQ(USER-AGENT)%",
        "x_forwarded_for" => "%REQ(X-FORWARDED-FOR)%",
        "x_trace_id" => "%REQ(X-TRACE-ID)%",
        "origin_kind" | "contour_config_kind" => return Some(own("ROUTE", "kind")),
        "origin_namespace" | "contour_config_namespace" => return Some(own("ROUTE", "namespace")),
        "origin_name" | "contour_config_name" => return Some(own("ROUTE", "name")),
        "reason" => return Some(local_replies::logged()),
        "listener" | "fleet" => return Some(own("LISTENER", field)),
        _ => return None,
    };
    Some(operator.to_owned())
}

/// What our metadata of a route or listener has under a key.
fn own(of: &str, key: &str) -> String {
    format!("%METADATA({of}:{ORIGIN}:{key})%")
}

/// Which requests are written down: from a status on, or whenever Envoy had something to remark.
fn filter(level: AccessLogLevel) -> Option<AccessLogFilter> {
    let from = match level {
        AccessLogLevel::Info | AccessLogLevel::Disabled => return None,
        AccessLogLevel::Error => 300,
        AccessLogLevel::Critical => 500,
    };
    let status = StatusCodeFilter {
        comparison: Some(ComparisonFilter {
            op: Op::Ge.into(),
            value: Some(RuntimeUInt32 { default_value: from, runtime_key: "sesame.access_log_from".to_owned() }),
        }),
    };
    let filters =
        [FilterSpecifier::StatusCodeFilter(status), FilterSpecifier::ResponseFlagFilter(ResponseFlagFilter::default())];
    let filters = filters.into_iter().map(|specifier| AccessLogFilter { filter_specifier: Some(specifier) }).collect();
    Some(AccessLogFilter { filter_specifier: Some(FilterSpecifier::OrFilter(OrFilter { filters })) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_field_is_known() {
        for field in DEFAULT_FIELDS.into_iter().chain(handshakes::FIELDS) {
            assert!(operator(field).is_some(), "{field}");
        }
    }
}
