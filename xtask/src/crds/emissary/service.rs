//! AuthService, RateLimitService, LogService and TracingService.

use super::{EmissaryKind, Since, explicit_tls, ids};
use crate::crds::schema::{Schema, choice, flag, list, number, object, opt, req, text, texts};

fn kind(kind: &'static str, plural: &'static str, about: &'static str, spec: Schema) -> EmissaryKind {
    EmissaryKind { kind, plural, about, since: Since::V1, spec, status: None, columns: &[] }
}

fn protocol_version() -> Schema {
    choice("Version of Envoy's protocol that the service speaks; Envoy has v3 alone.", &["v2", "v3"])
}

/// AuthService.
pub fn auth() -> EmissaryKind {
    let body = object(
        "How much of the body the service is sent.",
        [
            req("max_bytes", number("Maximum number of bytes.")),
            req("allow_partial", flag("A longer body is sent in part; otherwise the request is answered 413.")),
        ],
    );
    let status = object(
        "Status code of the response if the service is unavailable.",
        [opt("code", number("The status; 403 if not set."))],
    );
    let spec = object(
        "The service and its requests.",
        [
            opt("ambassador_id", ids()),
            req("auth_service", text("Service, such as `auth.shop:3000`.")),
            opt("path_prefix", text("Put before the path of a request.")),
            opt("tls", text("Name of the TLSContext of connections to the service.")),
            opt("v2ExplicitTLS", explicit_tls()),
            opt("proto", choice("Protocol of the service; http if not set.", &["http", "grpc"])),
            opt("protocol_version", protocol_version()),
            opt("timeout_ms", number("Milliseconds that an answer may take; 5000 if not set.")),
            opt("allowed_request_headers", list("Request headers that the service is sent.", text(""))),
            opt("allowed_authorization_headers", list("Headers of the answer that are passed on.", text(""))),
            opt("add_auth_headers", texts("Headers added to what the service is sent.")),
            opt("allow_request_body", flag("The service is sent the first 4096 bytes of the body.")),
            opt("include_body", body),
            opt("status_on_error", status),
            opt("failure_mode_allow", flag("Allow requests if the service is unavailable.")),
            opt("add_linkerd_headers", flag("Requests to the service carry l5d-dst-override.")),
            opt("circuit_breakers", super::circuit_breakers()),
            opt("stats_name", text("Name of the service in statistics.")),
        ],
    );
    kind("AuthService", "authservices", "AuthService configures an external authorization service.", spec)
}

/// RateLimitService.
pub fn rate_limit() -> EmissaryKind {
    let grpc = object(
        "Settings for gRPC requests.",
        [opt(
            "use_resource_exhausted_code",
            flag("Refused requests are answered RESOURCE_EXHAUSTED, not UNAVAILABLE."),
        )],
    );
    let spec = object(
        "The service and its protocol.",
        [
            opt("ambassador_id", ids()),
            req("service", text("Service, such as `ratelimit.shop:8081`.")),
            opt("domain", text("Domain of the limits; that of the Module if not set.")),
            opt("tls", text("Name of the TLSContext of connections to the service.")),
            opt("v2ExplicitTLS", explicit_tls()),
            opt("protocol_version", protocol_version()),
            opt("timeout_ms", number("Milliseconds that an answer may take; 20 if not set.")),
            opt("failure_mode_deny", flag("Deny requests if the service is unavailable.")),
            opt("grpc", grpc),
            opt("stats_name", text("Name of the service in statistics.")),
        ],
    );
    kind("RateLimitService", "ratelimitservices", "RateLimitService configures a global rate limit service.", spec)
}

/// LogService.
pub fn log() -> EmissaryKind {
    let header = object(
        "A header that is logged.",
        [
            opt("header_name", text("Name of the header.")),
            opt("during_request", flag("The header of the request is logged; true if not set.")),
            opt("during_response", flag("The header of the response is logged; true if not set.")),
            opt("during_trailer", flag("The trailer of the response is logged; true if not set.")),
        ],
    );
    let config = object(
        "Settings of the log of HTTP requests.",
        [opt("additional_log_headers", list("Headers that are logged.", header))],
    );
    let spec = object(
        "The service, and what it is sent.",
        [
            opt("ambassador_id", ids()),
            opt("service", text("Service, such as `als.shop:3000`.")),
            opt("driver", choice("What is logged: TCP connections or HTTP requests.", &["tcp", "http"])),
            opt("driver_config", config),
            opt("flush_interval_time", number("Seconds after which entries are sent; 1 if not set.")),
            opt("flush_interval_byte_size", number("Bytes after which entries are sent; 16384 if not set.")),
            opt("grpc", flag("The service speaks gRPC.")),
            opt("protocol_version", protocol_version()),
            opt("stats_name", text("Name of the service in statistics.")),
        ],
    );
    kind("LogService", "logservices", "LogService is sent the access log.", spec)
}

/// TracingService.
pub fn tracing() -> EmissaryKind {
    let named = |about: &str| {
        object(
            about,
            [req("name", text("Name of the source.")), opt("default_value", text("Value where it is missing."))],
        )
    };
    let tag = object(
        "A tag of spans: one of literal, environment and request_header.",
        [
            req("tag", text("Name of the tag.")),
            opt("literal", object("A constant.", [req("value", text("Value of the tag."))])),
            opt("environment", named("An environment variable of the proxy.")),
            opt("request_header", named("A header of the request.")),
        ],
    );
    let percentage = |about: &str| number(about);
    let sampling = object(
        "Which requests are traced, in percent.",
        [
            opt("client", percentage("Requests whose client asks for a trace; 100 if not set.")),
            opt("random", percentage("Requests at random; 100 if not set.")),
            opt("overall", percentage("Requests at most; 100 if not set.")),
        ],
    );
    let modes = ["ENVOY", "LIGHTSTEP", "B3", "TRACE_CONTEXT"];
    let config = object(
        "Settings of the driver.",
        [
            opt("collector_endpoint", text("Path of the collector; `/api/v2/spans` if not set.")),
            opt(
                "collector_endpoint_version",
                choice("Format of the collector.", &["HTTP_JSON_V1", "HTTP_JSON", "HTTP_PROTO"]),
            ),
            opt("collector_hostname", text("Host of the collector.")),
            opt("collector_cluster", text("No effect.")),
            opt("trace_id_128bit", flag("Trace ids have 128 bits; true if not set.")),
            opt("shared_span_context", flag("Client and server share a span; true if not set.")),
            opt("service_name", text("Name of the proxies in traces; `ambassador` if not set.")),
            opt("propagation_modes", list("Headers that carry the trace on.", choice("", &modes))),
            opt("access_token_file", text("File with the token of Lightstep.")),
        ],
    );
    let spec = object(
        "The service, and what it is sent.",
        [
            opt("ambassador_id", ids()),
            req("driver", choice("Kind of tracing.", &["lightstep", "zipkin", "datadog", "opentelemetry"])),
            req("service", text("Service, such as `zipkin.shop:9411`.")),
            opt("sampling", sampling),
            opt("custom_tags", list("Tags of spans.", tag)),
            opt(
                "tag_headers",
                list("Request headers that become tags of spans; deprecated, use custom_tags.", text("")),
            ),
            opt("config", config),
            opt("stats_name", text("Name of the service in statistics.")),
        ],
    );
    kind("TracingService", "tracingservices", "TracingService is sent the traces.", spec)
}
